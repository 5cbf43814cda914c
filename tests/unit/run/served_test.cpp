// Whole runs against the scriptable server: what is retried and what is final, who answers, and
// what a run is worth when a server fails half-way.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "backend/transcript.h"
#include "base/error.h"
#include "catch.h"
#include "run/pipeline.h"
#include "run/study.h"
#include "server/model.h"
#include "server/protocols.h"

using namespace preval;
using namespace preval::test;
using test_server::TestServer;

namespace {

using Rules = std::vector<Json>;

Json script(const std::string& kind, const Rules& rules = {}) {
  return {{"kind", kind}, {"rules", rules}};
}

using Failures = std::vector<std::string>;

/// Text that is in requests about record `number` of either subset and, but for record 0, in none
/// of the probe's: the tokens of "text 2".
std::string reads_of(int number) {
  test_server::Tokenizer tokenizer;
  return fmt::format("{},", fmt::join(tokenizer.tokens_of(fmt::format("text {}", number)), ","));
}

/// How many recorded requests hold this text.
int calls(Study& study, const std::string& text) {
  const Transcript transcript = parse_transcript(study.read("a.transcript.jsonl"), "transcript");
  return static_cast<int>(std::count_if(
      transcript.exchanges.begin(), transcript.exchanges.end(),
      [&](const Recorded& exchange) { return contains(exchange.request.body, text); }));
}

/// A study with one arm, "a", on a scripted server.
class Served {
 public:
  explicit Served(const Json& how) : server(how) {
    Json backend = Study::served("exact", how.at("kind").get<std::string>(), server.url());
    backend["attempts"] = 3;
    study.only(backend);
  }
  Json& backend() { return study.plan()["backends"][0]; }
  RunResult run(const RunOptions& options = {}) {
    if (!locked_) {
      study.save();
      study.lock();
      locked_ = true;
    }
    return study.run(options);
  }
  /// "class attempt final" of every failure, prompt by prompt.
  std::vector<std::string> failures() {
    Db db = open_store(study.db_path(), Db::Mode::read_only);
    Stmt query(db,
               "SELECT class || ' ' || attempt || ' ' || final FROM failure ORDER BY "
               "prompt_id, id");
    std::vector<std::string> rows;
    while (query.step()) rows.push_back(query.text(0));
    return rows;
  }
  std::string value(const std::string& sql) { return study.value(sql); }
  std::string answers() { return value("SELECT count(*) FROM prediction"); }

  TestServer server;
  Study study;

 private:
  bool locked_ = false;
};

/// Every number of every answer, latencies included, as text of its bits.
std::vector<std::string> numbers_of(Study& study) {
  Db db = open_store(study.db_path(), Db::Mode::read_only);
  Stmt query(
      db,
      "SELECT r.record_id, p.repeat, p.predicted, p.requests, p.latency_ms, p.label_mass, "
      "p.entropy, l.position, l.logprob, l.probability FROM prediction p JOIN prompt q ON q.id "
      "= p.prompt_id JOIN record r ON r.id = q.record_id JOIN label l ON l.prediction_id = p.id "
      "ORDER BY r.record_id, p.repeat, l.position");
  std::vector<std::string> rows;
  while (query.step()) {
    std::string row = query.text(0);
    for (int column = 1; column < 10; ++column) row += fmt::format(" {:a}", query.real(column));
    rows.push_back(row);
  }
  return rows;
}

/// The plan's arm answered from what it has recorded.
void replay(Study& study, const std::filesystem::path& transcript) {
  Json& backend = study.plan()["backends"][0];
  backend["transcript"] = {{"protocol", backend["kind"]},
                           {"file", "a.transcript.jsonl"},
                           {"sha256", sha256_hex(study.files().read(transcript))}};
  backend["kind"] = "replay";
  backend.erase("url");
  study.write("prereg/a.transcript.jsonl", study.files().read(transcript));
  study.save();
}

}  // namespace

TEST_CASE("a run over a server that behaves, whatever its protocol") {
  const std::string kind =
      GENERATE("llamacpp", "vllm", "sglang", "openai-chat", "ollama", "systemone");
  Served served(script(kind));
  Json& backend = served.backend();
  backend["model"] = "test-model";
  if (kind == "openai-chat" || kind == "ollama") {
    backend["read"] = "text-top-k";
    backend["k"] = 20;
    backend["spellings"] = {" {label}", "{label}"};
  }
  if (kind == "systemone") backend["read"] = "native";
  if (kind == "llamacpp") backend["model"] = "";
  const RunResult result = served.run();
  INFO(kind << ": " << fmt::format("{}", fmt::join(served.study.listener.notices, "\n")));
  CHECK(result.exit_code() == 0);
  CHECK(served.answers() == "8");
  CHECK(served.value("SELECT count(*) FROM label") == "16");
  CHECK(served.failures().empty());
}

TEST_CASE("a record that names a model itself is a failure of its own, wherever it stands") {
  // The first record is a smoke read, and the one that the probe would ask.
  const int place = GENERATE(0, 2, 3);
  Served served(script("systemone"));
  std::string text = Study::records("one", 4);
  const std::string mark = fmt::format("{{\"state\": \"text {}\"", place);
  text.insert(text.find(mark) + 1, R"("model": "other", )");
  served.study.put_records("one", "noul", text, 4, 2);
  served.backend()["read"] = "native";
  served.backend()["model"] = "test-model";
  const RunResult result = served.run();
  INFO(fmt::format("{}", fmt::join(served.study.listener.notices, "\n")));
  CHECK(result.exit_code() == 4);
  CHECK(result.missing_reads == 1);
  CHECK(served.answers() == "7");
  CHECK(served.failures() == Failures{"record_refused 1 1"});
  CHECK(served.value("SELECT message FROM failure") ==
        fmt::format("record one-{} (subset one, line {}): its input names a model, which is the "
                    "plan's to name",
                    place, place + 1));
}

TEST_CASE("a server that contradicts the plan is asked nothing, and the deviation is named") {
  Json how = script("vllm");
  how["by_id"] = false;
  Served no_ids(how);
  CHECK(no_ids.run().exit_code() == 5);
  CHECK(no_ids.answers() == "0");
  CHECK(no_ids.value("SELECT ok FROM finding WHERE capability = 'by id'") == "0");
  const auto said = [](Served& served) {
    return fmt::format("{}", fmt::join(served.study.listener.notices, "\n"));
  };
  INFO(said(no_ids));
  CHECK(contains(said(no_ids), "arm a: preflight of arm a: exact read: missing_label"));
  CHECK(contains(said(no_ids), "hint: this server reads: top-k ≤ 32"));
  CHECK(contains(said(no_ids),
                 "--field /backends/0/read --from '\"exact\"' --to '\"top-k\"' --field "
                 "/backends/0/k --from null --to 32 --why"));

  Served too_many(script("vllm"));
  too_many.backend()["read"] = "top-k";
  too_many.backend()["k"] = 64;
  CHECK(too_many.run().exit_code() == 5);
  CHECK(too_many.answers() == "0");
  CHECK(contains(said(too_many), "plan.json --field /backends/0/k --from 64 --to 32 --why TEXT"));
  CHECK(too_many.value("SELECT count(*) FROM event WHERE kind = 'hint'") == "1");
}

TEST_CASE("everything in which a server contradicts the plan is named at once, with one remedy") {
  Served served(script("llamacpp"));
  served.backend()["model"] = "another";
  served.backend()["context"] = 999999;
  CHECK(served.run().exit_code() == 5);
  const std::string said = fmt::format("{}", fmt::join(served.study.listener.notices, "\n"));
  INFO(said);
  CHECK(contains(said, "model: test-model (plan: another); context: "));
  CHECK(contains(said, "tokens (plan: 999999)"));
  CHECK(contains(said,
                 "--field /backends/0/model --from '\"another\"' --to '\"test-model\"' --field "
                 "/backends/0/context --from 999999 --to "));
}

TEST_CASE("replies in chunks and gzip are replies like any other") {
  Served served(script("vllm", {{{"do", {{"chunked", true}, {"gzip", true}}}}}));
  CHECK(served.run().exit_code() == 0);
  CHECK(served.answers() == "8");
}

TEST_CASE(
    "A1: 200 with {\"token_id:0\": -9999.0} is asked again alone, once, then it is an item error") {
  Served recovers(script(
      "vllm", {{{"containing", reads_of(2)}, {"nth", {1}}, {"do", {{"spoil", "sentinel"}}}}}));
  recovers.backend()["concurrency"] = 4;
  CHECK(recovers.run().exit_code() == 0);
  CHECK(recovers.answers() == "8");
  CHECK(recovers.failures() == Failures{"logprob_sentinel 1 0"});

  Served stays(script("vllm", {{{"containing", reads_of(2)}, {"do", {{"spoil", "sentinel"}}}}}));
  const RunResult result = stays.run();
  CHECK(result.exit_code() == 4);
  CHECK(result.missing_reads == 2);
  CHECK(stays.answers() == "6");
  CHECK(stays.failures() == Failures{"logprob_sentinel 1 0", "logprob_sentinel 2 1",
                                     "logprob_sentinel 1 0", "logprob_sentinel 2 1"});
}

TEST_CASE("401, 403 and 404 stop an arm at once") {
  const std::string envelope = GENERATE("string-401", "forbidden", "model-404");
  Served served(script(
      "llamacpp",
      {{{"path", "/completion"}, {"containing", reads_of(2)}, {"do", {{"envelope", envelope}}}}}));
  const RunResult result = served.run();
  CHECK(result.exit_code() == 4);  // it did serve; the rest of its reads is missing
  CHECK(result.missing_reads == 5);
  CHECK(served.answers() == "3");  // two smoke reads and record 1
  CHECK(served.failures() == Failures{"http_error 1 1"});
}

TEST_CASE(
    "server failures in a row open the circuit breaker: exit code 5, and the same command goes "
    "on") {
  const auto fails = [](int record, int times) {
    return Json{{"path", "/completion"},
                {"containing", reads_of(record)},
                {"to", times},
                {"do", {{"envelope", "html-502"}}}};
  };
  Served served(script("llamacpp", {fails(1, 2), fails(2, 1), fails(3, 1)}));
  served.backend()["breaker"] = 4;
  served.backend()["attempts"] = 1;
  const RunResult broken = served.run();
  REQUIRE(broken.exit_code() == 5);
  CHECK(broken.outcome() == "backend");
  CHECK(served.value("SELECT exit_code || outcome FROM run") == "5backend");
  CHECK(contains(served.study.listener.notices.back(),
                 "4 server failures in a row, the last one: HTTP 502: 502 Bad Gateway"));
  CHECK(served.answers() == "2");
  CHECK(served.run().exit_code() == 0);
  CHECK(served.answers() == "8");
}

TEST_CASE("A9: a server that computes NaN is final for the item and counts for the breaker") {
  Served served(script(
      "vllm",
      {{{"path", "/v1/completions"}, {"containing", reads_of(2)}, {"do", {{"envelope", "nan"}}}}}));
  served.backend()["breaker"] = 1;
  CHECK(served.run().exit_code() == 5);
  CHECK(served.failures() == Failures{"server_nan 1 1"});
}

TEST_CASE("A9: NaN three times in a row stops the run, and twice does not") {
  const int in_a_row = GENERATE(2, 3);
  Json nan = {{"path", "/v1/completions"}, {"do", {{"envelope", "nan"}}}};
  std::vector<Json> rules;
  // The reads after smoke come one by one: two records of each subset have none yet but these.
  for (int i = 1; i <= in_a_row; ++i) {
    nan["containing"] = reads_of(i);
    rules.push_back(nan);
  }
  Served served(script("vllm", rules));
  served.backend()["breaker"] = 3;
  const RunResult result = served.run();
  CHECK(result.exit_code() == (in_a_row == 3 ? 5 : 4));
  CHECK(result.broken_arms.size() == (in_a_row == 3 ? 1U : 0U));
  CHECK(served.value("SELECT DISTINCT class || final FROM failure") == "server_nan1");
}

TEST_CASE("D8: every envelope, once in a run") {
  struct Case {
    const char* envelope;
    bool retried;
    int exit_code;
    const char* message;
  };
  const Case each = GENERATE(
      Case{"openai", false, 4, "HTTP 400: The request is wrong."},
      Case{"flat", false, 4, "HTTP 400: The request is wrong."},
      Case{"pydantic", false, 4, "HTTP 400: [{'type': 'missing', 'loc': ('body', 'prompt'), 'msg'"},
      Case{"detail-list", false, 4, "HTTP 422: body.questions: Field required"},
      Case{"string-401", false, 4, "HTTP 401: Unauthorized"},
      Case{"detail-401", false, 4, "HTTP 401: The key is not valid."},
      Case{"forbidden", false, 4, "HTTP 403: Forbidden"},
      Case{"model-404", false, 4, "HTTP 404: The model `x` does not exist."},
      Case{"ollama", false, 4, "HTTP 404: model 'x' not found"},
      Case{"busy", true, 0, "HTTP 429: Rate limit reached"},
      Case{"loading", true, 0, "HTTP 503: Loading model"},
      Case{"overloaded", true, 0, "HTTP 529: Overloaded"},
      Case{"html-502", true, 0, "HTTP 502: 502 Bad Gateway"},
      Case{"list-index", true, 0, "HTTP 500: list index out of range"},
      Case{"nan", false, 4, "HTTP 500: Out of range float values are not JSON compliant: nan"},
      Case{"empty-500", true, 0, "HTTP 500"});
  Served served(script("llamacpp", {{{"path", "/completion"},
                                     {"containing", reads_of(2)},
                                     {"nth", {1}},
                                     {"do", {{"envelope", each.envelope}}}}}));
  INFO(each.envelope);
  CHECK(served.run().exit_code() == each.exit_code);
  CHECK(served.value("SELECT count(*) FROM failure") == "1");
  CHECK(served.value("SELECT final FROM failure") == (each.retried ? "0" : "1"));
  const std::string message = served.value("SELECT message FROM failure");
  CHECK(message.rfind(each.message, 0) == 0);
}

TEST_CASE("the test server knows no envelope that D8 leaves out") {
  CHECK(test_server::envelope_names().size() == 16);
}

TEST_CASE("D5: silence, half a body and sudden ends are told apart, and never parsed") {
  struct Case {
    const char* ending;
    const char* failure;
  };
  const Case each =
      GENERATE(Case{"stall", "timeout 1 0"}, Case{"stall_after_header", "timeout 1 0"},
               Case{"stall_in_body", "timeout 1 0"}, Case{"partial", "partial_body 1 0"},
               Case{"close_after_header", "partial_body 1 0"},
               Case{"reset_after_header", "partial_body 1 0"});
  Served served(script("llamacpp", {{{"path", "/completion"},
                                     {"containing", reads_of(2)},
                                     {"nth", {1}},
                                     {"do", {{"end", each.ending}}}}}));
  served.backend()["timeouts"] = {{"connect_s", 2}, {"first_byte_s", 0.5}, {"total_s", 1}};
  INFO(each.ending);
  CHECK(served.run().exit_code() == 0);
  CHECK(served.failures() == Failures{each.failure});
  CHECK(served.answers() == "8");
}

TEST_CASE(
    "D3: idle connections closed after 1 s, a pause of 2 s: a fresh socket, and nobody hears of "
    "it") {
  TestServer server({{"kind", "llamacpp"}, {"idle_close_s", 1}});
  const auto transport = make_curl_transport();
  Endpoint endpoint;
  endpoint.base_url = server.url();
  const HttpRequest props{"GET", "/props", ""};
  CHECK(exchange(*transport, endpoint, props).status == 200);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const HttpReply second = exchange(*transport, endpoint, props);
  CHECK(second.transport == TransportStatus::ok);
  CHECK(second.status == 200);
  CHECK(server.connections() == 2);
  CHECK(server.requests() == 2);
}

TEST_CASE(
    "D3: a reset instead of an answer costs a kept connection one silent try, a read no attempt") {
  Served served(script("llamacpp", {{{"path", "/completion"},
                                     {"containing", reads_of(2)},
                                     {"nth", {1}},
                                     {"do", {{"end", GENERATE("reset", "close")}}}}}));
  served.backend()["attempts"] = 1;
  CHECK(served.run().exit_code() == 0);
  CHECK(served.failures().empty());
  CHECK(served.answers() == "8");

  // The fresh connection has no such excuse.
  Served again(script("llamacpp", {{{"path", "/completion"},
                                    {"containing", reads_of(2)},
                                    {"nth", {1, 2}},
                                    {"do", {{"end", "reset"}}}}}));
  CHECK(again.run().exit_code() == 0);
  CHECK(again.failures() == Failures{"reset 1 0"});
}

TEST_CASE("D10: refused for 3 s, then fine") {
  Json how = script("llamacpp");
  how["listen_after_s"] = 3;
  Served served(how);
  SystemClock clock;
  served.study.clock = &clock;
  const auto start = clock.monotonic();
  CHECK(served.run().exit_code() == 0);
  CHECK(served.answers() == "8");
  CHECK(clock.monotonic() - start >= std::chrono::milliseconds(2500));
  CHECK(served.failures().empty());
}

TEST_CASE(
    "D10: nobody there at all: a bounded wait, exit code 5, and a store that can be looked at") {
  Study study;
  study.only(Study::served("exact", "llamacpp", "http://127.0.0.1:1"));
  study.lock();
  const auto start = study.clock->monotonic();
  const RunResult result = study.run();
  CHECK(result.exit_code() == 5);
  const auto waited = study.clock->monotonic() - start;
  CHECK(waited >= std::chrono::seconds(4));
  CHECK(waited <= std::chrono::seconds(40));
  REQUIRE_FALSE(study.listener.notices.empty());
  CHECK(contains(study.listener.notices.back(), "http://127.0.0.1:1 is not ready after"));
  CHECK(study.value("SELECT count(*) FROM prediction") == "0");
}

TEST_CASE("a server that is still loading is waited for; one that is busy is asked again") {
  Served served(script(
      "llamacpp", {{{"path", "/health"}, {"to", 3}, {"do", {{"envelope", "loading"}}}},
                   {{"path", "/props"},
                    {"nth", {1, 3}},
                    {"do", {{"envelope", "busy"}, {"headers", {{"retry-after-ms", "1500"}}}}}}}));
  const auto start = served.study.clock->monotonic();
  CHECK(served.run().exit_code() == 0);
  CHECK(served.study.clock->monotonic() - start >= std::chrono::milliseconds(3000));
}

TEST_CASE("E1: model A, then model B, into one store: nothing of A is reused") {
  Json how = script("llamacpp");
  how["model"] = "model-a";
  auto server = std::make_unique<TestServer>(how);
  Study study;
  study.only(Study::served("exact", "llamacpp", server->url()));
  study.lock();
  CHECK(study.run().exit_code() == 0);
  how["model"] = "model-b";
  how["port"] = server->port();
  server.reset();
  server = std::make_unique<TestServer>(how);
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT count(*) FROM prediction") == "16");
  CHECK(study.value("SELECT count(*) FROM v_prediction") == "8");
  CHECK(study.value("SELECT count(DISTINCT configuration_id) FROM prediction") == "2");
  // And B again: everything is there.
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT count(*) FROM prediction") == "16");
}

TEST_CASE("E2: five repeats are five calls") {
  Served served(script("llamacpp"));
  served.study.plan()["repeats"] = 5;
  RunOptions options;
  options.record = served.study.folder();
  CHECK(served.run(options).exit_code() == 0);
  CHECK(served.answers() == "40");
  CHECK(served.value("SELECT count(DISTINCT repeat) FROM prediction") == "5");
  CHECK(calls(served.study, reads_of(2)) == 10);  // one record in each subset
}

TEST_CASE("E5: attempts that are stopped half-way add up, and nothing is asked twice") {
  Served served(script("llamacpp"));
  RunOptions options;
  options.record = served.study.folder();
  std::int64_t stop_at = 3;
  served.study.listener.on_progress = [&](const Progress& progress) {
    if (progress.done == stop_at) served.study.interrupt.asked = 1;
  };
  CHECK(served.run(options).exit_code() == 130);
  CHECK(served.answers() == "3");
  served.study.interrupt.asked = 0;
  stop_at = 5;
  CHECK(served.run(options).exit_code() == 130);
  CHECK(served.answers() == "5");
  served.study.interrupt.asked = 0;
  stop_at = -1;
  CHECK(served.run(options).exit_code() == 0);
  CHECK(served.answers() == "8");
  for (const int record : {1, 2, 3}) CHECK(calls(served.study, reads_of(record)) == 2);
}

TEST_CASE("a server that is another one after the reads is drift that names the fact") {
  Served served(script(
      "llamacpp", {{{"containing", reads_of(3)}, {"nth", {2}}, {"do", {{"version", "2.0.0"}}}}}));
  const RunResult result = served.run();
  CHECK(result.exit_code() == 3);
  REQUIRE(result.drift.size() == 1);
  CHECK(result.drift[0] ==
        "arm a: the server changed while it was read from: build: registered 1.0.0, found 2.0.0");
  // Asked again it is a new configuration.
  CHECK(served.run().exit_code() == 0);
  CHECK(served.value("SELECT count(*) FROM v_prediction") == "8");
  CHECK(served.answers() == "16");
}

TEST_CASE("a redirect is final, names the other host, and is not followed") {
  TestServer elsewhere(script("llamacpp"));
  Served served(
      script("llamacpp", {{{"path", "/completion"},
                           {"containing", reads_of(2)},
                           {"do", {{"redirect", elsewhere.url() + "/completion?x=1"}}}}}));
  CHECK(served.run().exit_code() == 4);
  CHECK(served.failures() == Failures{"http_error 1 1", "http_error 1 1"});
  CHECK(
      served.value("SELECT message FROM failure") ==
      fmt::format("HTTP 302: redirected to 127.0.0.1:{}, which is not followed", elsewhere.port()));
  CHECK(elsewhere.connections() == 0);
}

TEST_CASE("a recorded run is replayed to the bit, as often as one likes") {
  const std::string kind = GENERATE("llamacpp", "vllm", "sglang");
  // One read is refused once, so that the transcript holds a failure, too.
  Served served(
      script(kind, {{{"containing", reads_of(2)}, {"nth", {3}}, {"do", {{"envelope", "busy"}}}}}));
  served.backend()["concurrency"] = 3;
  served.study.plan()["repeats"] = 2;
  RunOptions options;
  options.record = served.study.folder() / "recorded";
  std::filesystem::create_directories(options.record);
  REQUIRE(served.run(options).exit_code() == 0);
  const std::vector<std::string> measured = numbers_of(served.study);
  REQUIRE(measured.size() == 32);
  const auto failures = served.failures().size();
  CHECK(failures > 0);

  for (int time = 0; time < 2; ++time) {
    Study study;
    study.plan() = served.study.plan();
    replay(study, options.record / "a.transcript.jsonl");
    study.lock();
    CHECK(study.run().exit_code() == 0);
    CHECK(numbers_of(study) == measured);
    CHECK(study.value("SELECT count(*) FROM failure") == std::to_string(failures));
    CHECK(study.value("SELECT count(*) FROM configuration") == "1");
  }
}

TEST_CASE("E10: a torn transcript is gone on with, and replayed, with a word about its end") {
  Served served(script("llamacpp"));
  RunOptions options;
  options.record = served.study.folder();
  options.limit = 2;
  REQUIRE(served.run(options).exit_code() == 0);
  const auto path = options.record / "a.transcript.jsonl";
  const std::string text = served.study.read("a.transcript.jsonl");
  served.study.files().replace(path, text.substr(0, text.size() - 40));
  options.limit.reset();
  const auto told = [](const Study& study) {
    return std::count_if(
        study.listener.notices.begin(), study.listener.notices.end(),
        [](const std::string& notice) { return contains(notice, "it is torn and was left out"); });
  };
  CHECK(served.run(options).exit_code() == 0);
  CHECK(told(served.study) == 1);
  CHECK(served.value("SELECT count(*) FROM v_event WHERE kind = 'warning' AND detail LIKE "
                     "'%it is torn and was left out%'") == "1");
  CHECK(served.answers() == "8");
  const std::string whole = served.study.read("a.transcript.jsonl");
  CHECK(parse_transcript(whole, "t").notice.empty());

  served.study.files().replace(path, whole + "{\"n\":99,\"meth");
  Study study;
  study.plan() = served.study.plan();
  replay(study, path);
  study.lock();
  study.run();
  CHECK(told(study) == 1);
  CHECK(study.value("SELECT count(*) > 0 FROM prediction") == "1");
}

TEST_CASE("a replay of another file is drift; what was not recorded is a failure of its own") {
  Served served(script("llamacpp"));
  RunOptions options;
  options.record = served.study.folder();
  REQUIRE(served.run(options).exit_code() == 0);
  Study study;
  study.plan() = served.study.plan();
  replay(study, options.record / "a.transcript.jsonl");
  study.lock();
  const std::string text = study.read("prereg/a.transcript.jsonl");
  study.write("prereg/a.transcript.jsonl", text + "\n");
  const Error other = thrown([&] { study.run(); });
  CHECK(other.kind() == ErrorKind::drift);
  CHECK(contains(other.what(), "a.transcript.jsonl: registered"));

  // Without the reads of record 2.
  std::string shorter;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end + 1 - at);
    if (!contains(line, reads_of(2))) shorter += line;
    at = end + 1;
  }
  Study without;
  without.plan() = served.study.plan();
  without.write("shorter.jsonl", shorter);
  replay(without, without.folder() / "shorter.jsonl");
  without.lock();
  CHECK(without.run().exit_code() == 4);
  CHECK(without.value("SELECT count(*) FROM prediction") == "6");
  CHECK(without.value("SELECT DISTINCT class || final FROM failure") == "not_recorded1");
}

TEST_CASE("what an earlier run gave up is asked again, unless the call says no") {
  // Of one subset's record 2, and only once: the server mends itself after that.
  Served served(script(
      "llamacpp",
      {{{"containing", reads_of(2)}, {"to", 2}, {"do", {{"status", 400}, {"body", "{}"}}}}}));
  CHECK(served.run().exit_code() == 4);
  CHECK(served.answers() == "6");
  const std::int64_t before = served.server.requests();
  RunOptions options;
  options.retry_failed = false;
  const RunResult left = served.run(options);
  CHECK(left.exit_code() == 4);
  CHECK(left.missing_reads == 2);
  CHECK(served.answers() == "6");
  CHECK(contains(fmt::format("{}", fmt::join(served.study.listener.notices, "\n")),
                 "2 reads that earlier runs gave up: not asked again"));
  // Identity and preflight are asked, and no read.
  CHECK(served.server.requests() > before);
  CHECK(served.value("SELECT count(*) FROM failure WHERE run_id = 2") == "0");
  CHECK(served.run().exit_code() == 0);
  CHECK(served.answers() == "8");
}

TEST_CASE("F3: no transaction is open while a reply is waited for") {
  Served served(script("llamacpp", {{{"containing", reads_of(2)}, {"do", {{"delay_s", 0.7}}}}}));
  std::atomic<bool> ended{false};
  std::chrono::nanoseconds longest_refused{0};
  int granted = 0;
  std::thread other([&] {
    // Once reads are under way: whoever makes a store has it for itself until its tables are there.
    while (!ended && served.server.requests() < 20)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::optional<std::chrono::steady_clock::time_point> refused;
    std::optional<Db> db;
    while (!ended) {
      try {
        if (!db) {
          db.emplace(served.study.db_path(), Db::Mode::read_write);
          db->exec("PRAGMA busy_timeout = 0");
        }
        db->exec("BEGIN IMMEDIATE");
        db->exec("ROLLBACK");
        ++granted;
        refused.reset();
      } catch (const Error&) {
        if (!refused) refused = std::chrono::steady_clock::now();
        longest_refused = std::max<std::chrono::nanoseconds>(
            longest_refused, std::chrono::steady_clock::now() - *refused);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  int code = -1;
  std::string problem;
  try {
    code = served.run().exit_code();
  } catch (const Error& error) {
    problem = error.what();
  }
  ended = true;
  other.join();
  CHECK(problem.empty());
  CHECK(code == 0);
  CHECK(granted > 20);
  // A commit takes the lock for a moment; a reply takes 700 ms.
  CHECK(longest_refused < std::chrono::milliseconds(500));
}
