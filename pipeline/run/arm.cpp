#include "run/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "base/sha256.h"
#include "run/reads.h"
#include "run/server.h"
#include "run/stage.h"

namespace preval {

namespace {

constexpr int kBootTries = 3;

/// What the store holds for an arm as the current configuration.
struct StoredConfiguration {
  std::int64_t id = 0;
  Json settings, identity;
};

std::optional<StoredConfiguration> stored_configuration(Store& store, const std::string& arm) {
  Stmt query(
      store.db(),
      "SELECT c.id, c.settings, c.identity FROM configuration c JOIN arm a ON a.id = c.arm_id "
      "WHERE a.name = ? AND c.current = 1");
  query.bind(1, arm);
  if (!query.step()) return std::nullopt;
  const auto stored = [&](int column, const char* what) {
    try {
      return parse_json(query.text(column), what);
    } catch (const Error& error) {
      throw Error(ErrorKind::drift,
                  fmt::format("{}: {}", store.db().path().string(), error.message()),
                  "no run writes this; restore a copy of the store");
    }
  };
  return StoredConfiguration{query.integer(0), stored(1, "configuration.settings"),
                             stored(2, "configuration.identity")};
}

class ArmRun {
 public:
  ArmRun(const RunSeams& seams, Store& store, const OpenPlan& plan, const PromptFile& wording,
         const std::vector<SubsetIndex>& subsets, const RunOptions& options, const Arm& arm)
      : seams_(seams),
        store_(store),
        plan_(plan),
        wording_(wording),
        subsets_(subsets),
        options_(options),
        arm_(arm),
        spec_(plan.effective.backend(arm.backend)),
        checkpoint_(plan.effective.checkpoint(arm.checkpoint)),
        settings_(answer_settings(plan.effective, arm)) {}

  ArmResult run() {
    if (const std::string reason = not_run_reason(plan_.effective, arm_, options_);
        !reason.empty()) {
      return not_run(reason);
    }
    try {
      if (nothing_left_to_ask()) return {};
      if (spec_.kind != "simulated") check_checkpoint();
      store_.arm_status(arm_.id, "started");
      backend_ = make_backend(spec_, checkpoint_, plan_.effective.prompt);
      boot();
      identify();
      preflight();
      ArmResult result = read();
      stop();
      return result;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::io) throw;
      return failed(error);
    }
  }

 private:
  ArmResult not_run(const std::string& reason) {
    store_.arm_status(arm_.id, "not run", reason);
    seams_.events.notice(fmt::format("arm {}: not run: {}", arm_.id, reason));
    ArmResult result;
    result.status = ArmResult::Status::not_run;
    result.reason = reason;
    return result;
  }

  ArmResult failed(const Error& error) {
    ArmResult result;
    result.status = error.kind() == ErrorKind::interrupted ? ArmResult::Status::interrupted
                                                           : ArmResult::Status::failed;
    result.reason = error.what();
    result.drift = error.kind() == ErrorKind::drift;
    result.missing_reads = still_missing();
    if (result.status == ArmResult::Status::failed) {
      store_.arm_status(arm_.id, has_answers() ? "started" : "failed", result.reason);
      store_.event(arm_.id, "failed", result.reason);
      seams_.events.notice(fmt::format("arm {}: {}", arm_.id, result.reason));
    }
    store_.flush();
    return result;
  }

  bool has_answers() {
    Stmt query(store_.db(),
               "SELECT 1 FROM prediction p JOIN configuration c ON c.id = p.configuration_id JOIN "
               "arm a ON a.id = c.arm_id WHERE a.name = ? AND c.current = 1 LIMIT 1");
    query.bind(1, arm_.id);
    return query.step();
  }

  std::int64_t still_missing() {
    return static_cast<std::int64_t>(list_of(configuration_).pending.size());
  }

  ReadList list_of(std::int64_t configuration) {
    return missing_reads(store_, configuration, subsets_, plan_.effective.repeats, options_.limit);
  }

  /// The engine's own word on its version, from a command, so that no boot is needed to know it.
  std::string engine_version() {
    if (!spec_.server || spec_.server->version_command.empty()) return {};
    if (engine_version_.empty()) {
      engine_version_ = first_line_of(fill_command(spec_.server->version_command, placeholders(0)));
    }
    return engine_version_;
  }

  /// Everything stored, by the same settings and the same engine: no server has to be started.
  bool nothing_left_to_ask() {
    if (!spec_.url.empty()) return false;
    const std::optional<StoredConfiguration> stored = stored_configuration(store_, arm_.id);
    if (!stored || stored->settings != settings_) return false;
    if (!list_of(stored->id).pending.empty()) return false;
    if (stored->identity.value("engine", "") != engine_version()) return false;
    store_.arm_status(arm_.id, "started");
    StageScope stage(seams_, store_, arm_.id, "reads");
    stage.done("everything is stored already: nothing asked");
    return true;
  }

  std::filesystem::path checkpoint_path() const {
    if (checkpoint_.files.empty()) return {};
    return options_.checkpoints / checkpoint_.files.front().name;
  }

  void check_checkpoint() {
    if (!spec_.server) return;  // somebody else's server: its identity is checked instead
    StageScope stage(seams_, store_, arm_.id, "checkpoint");
    for (const CheckpointFile& file : checkpoint_.files) {
      const std::filesystem::path path = options_.checkpoints / file.name;
      if (!seams_.files.exists(path)) {
        throw Error(ErrorKind::backend,
                    fmt::format("checkpoint file {} is not there", path.string()),
                    "scripts/setup.sh fetches it; --checkpoints names another folder");
      }
      const std::string found = sha256_file(seams_.files, path);
      if (found != file.sha256) {
        throw Error(ErrorKind::drift,
                    fmt::format("checkpoint file {}: registered sha256 {}, found {}", path.string(),
                                file.sha256, found),
                    "fetch the registered file, or register the other one as a deviation");
      }
    }
    stage.done(
        fmt::format("{} of {}: sha256 as registered", checkpoint_.name, checkpoint_.revision));
  }

  std::map<std::string, std::string> placeholders(int port) const {
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    return {{"port", std::to_string(port)},
            {"checkpoint", checkpoint_path().string()},
            {"root", options_.root.string()},
            {"context", std::to_string(spec_.context)},
            {"slots", std::to_string(spec_.slots)},
            {"kv_cache", spec_.kv_cache},
            {"threads", std::to_string(spec_.threads > 0 ? spec_.threads : cores)}};
  }

  /// A log of its own for every boot: nothing that another run may still write is touched.
  std::filesystem::path fresh_log() const {
    for (int number = 1;; ++number) {
      auto path = options_.logs / fmt::format("{}.boot-{}.log", arm_.id, number);
      if (!seams_.files.exists(path)) return path;
    }
  }

  void boot() {
    transport_ = seams_.transport();
    endpoint_.timeouts = spec_.timeouts;
    if (!spec_.key_env.empty()) {
      const char* key = std::getenv(spec_.key_env.c_str());
      if (key == nullptr || *key == '\0') {
        throw Error(ErrorKind::backend,
                    fmt::format("the key variable {} is not set", spec_.key_env),
                    "set it in the environment; it is never written anywhere");
      }
      endpoint_.bearer_key = key;
    }
    if (spec_.kind == "simulated") return;
    if (!spec_.server) {
      endpoint_.base_url = spec_.url;
      return;
    }
    StageScope stage(seams_, store_, arm_.id, "boot");
    engine_version();
    for (int attempt = 1;; ++attempt) {
      const int port = free_port();
      endpoint_.base_url = fmt::format("http://127.0.0.1:{}", port);
      server_ = std::make_unique<Server>(fill_command(spec_.server->command, placeholders(port)),
                                         fresh_log());
      try {
        const double seconds =
            wait_until_ready(*server_, *transport_, endpoint_, backend_->health(), seams_.clock,
                             std::chrono::duration<double>(arm_.boot_limit_s),
                             [&] { return seams_.interrupt.level() > 0; });
        stage.done(fmt::format("READY after {:.1f} s{}{}, log {}", seconds,
                               engine_version_.empty() ? "" : ", ", engine_version_,
                               server_->log().string()));
        return;
      } catch (const Error& error) {
        // Between choosing a free port and the server's bind another program can take it: the
        // server then ends at once, and another port is tried. A server that ends by itself for any
        // other reason does so again, and its own words are in the message.
        const std::string said = server_->last_lines(50);
        const bool taken = said.find("in use") != std::string::npos ||
                           said.find("couldn't bind") != std::string::npos;
        server_->stop();
        if (!taken || attempt == kBootTries || error.kind() == ErrorKind::interrupted) throw;
        store_.event(arm_.id, "retry", fmt::format("port {} was taken: {}", port, error.what()));
      }
    }
  }

  template <class Result>
  std::variant<Result, Failure> ask_one_by_one(Dialogue<Result>& dialogue) {
    Exchanges exchanges(*transport_, endpoint_, seams_.clock, spec_.attempts,
                        [this] { return seams_.interrupt.level(); });
    auto outcome = converse(dialogue, exchanges);
    return outcome;
  }

  void identify() {
    Json identity = Json::object();
    identity["engine"] = engine_version_;
    auto answer = ask_one_by_one(*backend_->identify());
    if (auto* failure = std::get_if<Failure>(&answer)) throw_failure("identity", *failure);
    identity["server"] = std::get<Identity>(answer).facts;
    configuration_ = store_.put_configuration(arm_.id, settings_, identity);
  }

  [[noreturn]] void throw_failure(std::string_view what, const Failure& failure) {
    throw Error(
        ErrorKind::backend,
        fmt::format("{} of arm {}: {}: {}", what, arm_.id, failure.error_class, failure.message),
        server_ ? fmt::format("the server's log: {}", server_->log().string()) : std::string());
  }

  void preflight() {
    const std::size_t asked = first_subset_with_records();
    if (asked == subsets_.size()) return;
    StageScope stage(seams_, store_, arm_.id, "preflight");
    const SubsetIndex& index = subsets_[asked];
    const auto records = read_records(seams_.files.read(index.path), index.subset->id,
                                      index.path.string(), [](auto&&) {});
    const Prompt prompt =
        render_prompt(wording_, records.front(), "none", plan_.effective.prompt.state_ascii);
    const Item item{&records.front(), &prompt, "none", 0};
    auto answer = ask_one_by_one(*backend_->preflight(item));
    if (auto* failure = std::get_if<Failure>(&answer)) throw_failure("preflight", *failure);
    const auto& findings = std::get<std::vector<Finding>>(answer);
    for (const Finding& finding : findings) store_.finding(arm_.id, finding);
    for (const Finding& finding : findings) {
      if (finding.ok) continue;
      throw Error(ErrorKind::backend,
                  fmt::format("preflight of arm {}: {}: {} ({})", arm_.id, finding.capability,
                              finding.verdict, finding.evidence),
                  "the server cannot do what the plan registers");
    }
    stage.done(fmt::format("{} findings, all as the plan needs", findings.size()));
  }

  std::size_t first_subset_with_records() const {
    std::size_t i = 0;
    while (i < subsets_.size() && subsets_[i].records.empty()) ++i;
    return i;
  }

  ArmResult read() {
    ReadList list = list_of(configuration_);
    const ReadContext context{seams_,   store_, plan_.effective, wording_,
                              subsets_, arm_,   spec_,           configuration_};
    const auto server_ended = [&]() -> std::optional<std::string> {
      if (!server_ || server_->running()) return std::nullopt;
      return fmt::format("the server ended ({}){}", server_->how_it_ended(),
                         server_->parting_words());
    };
    if (const auto smoke = take_smoke_reads(list, subsets_); !smoke.empty()) {
      StageScope stage(seams_, store_, arm_.id, "smoke");
      const int concurrency = subsets_[smoke.front().subset].group->smoke.concurrency;
      const ReadOutcome outcome = ask(context, *backend_, *transport_, endpoint_, list, smoke,
                                      concurrency, true, server_ended);
      if (outcome.end.kind != ScheduleEnd::Kind::done) throw_end(outcome.end);
      if (!outcome.first_problem.empty()) {
        throw Error(ErrorKind::backend, fmt::format("smoke reads: {}", outcome.first_problem),
                    "nothing more is asked of this arm; preval query \"select * from v_failure\"");
      }
      stage.done(fmt::format("{} reads, every one usable", outcome.answered));
    }
    StageScope stage(seams_, store_, arm_.id, "reads");
    const ReadOutcome outcome = ask(context, *backend_, *transport_, endpoint_, list, list.pending,
                                    spec_.concurrency, false, server_ended);
    if (outcome.end.kind != ScheduleEnd::Kind::done) throw_end(outcome.end);
    ArmResult result;
    result.missing_reads = still_missing();
    stage.done(fmt::format("{} answered, {} given up", outcome.answered, outcome.failed));
    return result;
  }

  [[noreturn]] void throw_end(const ScheduleEnd& end) {
    if (end.kind == ScheduleEnd::Kind::interrupted) {
      throw Error(ErrorKind::interrupted, end.reason);
    }
    throw Error(ErrorKind::backend, end.reason, "what is stored stays: the same command goes on");
  }

  void stop() {
    if (!server_) return;
    StageScope stage(seams_, store_, arm_.id, "stop");
    server_->stop();
    stage.done(server_->how_it_ended());
  }

  const RunSeams& seams_;
  Store& store_;
  const OpenPlan& plan_;
  const PromptFile& wording_;
  const std::vector<SubsetIndex>& subsets_;
  const RunOptions& options_;
  const Arm& arm_;
  const BackendSpec& spec_;
  const Checkpoint& checkpoint_;
  Json settings_;

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Transport> transport_;
  Endpoint endpoint_;
  std::string engine_version_;
  std::int64_t configuration_ = 0;  // 0, which has no answers, until the server is known
};

}  // namespace

std::string not_run_reason(const Plan& plan, const Arm& arm, const RunOptions& options) {
  const Checkpoint& checkpoint = plan.checkpoint(arm.checkpoint);
  if (plan.backend(arm.backend).kind == "simulated") return {};
  if (!checkpoint.terms_id.empty() && !options.accepted_terms.contains(checkpoint.terms_id)) {
    return "terms not accepted";
  }
  return {};
}

ArmResult run_arm(const RunSeams& seams, Store& store, const OpenPlan& plan,
                  const PromptFile& wording, const std::vector<SubsetIndex>& subsets,
                  const RunOptions& options, const Arm& arm) {
  return ArmRun(seams, store, plan, wording, subsets, options, arm).run();
}

}  // namespace preval
