// The protocol against the real server, when this machine has one: PREVAL_TEST_PYTHON (a Python
// with xllamacpp) and PREVAL_TEST_CHECKPOINT, or what scripts/setup.sh puts under .local/.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "backend/dialogues.h"
#include "backend/live_questions.h"
#include "backend/llamacpp.h"
#include "backend/probe.h"
#include "base/clock.h"
#include "base/file.h"
#include "catch.h"
#include "run/server.h"
#include "skip.h"

using namespace preval;
using preval::test::converse_with;
using preval::test::kLiveWording;
using preval::test::live_questions;
using preval::test::live_record;

namespace {

namespace fs = std::filesystem;

std::string named_or(const char* variable, const fs::path& otherwise) {
  const char* named = std::getenv(variable);
  return named != nullptr ? named : otherwise.string();
}

struct Engine {
  std::string python =
      named_or("PREVAL_TEST_PYTHON", fs::path(PREVAL_SOURCE_DIR) / ".local/venv/bin/python");
  std::string checkpoint =
      named_or("PREVAL_TEST_CHECKPOINT",
               fs::path(PREVAL_SOURCE_DIR) / ".local/checkpoints/SmolLM2-135M-Instruct.Q4_1.gguf");
  bool there() const { return fs::exists(python) && fs::exists(checkpoint); }
};

std::vector<Record> questions() {
  std::vector<Record> all = live_questions(18);
  all.insert(all.begin() + 1,
             live_record("animal", QuestionType::choice, "Which animal is meant?",
                         {{"cat", ""}, {"dog", "It barks."}, {"horse", "It neighs."}},
                         Json{{"sound", "wuff"}}));
  return all;
}

double relative_difference(const Distribution& a, const Distribution& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.labels.size(); ++i) {
    largest = std::max(largest, std::abs(a.labels[i].probability / b.labels[i].probability - 1));
  }
  return largest;
}

}  // namespace

TEST_CASE("exact and top-k reads of the real server", "[live]") {
  const Engine engine;
  if (!engine.there())
    return test::skip_test("no llama.cpp server and checkpoint here (scripts/setup.sh engine)");

  const int port = free_port();
  const fs::path log = fs::temp_directory_path() / ("preval-live-" + std::to_string(port) + ".log");
  Server server(
      {engine.python, std::string(PREVAL_SOURCE_DIR) + "/scripts/serve_llamacpp.py", "--model",
       engine.checkpoint, "--port", std::to_string(port), "--kv-cache", "f16", "--threads", "1"},
      log);
  const auto transport = make_curl_transport();
  Endpoint endpoint;
  endpoint.base_url = "http://127.0.0.1:" + std::to_string(port);
  const auto ask = [&](const HttpRequest& request) {
    return exchange(*transport, endpoint, request);
  };

  BackendSpec spec;
  spec.id = "exact";
  spec.kind = "llamacpp";
  spec.kv_cache = "f16";
  Checkpoint checkpoint;
  checkpoint.files = {{fs::path(engine.checkpoint).filename().string(), "", 0}};
  const LlamaCpp exact(spec, checkpoint, {});
  spec.read = ReadMode::top_k;
  spec.k = 32;
  const LlamaCpp top(spec, checkpoint, {});
  SystemClock clock;
  wait_until_ready(server, *transport, endpoint, exact.health(), clock, std::chrono::seconds(120),
                   [] { return false; });

  const auto identity = converse_with<Identity>(*exact.identify(), ask);
  REQUIRE(identity.result().facts["engine"] == "llama.cpp");
  REQUIRE(identity.result().facts["model"] == checkpoint.files[0].name);

  const PromptFile wording = parse_prompt_file(kLiveWording, "live wording");
  int restricted = 0;
  for (const Record& question : questions()) {
    INFO(question.id);
    const Prompt prompt = render_prompt(wording, question, "none", true);
    const Item item{&question, &prompt, "none", 0};
    const TokenPrompt tokens = converse_with<TokenPrompt>(*exact.tokenise(item), ask).result();
    REQUIRE(tokens.labels.size() == prompt.labels.size());
    const Answer read = converse_with<Answer>(*exact.read(item, tokens, {}), ask).result();
    const Answer whole = converse_with<Answer>(*exact.read_whole_vocabulary(tokens), ask).result();
    if (read.requests > 1) ++restricted;
    const double difference = relative_difference(read.distribution, whole.distribution);
    std::cerr << "live: " << question.id << ": " << read.prompt_tokens << " tokens, "
              << read.requests << " requests, " << read.latency_ms << " ms, " << difference
              << " from the whole vocabulary\n";
    CHECK(difference <= 1e-4);
    CHECK(read.distribution.predicted == whole.distribution.predicted);
    CHECK(std::abs(read.distribution.label_mass / whole.distribution.label_mass - 1) < 1e-3);

    const Answer again = converse_with<Answer>(*exact.read(item, tokens, {}), ask).result();
    for (std::size_t i = 0; i < read.distribution.labels.size(); ++i) {
      CHECK(again.distribution.labels[i].logprob == read.distribution.labels[i].logprob);
    }
    const auto short_read = converse_with<Answer>(*top.read(item, tokens, {}), ask);
    if (const auto* answer = std::get_if<Answer>(&short_read.end)) {
      CHECK(answer->requests == 1);
      CHECK(answer->distribution.predicted == read.distribution.predicted);
    } else {
      CHECK(std::get<Failure>(short_read.end).error_class == "no_label");
    }
  }
  CHECK(restricted > 0);

  const Record first = questions().front();
  const Prompt prompt = render_prompt(wording, first, "none", true);
  for (const LlamaCpp* backend : {&exact, &top}) {
    const ProbeResult found = probe(backend->spec(), backend->checkpoint(), backend->prompt(),
                                    {{&first, &prompt, "none", 0}}, ProbeFor::plan, ask);
    for (const Finding& finding : found.findings) {
      INFO(finding.capability << ": " << finding.verdict << " (" << finding.evidence << ")");
      CHECK(finding.ok);
    }
    CHECK(found.can.verdict() == "exact, top-k");
  }

  server.stop();
  CHECK(server.how_it_ended() == "exit code 0");
  fs::remove(log);
}
