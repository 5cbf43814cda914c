#include "run/arm_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "backend/dialogue.h"
#include "backend/pace.h"
#include "backend/transcript.h"
#include "base/error.h"
#include "base/sha256.h"
#include "run/identity.h"
#include "run/key.h"
#include "run/retry.h"
#include "run/stage.h"

namespace preval {

namespace {

constexpr int kBootTries = 3;

}  // namespace

void ArmContext::tell(const std::string& warning) const {
  if (warning.empty()) return;
  store.event(arm.id, "warning", warning);
  seams.events.notice(fmt::format("arm {}: {}", arm.id, warning));
}

const std::string& ArmServer::engine_version() {
  const BackendSpec& spec = context_.spec;
  if (spec.server && !spec.server->version_command.empty() && engine_version_.empty()) {
    engine_version_ = first_line_of(fill_command(spec.server->version_command, placeholders(0)),
                                    key_variables(context_.plan.effective));
  }
  return engine_version_;
}

std::filesystem::path ArmServer::checkpoint_path() const {
  if (context_.checkpoint.files.empty()) return {};
  return context_.options.checkpoints / context_.checkpoint.files.front().name;
}

void ArmServer::check_checkpoint() {
  if (!context_.spec.server) return;
  const Checkpoint& checkpoint = context_.checkpoint;
  StageScope stage(context_.seams, context_.store, context_.arm.id, "checkpoint");
  for (const CheckpointFile& file : checkpoint.files) {
    const std::filesystem::path path = context_.options.checkpoints / file.name;
    if (!context_.seams.files.exists(path)) {
      throw Error(
          ErrorKind::backend,
          fmt::format("checkpoint file {} is not there ({}, {})", file.name, checkpoint.name,
                      checkpoint.revision),
          fmt::format("it was looked for in {}. scripts/setup.sh engine fetches the quickstart's, "
                      "scripts/serve-vllm-cpu.sh install those of prereg/cross-engine.json; "
                      "--checkpoints names another folder",
                      context_.options.checkpoints.string()));
    }
    const std::string found =
        sha256_file(context_.seams.files, path, [this] { return context_.stopped(); });
    if (found != file.sha256) {
      throw Error(
          ErrorKind::drift,
          fmt::format("checkpoint file {}: registered sha256 {}, found {}", file.name, file.sha256,
                      found),
          "fetch the registered file, or register the other one as a deviation (preval deviate)");
    }
  }
  stage.done(fmt::format("{} of {}: sha256 as registered", checkpoint.name, checkpoint.revision));
}

std::map<std::string, std::string> ArmServer::placeholders(int port) const {
  const BackendSpec& spec = context_.spec;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return {{"port", std::to_string(port)},
          {"checkpoint", checkpoint_path().string()},
          {"root", context_.options.root.string()},
          {"context", std::to_string(spec.context)},
          {"slots", std::to_string(spec.slots)},
          {"kv_cache", spec.kv_cache},
          {"threads", std::to_string(spec.threads > 0 ? spec.threads : cores)}};
}

/// A log of its own for every boot: nothing that another run may still write is touched.
std::filesystem::path ArmServer::fresh_log() const {
  for (int number = 1;; ++number) {
    auto path = context_.options.logs / fmt::format("{}.boot-{}.log", context_.arm.id, number);
    if (!context_.seams.files.exists(path)) return path;
  }
}

void ArmServer::boot(const Backend& backend) {
  const BackendSpec& spec = context_.spec;
  transport_ = spec.transcript ? replayed() : context_.seams.transport();
  if (spec.rate.requests_per_minute || spec.rate.tokens_per_second) {
    transport_ =
        std::make_unique<PacedTransport>(std::move(transport_), context_.seams.clock, spec.rate);
  }
  Endpoint endpoint;
  endpoint.timeouts = spec.timeouts;
  endpoint.bearer_key = bearer_key(spec.key_env);
  endpoint.base_url = base_address(spec.url);
  endpoints_ = {endpoint};
  for (const std::string& each : spec.replica_urls) {
    endpoint.base_url = base_address(each);
    endpoints_.push_back(endpoint);
  }
  if (spec.server) endpoints_.resize(static_cast<std::size_t>(spec.replicas), endpoint);
  try {
    if (spec.server) start(backend);
    if (!spec.url.empty()) reach(backend);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::backend) {
      context_.store.put_failure(context_.arm.id, "boot", 1, true, {"not_ready", error.message()});
    }
    throw;
  }
  booted_ = true;
}

std::unique_ptr<Transport> ArmServer::replayed() const {
  const TranscriptSpec& registered = *context_.spec.transcript;
  const std::filesystem::path path = context_.plan.resolve(registered.file);
  const std::string text = context_.seams.files.read(path);
  if (const std::string found = sha256_hex(text); found != registered.sha256) {
    throw Error(
        ErrorKind::drift,
        fmt::format("transcript {}: registered sha256 {}, found {}",
                    registered.file.generic_string(), registered.sha256, found),
        "restore the registered file, or register the other one as a deviation (preval deviate)");
  }
  Transcript transcript = parse_transcript(text, path.string());
  if (transcript.header.kind != registered.protocol) {
    throw Error(
        ErrorKind::usage,
        fmt::format("transcript {} was recorded from kind {}, the plan says {}",
                    registered.file.generic_string(), transcript.header.kind, registered.protocol));
  }
  context_.tell(transcript.notice);
  return std::make_unique<ReplayTransport>(std::move(transcript));
}

void ArmServer::record(const Backend& fresh, const Json& facts) {
  const BackendSpec& spec = context_.spec;
  const std::string& kind = spec.transcript ? spec.transcript->protocol : spec.kind;
  const std::filesystem::path path =
      context_.options.record / fmt::format("{}.transcript.jsonl", context_.arm.id);
  auto recording = std::make_unique<RecordingTransport>(
      std::move(transport_), context_.seams.files, path, TranscriptHeader{context_.arm.id, kind});
  context_.tell(recording->notice());
  transport_ = std::move(recording);
  // Replies of two servers in one transcript would be replayed as those of one.
  ReplayTransport before(parse_transcript(context_.seams.files.read(path), path.string()));
  const auto answer = converse(*fresh.identify(), asker(before, endpoints_.front()));
  const auto* identity = std::get_if<Identity>(&answer);
  if (identity == nullptr) return;
  const std::string difference = identity_difference(identity->facts, facts);
  if (difference.empty()) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} was recorded from another server: {}", path.string(), difference),
              "record into another folder");
}

void ArmServer::reach(const Backend& backend) {
  for (const Endpoint& endpoint : endpoints_) {
    StageScope stage(context_.seams, context_.store, context_.arm.id, "boot");
    const double seconds =
        wait_until_reachable(*transport_, endpoint, backend.health(), context_.seams.clock,
                             std::chrono::duration<double>(context_.arm.boot_limit_s),
                             [this] { return context_.stopped(); });
    stage.done(fmt::format("{} answers after {:.1f} s", endpoint.base_url, seconds));
  }
}

/// All replicas are started before the first one is waited for: a model takes minutes to load.
void ArmServer::start(const Backend& backend) {
  engine_version();
  servers_.resize(endpoints_.size());
  for (std::size_t i = 0; i < servers_.size(); ++i) launch(i);
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    StageScope stage(context_.seams, context_.store, context_.arm.id, "boot");
    const double seconds = await(i, backend);
    stage.done(fmt::format("READY after {:.1f} s{}{}, log {}", seconds,
                           engine_version_.empty() ? "" : ", ", engine_version_,
                           servers_[i]->log().string()));
  }
}

void ArmServer::launch(std::size_t replica) {
  const int port = free_port();
  endpoints_[replica].base_url = fmt::format("http://127.0.0.1:{}", port);
  servers_[replica] =
      std::make_unique<Server>(fill_command(context_.spec.server->command, placeholders(port)),
                               fresh_log(), key_variables(context_.plan.effective));
}

/// Seconds until it was ready.
double ArmServer::await(std::size_t replica, const Backend& backend) {
  for (int attempt = 1;; ++attempt) {
    Server& server = *servers_[replica];
    try {
      return wait_until_ready(server, *transport_, endpoints_[replica], backend.health(),
                              context_.seams.clock,
                              std::chrono::duration<double>(context_.arm.boot_limit_s),
                              [this] { return context_.stopped(); });
    } catch (const Error& error) {
      // Between choosing a free port and the server's bind another program can take it: the server
      // then ends at once, and another port is tried. A server that ends by itself for any other
      // reason does so again, and its own words are in the message.
      const std::string said = server.last_lines(50);
      const bool taken = said.find("in use") != std::string::npos ||
                         said.find("couldn't bind") != std::string::npos;
      server.stop();
      if (!taken || attempt == kBootTries || error.kind() == ErrorKind::interrupted) throw;
      context_.store.event(
          context_.arm.id, "retry",
          fmt::format("port {} was taken: {}", endpoints_[replica].base_url, error.what()));
      launch(replica);
    }
  }
}

Ask ArmServer::patient(const std::string& stage, std::size_t replica) {
  return patient_asker(
      *transport_, endpoints_[replica], context_.seams.clock, Backoff(), context_.spec.attempts,
      [this] { return context_.stopped(); },
      [this, stage](const Failure& failure, int attempt) {
        context_.store.put_failure(context_.arm.id, stage, attempt, false, failure);
      });
}

std::optional<std::string> ArmServer::ended() {
  for (const std::unique_ptr<Server>& server : servers_) {
    if (!server || server->running()) continue;
    return fmt::format("the server ended ({}){}", server->how_it_ended(), server->parting_words());
  }
  return std::nullopt;
}

std::string ArmServer::log_hint() const {
  return servers_.empty() || !servers_.front()
             ? std::string()
             : "the server's log: " + servers_.front()->log().string();
}

void ArmServer::stop() {
  for (const std::unique_ptr<Server>& server : servers_) {
    StageScope stage(context_.seams, context_.store, context_.arm.id, "stop");
    server->stop();
    stage.done(server->how_it_ended());
  }
}

}  // namespace preval
