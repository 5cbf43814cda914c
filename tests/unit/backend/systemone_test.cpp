// The conversation with a decision server: what is sent, who answers, what refuses.
#include "backend/systemone.h"

#include "backend/dialogues.h"
#include "base/error.h"
#include "suite/record.h"

using namespace preval;
using namespace preval::test;

namespace {

BackendSpec spec(const std::string& model = {}) {
  BackendSpec spec;
  spec.id = "decision";
  spec.kind = "systemone";
  spec.read = ReadMode::native;
  spec.url = "https://api.example.org";
  spec.model = model;
  return spec;
}

SystemOne backend(const std::string& model = {}) { return {spec(model), {}, {}}; }

constexpr const char* kLine =
    R"({"id":"r-1","family":"f","input":{"state":"The harbour was closed.","questions":{"decision":)"
    R"({"type":"noul","instructions":"Was it open?","criteria":{"false":"Closed.","true":"Open."}}}},)"
    R"("reference":{"target":false}})"
    "\n";

Record record(const std::string& line = kLine) {
  return read_records(line, "harbour", "all.jsonl", [](const std::string&) {}).front();
}

Outcome<Answer> read(const SystemOne& server, std::deque<HttpReply> replies) {
  const Record asked = record();
  const Prompt prompt = native_prompt(asked, "none");
  return converse_with<Answer>(*server.read({&asked, &prompt, "none", 0}, {}, {}),
                               std::move(replies));
}

HttpReply noul_reply(const std::string& model) {
  return ok_reply(R"({"model": ")" + model +
                  R"(", "answers": {"decision": {"type": "noul", "noul": 0.25}}, )"
                  R"("usage": {"input_tokens": 104, "output_tokens": 0}})");
}

void identify(const SystemOne& server, const std::string& models) {
  converse_with<Identity>(*server.identify(), {ok_reply(models), status_reply(404, "")}).result();
}

}  // namespace

TEST_CASE("systemone: the record's input is sent as it is, behind the model") {
  const auto outcome = read(backend("jev-1.13.0"), {noul_reply("jev-1.13.0")});
  REQUIRE(outcome.asked.size() == 1);
  CHECK(outcome.asked[0].method == "POST");
  CHECK(outcome.asked[0].path == "/v1/systemone");
  CHECK(
      outcome.asked[0].body ==
      R"({"model":"jev-1.13.0","state":"The harbour was closed.","questions":{"decision":)"
      R"({"type":"noul","instructions":"Was it open?","criteria":{"false":"Closed.","true":"Open."}}}})");
  const Answer& answer = outcome.result();
  CHECK(answer.requests == 1);
  CHECK(answer.latency_ms == 10);
  CHECK(answer.model == "jev-1.13.0");
  CHECK(answer.prompt_tokens == 104);
  CHECK(answer.distribution.labels[0].probability == 0.25);
  CHECK(systemone_body(R"({"state":1})", "a\"b") == R"({"model":"a\"b","state":1})");
  CHECK(systemone_body(R"({"state":1})", "") == R"({"state":1})");
}

TEST_CASE("systemone: without a model in the plan the first listed one is asked") {
  const SystemOne server = backend();
  CHECK(read(server, {noul_reply("x")}).asked[0].body.find("model") == std::string::npos);
  identify(server,
           R"({"object":"list","data":[{"id":"/m/tiny.gguf","owned_by":"llamacpp"},{"id":"b"}]})");
  const SystemOne other = backend();
  identify(other, R"({"data":[{"id":"/m/tiny.gguf"}]})");
  const auto outcome = read(other, {noul_reply("/m/tiny.gguf")});
  CHECK(outcome.asked[0].body.find(R"({"model":"/m/tiny.gguf","state":)") == 0);
  CHECK(outcome.result().model == "tiny.gguf");
}

TEST_CASE("systemone: an answer from another model than the plan's is refused") {
  const auto moved = read(backend("jev-1.13.0"), {noul_reply("jev-1.14.0")});
  CHECK(moved.failure().error_class == "identity_changed");
  CHECK(moved.failure().message == "answered by jev-1.14.0, where jev-1.13.0 was asked");
  // Where the plan names none, the first answer decides.
  const SystemOne any = backend();
  CHECK(read(any, {noul_reply("/m/a.gguf")}).result().model == "a.gguf");
  CHECK(read(any, {noul_reply("/m/b.gguf")}).failure().message ==
        "answered by b.gguf, where a.gguf was answering before");
  // A server that does not say is believed.
  CHECK(read(backend("jev-1.13.0"), {ok_reply(R"({"answers":{"decision":{"noul":0.5}}})")})
            .result()
            .model.empty());
}

TEST_CASE("systemone: refusals") {
  const auto failure = [](HttpReply reply) {
    return read(backend(), {std::move(reply)}).failure();
  };
  const Failure none = failure(status_reply(
      501,
      R"({"error":{"code":501,"message":"This model is not a decision model","type":"not_supported_error"}})"));
  CHECK(none.message == "HTTP 501: This model is not a decision model");
  CHECK_FALSE(none.retry);
  CHECK_FALSE(none.server);
  CHECK(failure(status_reply(401, R"({"detail":{"error_type":"auth","message":"bad key"}})"))
            .message == "HTTP 401: bad key");
  CHECK(failure(status_reply(422, R"({"detail":"request must be an object with a state"})"))
            .message == "HTTP 422: request must be an object with a state");
  CHECK(failure(status_reply(503, R"({"error":{"code":503,"message":"Loading model"}})")).retry);
  CHECK(failure(status_reply(529, "")).retry);
  CHECK(failure(ok_reply("{")).error_class == "invalid_json");
  CHECK(failure(ok_reply(R"({"answers":{"decision":{"noul":0.5,"noul":0.6}}})")).error_class ==
        "duplicate_key");
  CHECK(failure(ok_reply("[]")).error_class == "unexpected_reply");
}

TEST_CASE("systemone: who answers") {
  const auto outcome = [](const SystemOne& server, std::deque<HttpReply> replies) {
    return converse_with<Identity>(*server.identify(), std::move(replies));
  };
  const SystemOne server = backend();
  const auto full = outcome(server, {ok_reply(R"({"data":[{"id":"/m/tiny","owned_by":"vllm",)"
                                              R"("max_model_len":2048}]})"),
                                     ok_reply(R"({"version":"0.32.0"})")});
  CHECK(full.asked[0].path == "/v1/models");
  CHECK(full.asked[1].path == "/version");
  CHECK(full.result().facts == Json{{"engine", "systemone"},
                                    {"owner", "vllm"},
                                    {"context", 2048},
                                    {"model", "tiny"},
                                    {"version", "0.32.0"}});
  CHECK(server.model() == "/m/tiny");
  // A hosted interface tells less, and the plan's model stands above its list.
  CHECK(outcome(backend("jev-1.13.0"), {ok_reply(R"({"data":[{"id":"jev-latest"}]})"),
                                        status_reply(404, R"({"detail":"Not Found"})")})
            .result()
            .facts == Json{{"engine", "systemone"}, {"model", "jev-1.13.0"}});
  CHECK(outcome(backend(), {status_reply(404, ""), ok_reply("hello")}).result().facts ==
        Json{{"engine", "systemone"}});
  CHECK(outcome(backend(), {status_reply(403, "{}")}).failure().http_status == 403);
  CHECK(outcome(backend(), {status_reply(503, "{}")}).failure().retry);
}

TEST_CASE("systemone: a record that names a model itself") {
  std::string line = kLine;
  line.insert(line.find("\"state\""), R"("model":"other",)");
  const Record asked = record(line);
  const Prompt prompt = native_prompt(asked, "none");
  for (const char* model : {"", "jev-1.13.0"}) {
    const SystemOne server = backend(model);
    const auto outcome = converse_with<Answer>(*server.read({&asked, &prompt, "none", 0}, {}, {}),
                                               std::deque<HttpReply>{});
    CHECK(outcome.asked.empty());
    CHECK(outcome.failure().error_class == "record_refused");
    CHECK(outcome.failure().message ==
          "record r-1 (subset harbour, line 1): its input names a model, which is the plan's to "
          "name");
    CHECK_FALSE(outcome.failure().retry);
    CHECK_FALSE(outcome.failure().server);
    CHECK_FALSE(outcome.failure().alone);
  }
}

TEST_CASE("systemone: health, nonsense and tokens") {
  CHECK(backend().health().path == "/v1/models");
  CHECK(backend().health().method == "GET");
  CHECK(backend().nonsense().path == "/v1/systemone");
  CHECK(converse_with<TokenPrompt>(*backend().tokenise({}), std::deque<HttpReply>{})
            .result()
            .tokens.empty());
  CHECK(make_backend(spec(), {}, {}) != nullptr);
}
