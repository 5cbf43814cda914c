// Who answers is part of what was measured: another model, server or address never mixes with what
// is stored, and one that is refused hides nothing of it.
#include "base/error.h"
#include "catch.h"
#include "run/study.h"
#include "server/model.h"
#include "server/protocols.h"

using namespace preval;
using namespace preval::test;
using test_server::TestServer;

namespace {

/// The backend of the one arm, as every protocol needs it.
Json backend_of(const std::string& kind, const std::string& url) {
  Json backend = Study::served("exact", kind, url);
  backend["attempts"] = 2;
  if (kind != "llamacpp") backend["model"] = "served-name";
  if (kind == "openai-chat" || kind == "ollama") {
    backend["read"] = "text-top-k";
    backend["k"] = 20;
    backend["spellings"] = {" {label}", "{label}"};
  }
  if (kind == "systemone") backend["read"] = "native";
  return backend;
}

Json script_of(const std::string& kind, const std::string& model, Json rules = Json::array()) {
  return {{"kind", kind}, {"model", model}, {"rules", std::move(rules)}};
}

std::string said(Study& study) {
  return fmt::format("{}", fmt::join(study.listener.notices, "\n"));
}

constexpr const char* kCounted = "SELECT count(*) FROM v_prediction";
constexpr const char* kStored = "SELECT count(*) FROM prediction";

}  // namespace

TEST_CASE("E1: behind one name another model answers in the next run: nothing of A is reused") {
  // The plan's name stays, as a hosted name does that is pointed at a newer model.
  std::unique_ptr<TestServer> server;
  Study study;
  const auto serve = [&](const std::string& model) {
    Json how = script_of(
        "openai-chat", "served-name",
        Json::array({{{"path", "/v1/chat/completions"},
                      {"do", {{"replace", {{"\"served-name\"", "\"" + model + "\""}}}}}}}));
    if (server) how["port"] = server->port();
    server.reset();
    server = std::make_unique<TestServer>(how);
  };
  serve("model-2026-01");
  study.only(backend_of("openai-chat", server->url()));
  study.lock();
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT json_extract(identity, '$.answered_by') FROM configuration") ==
        "model-2026-01");
  serve("model-2026-09");
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value(kStored) == "16");
  CHECK(study.value(kCounted) == "8");
  CHECK(contains(
      said(study),
      "arm a: this is not the server that gave the stored answers (answered by: "
      "registered model-2026-01, found model-2026-09): they are kept, and stop counting with "
      "its first answer"));
  // And the first one again: what it answered is there.
  serve("model-2026-01");
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value(kStored) == "16");
  CHECK(study.value(kCounted) == "8");
}

TEST_CASE("a reply that names another model stops the arm, whatever the protocol") {
  const std::string kind = GENERATE("openai-chat", "ollama", "systemone");
  TestServer server(
      script_of(kind, "served-name",
                Json::array({{{"method", "POST"},
                              {"containing", "text 2"},
                              {"do", {{"replace", {{"\"served-name\"", "\"other\""}}}}}}})));
  Study study;
  study.only(backend_of(kind, server.url()));
  study.lock();
  const RunResult result = study.run();
  INFO(kind << "\n" << said(study));
  CHECK(result.exit_code() == 3);
  REQUIRE(result.drift.size() == 1);
  CHECK(contains(result.drift[0], "arm a: the server changed while it was read from"));
  CHECK(study.value("SELECT count(*) FROM failure WHERE class = 'identity_changed'") == "1");
  // What came before is kept, and counts no more: nobody knows when the change was made.
  CHECK(study.value(kStored) == "3");
  CHECK(study.value(kCounted) == "0");
  CHECK(study.value("SELECT count(*) FROM configuration WHERE identity LIKE '%\"after\"%' AND "
                    "current = 0") == "1");
}

TEST_CASE("a server that preflight refuses hides nothing that another one has answered") {
  auto server = std::make_unique<TestServer>(script_of("vllm", "served-name"));
  Study study;
  study.only(backend_of("vllm", server->url()));
  study.lock();
  CHECK(study.run().exit_code() == 0);
  Json worse = script_of("vllm", "served-name");
  worse["version"] = "0.5.0";
  worse["by_id"] = false;
  worse["port"] = server->port();
  server.reset();
  server = std::make_unique<TestServer>(worse);
  const RunResult refused = study.run();
  CHECK(refused.exit_code() == 5);
  CHECK(refused.missing_reads == 0);
  CHECK(study.value(kCounted) == "8");
  CHECK(study.value("SELECT status FROM arm WHERE name = 'a'") == "started");
}

TEST_CASE("a server that fails the smoke reads hides nothing either") {
  auto server = std::make_unique<TestServer>(script_of("llamacpp", "model-a"));
  Study study;
  study.only(backend_of("llamacpp", server->url()));
  study.lock();
  CHECK(study.run().exit_code() == 0);
  Json other = script_of(
      "llamacpp", "model-b",
      Json::array({{{"path", "/completion"}, {"from", 10}, {"do", {{"envelope", "openai"}}}}}));
  other["port"] = server->port();
  server.reset();
  server = std::make_unique<TestServer>(other);
  CHECK(study.run().exit_code() == 5);
  CHECK(study.value(kCounted) == "8");
  CHECK(study.value("SELECT count(*) FROM configuration") == "2");
  CHECK(study.value("SELECT outcome FROM stage WHERE name = 'smoke' ORDER BY id DESC") == "failed");
}

TEST_CASE("an exploratory run on another server decides nothing about the registered answers") {
  auto server = std::make_unique<TestServer>(script_of("llamacpp", "model-a"));
  Study study;
  study.only(backend_of("llamacpp", server->url()));
  study.lock();
  CHECK(study.run().exit_code() == 0);
  Json other = script_of("llamacpp", "model-b");
  other["port"] = server->port();
  server.reset();
  server = std::make_unique<TestServer>(other);
  RunOptions options;
  options.exploratory = true;
  options.limit = 2;
  const RunResult tried = study.run(options);
  CHECK(tried.exit_code() == 0);
  CHECK(tried.missing_reads == 0);
  CHECK(study.value(kCounted) == "8");
  CHECK(study.value("SELECT sum(n_answered) FROM v_accuracy") == "8");
  CHECK(study.value("SELECT sum(n_answered) || ' ' || count(DISTINCT configuration) FROM "
                    "v_exploratory") == "4 1");
  CHECK(study.run(options).exit_code() == 0);
  CHECK(study.value(kStored) == "12");
}

TEST_CASE("after a change half-way, what another server has finished counts again") {
  auto server = std::make_unique<TestServer>(script_of("llamacpp", "model-a"));
  Study study;
  study.only(backend_of("llamacpp", server->url()));
  study.lock();
  CHECK(study.run().exit_code() == 0);
  Json changing = script_of(
      "llamacpp", "model-a",
      Json::array({{{"path", "/completion"}, {"from", 13}, {"do", {{"version", "3.0.0"}}}}}));
  changing["version"] = "2.0.0";
  changing["port"] = server->port();
  server.reset();
  server = std::make_unique<TestServer>(changing);
  CHECK(study.run().exit_code() == 3);
  CHECK(study.value(kStored) == "16");
  CHECK(study.value(kCounted) == "8");
  CHECK(study.value("SELECT json_extract(identity, '$.server.build') FROM configuration WHERE "
                    "current = 1") == "1.0.0");
  CHECK(study.value("SELECT count(*) FROM configuration WHERE set_aside = 1") == "1");
}

TEST_CASE("answers whose server could not be asked once more who it is are said to be so") {
  // The server answers reads until the end, and nothing else.
  TestServer server(script_of(
      "llamacpp", "model-a",
      Json::array({{{"path", "/props"}, {"from", 3}, {"do", {{"envelope", "empty-500"}}}}})));
  Study study;
  study.only(backend_of("llamacpp", server.url()));
  study.lock();
  CHECK(study.run().exit_code() == 5);
  INFO(said(study));
  CHECK(study.value(kCounted) == "8");
  CHECK(study.value("SELECT arm || ' ' || run || ' ' || n_answered FROM v_unconfirmed") == "a 1 8");
  CHECK(study.value("SELECT outcome FROM stage WHERE name = 'identity'") == "failed");
}

TEST_CASE("a transcript of one server does not go on with another") {
  auto server = std::make_unique<TestServer>(script_of("llamacpp", "model-a"));
  Study study;
  study.only(backend_of("llamacpp", server->url()));
  study.lock();
  RunOptions options;
  options.record = study.folder();
  options.limit = 1;
  CHECK(study.run(options).exit_code() == 0);
  CHECK(study.run(options).exit_code() == 0);  // the same one goes on
  Json other = script_of("llamacpp", "model-b");
  other["port"] = server->port();
  server.reset();
  server = std::make_unique<TestServer>(other);
  CHECK(study.run(options).exit_code() == 2);
  CHECK(contains(said(study),
                 "a.transcript.jsonl was recorded from another server: model: registered model-a, "
                 "found model-b"));
  CHECK(study.value(kCounted) == "2");
}

TEST_CASE("one 500 is a passing trouble, wherever it comes") {
  const std::string path = GENERATE("/props", "/tokenize", "/completion", "/apply-template");
  const int nth = GENERATE(1, 2);
  TestServer server(script_of(
      "llamacpp", "model-a",
      Json::array({{{"path", path}, {"nth", {nth}}, {"do", {{"envelope", "empty-500"}}}}})));
  Study study;
  study.only(backend_of("llamacpp", server.url()));
  study.lock();
  INFO(path << " " << nth << "\n" << said(study));
  CHECK(study.run().exit_code() == 0);
}

TEST_CASE("data that goes away under a run is the machine's failure, and is said") {
  TestServer server(script_of("llamacpp", "model-a"));
  Study study;
  study.only(backend_of("llamacpp", server.url()));
  study.lock();
  study.listener.on_progress = [&](const Progress& progress) {
    if (progress.done == 1) std::filesystem::remove_all(study.folder() / "data");
  };
  const Error failed = thrown([&] { study.run(); });
  CHECK(failed.kind() == ErrorKind::io);
  CHECK(contains(failed.what(), "was there and cannot be read any more"));
}

TEST_CASE("with no subset to read no arm is started") {
  TestServer server(script_of("llamacpp", "model-a"));
  Study study;
  study.only(backend_of("llamacpp", server.url()));
  study.lock();
  std::filesystem::remove_all(study.folder() / "data");
  CHECK(study.run().exit_code() == 4);
  CHECK(server.connections() == 0);
}

TEST_CASE("a server at another address is another server") {
  TestServer one(script_of("systemone", "served-name"));
  TestServer two(script_of("systemone", "served-name"));
  Study study;
  study.only(backend_of("systemone", one.url()));
  study.lock();
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value(kCounted) == "8");
  // A deviation, as far as the store is concerned: the same plan with another address.
  OpenPlan moved = study.open();
  moved.effective.backends[0].url = two.url();
  const Json before = answer_settings(study.open().effective, study.open().effective.arm("a"));
  const Json after = answer_settings(moved.effective, moved.effective.arm("a"));
  CHECK(before != after);
  CHECK(before["backend"]["url"] == one.url());
  CHECK(after["backend"]["url"] == two.url());
}

TEST_CASE("what a breaker, a refused key or a missing key of an arm comes to") {
  struct Row {
    const char* envelope;
    bool confirmatory;
    int exit_code;
    const char* words;
  };
  const Row row = GENERATE(Row{"html-502", true, 5, "2 server failures in a row"},
                           Row{"html-502", false, 5, "2 server failures in a row"},
                           Row{"string-401", true, 4, "hint: this server wants a key"},
                           Row{"string-401", false, 4, "hint: this server wants a key"},
                           Row{"model-404", false, 4, "hint: no such path or model there"});
  TestServer server(script_of(
      "llamacpp", "model-a",
      Json::array(
          {{{"path", "/completion"}, {"from", 16}, {"do", {{"envelope", row.envelope}}}}})));
  Study study;
  study.only(backend_of("llamacpp", server.url()));
  study.plan()["backends"][0]["breaker"] = 2;
  study.plan()["arms"][0]["confirmatory"] = row.confirmatory;
  study.save();
  study.lock();
  const RunResult result = study.run();
  INFO(row.envelope << " " << row.confirmatory << "\n" << said(study));
  CHECK(result.exit_code() == row.exit_code);
  CHECK(result.missing_reads > 0);
  CHECK(contains(said(study), row.words));
}

TEST_CASE(
    "a key that is not given: the arm is not run, and that matters where it is confirmatory") {
  const bool confirmatory = GENERATE(true, false);
  unsetenv("PREVAL_TEST_NO_KEY");
  TestServer server(script_of("llamacpp", "model-a"));
  Study study;
  study.only(backend_of("llamacpp", server.url()));
  study.plan()["backends"][0]["key_env"] = "PREVAL_TEST_NO_KEY";
  study.plan()["arms"][0]["confirmatory"] = confirmatory;
  study.save();
  study.lock();
  CHECK(study.run().exit_code() == (confirmatory ? 5 : 0));
  CHECK(study.value("SELECT status || ': ' || reason FROM arm WHERE name = 'a'") ==
        "not run: key not given: PREVAL_TEST_NO_KEY is not set");
  CHECK(server.connections() == 0);
}

TEST_CASE("a key file that others may read is a mistake of the call: exit code 2") {
  TestServer server(script_of("llamacpp", "model-a"));
  Study study;
  study.only(backend_of("llamacpp", server.url()));
  study.plan()["backends"][0]["key_env"] = "PREVAL_TEST_OPEN_KEY";
  study.save();
  study.lock();
  study.write("key", "a-key-that-is-long-enough\n");
  std::filesystem::permissions(study.folder() / "key", std::filesystem::perms(0644));
  setenv("PREVAL_TEST_OPEN_KEY_FILE", (study.folder() / "key").c_str(), 1);
  const RunResult result = study.run();
  unsetenv("PREVAL_TEST_OPEN_KEY_FILE");
  CHECK(result.exit_code() == 2);
  CHECK(study.value("SELECT outcome FROM run") == "refused");
  CHECK(contains(said(study), "has mode 0644"));
}

TEST_CASE("failures of what is no read are rows, too") {
  TestServer server(script_of(
      "llamacpp", "model-a",
      Json::array({{{"path", "/props"}, {"nth", {1}}, {"do", {{"envelope", "busy"}}}},
                   {{"path", "/tokenize"}, {"nth", {2}}, {"do", {{"envelope", "loading"}}}}})));
  Study study;
  study.only(backend_of("llamacpp", server.url()));
  study.lock();
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT group_concat(stage || ' ' || class || ' ' || http_status || ' ' || "
                    "attempt || ' ' || final, ', ') FROM failure") ==
        "identity http_error 429 1 0, preflight http_error 503 1 0");
}

TEST_CASE("the deviation that a finding asks for is named, whatever the field") {
  struct Row {
    const char* field;
    Json value;
    const char* command;
  };
  const Row row = GENERATE(
      Row{"context", 4096, "--field /backends/0/context --from 4096 --to 2048 --why TEXT"},
      Row{"slots", 3, "--field /backends/0/slots --from 3 --to 1 --why TEXT"},
      Row{"model", "another.gguf",
          "--field /backends/0/model --from '\"another.gguf\"' --to '\"model-a\"' --why TEXT"});
  TestServer server(script_of("llamacpp", "model-a"));
  Study study;
  study.only(backend_of("llamacpp", server.url()));
  study.plan()["backends"][0][row.field] = row.value;
  study.save();
  study.lock();
  CHECK(study.run().exit_code() == 5);
  INFO(said(study));
  CHECK(contains(said(study), row.command));
}
