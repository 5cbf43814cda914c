// Ollama's own interface, with replies in the form of its sources (server/routes.go, api/types.go).
#include "backend/ollama.h"

#include <fmt/format.h>

#include "backend/dialogues.h"
#include "base/error.h"
#include "base/sha256.h"

using namespace preval;
using namespace preval::test;

namespace {

Ollama backend(Template chat_template = Template::chat, LeadForm lead = LeadForm::assistant) {
  BackendSpec spec;
  spec.id = "local";
  spec.kind = "ollama";
  spec.read = ReadMode::text_top_k;
  spec.k = 3;
  spec.model = "tiny";
  spec.lead = lead;
  spec.spellings = {" {label}"};
  Checkpoint checkpoint;
  checkpoint.chat_template = chat_template;
  return {spec, checkpoint, {}};
}

Outcome<Answer> read(const Ollama& server, std::deque<HttpReply> replies) {
  const Prompt asked = hot_or_not();
  return converse_with<Answer>(*server.read({nullptr, &asked, "none", 0}, {}, {}),
                               std::move(replies));
}

constexpr const char* kTokens =
    R"({"token":" no","logprob":-0.75,"bytes":[32,110,111],"top_logprobs":[)"
    R"({"token":" no","logprob":-0.75,"bytes":[32,110,111]},)"
    R"({"token":" The","logprob":-1.5,"bytes":[32,84,104,101]},)"
    R"({"token":" yes","logprob":-3.5,"bytes":[32,121,101,115]}]})";

struct Facts {
  std::string model = "tiny", reason = "length";
  int prompt_tokens = 24, tokens = 1;
};

HttpReply answer_reply(const std::string& logprobs, const Facts& facts = {}) {
  return ok_reply(fmt::format(
      R"({{"model":"{}","created_at":"2026-11-30T20:00:00Z","message":{{"role":"assistant",)"
      R"("content":" no"}},"done":true,"done_reason":"{}","total_duration":5000000,)"
      R"("prompt_eval_count":{},"eval_count":{}{}}})",
      facts.model, facts.reason, facts.prompt_tokens, facts.tokens, logprobs));
}

HttpReply one_token(const Facts& facts = {}) {
  return answer_reply(fmt::format(R"(,"logprobs":[{}])", kTokens), facts);
}

constexpr const char* kShow =
    R"({"license":"apache","modelfile":"FROM x","template":"{{ .Prompt }}","details":{"parent_model":"",)"
    R"("format":"gguf","family":"llama","families":["llama"],"parameter_size":"134.52M",)"
    R"("quantization_level":"Q4_1"},"capabilities":["completion"]})";
constexpr const char* kTags =
    R"({"models":[{"name":"other:latest","model":"other:latest","digest":"11"},)"
    R"({"name":"tiny:latest","model":"tiny:latest","size":98362432,"digest":"ab12"}]})";
const HttpReply kVersion = ok_reply(R"({"version":"0.12.11"})");

}  // namespace

TEST_CASE("ollama: a chat with the beginning of the answer") {
  const auto outcome = read(backend(), {one_token()});
  REQUIRE(outcome.asked.size() == 1);
  CHECK(outcome.asked[0].method == "POST");
  CHECK(outcome.asked[0].path == "/api/chat");
  CHECK(outcome.asked[0].body ==
        R"({"model":"tiny","messages":[{"role":"system","content":"Is it hot?"},)"
        R"({"role":"user","content":"Tea."},{"role":"assistant","content":"decision:"}],)"
        R"("think":false,"stream":false,"truncate":false,"shift":false,"logprobs":true,)"
        R"("top_logprobs":3,"options":{"num_predict":1,"temperature":0.0,"num_ctx":2048}})");
  const Answer& answer = outcome.result();
  CHECK(answer.model == "tiny");
  CHECK(answer.prompt_tokens == 24);
  CHECK(answer.requests == 1);
  CHECK(answer.latency_ms == 10);
  CHECK(answer.distribution.predicted == 1);
  CHECK(answer.distribution.labels[0].logprob == -3.5);
  CHECK(answer.distribution.labels[1].source == LabelSource::text);
  CHECK(answer.distribution.floor == -8.5);
}

TEST_CASE("ollama: a chat without a lead") {
  const auto outcome = read(backend(Template::chat, LeadForm::none), {one_token()});
  CHECK(outcome.asked[0].body.find("decision:") == std::string::npos);
  CHECK(outcome.asked[0].body.find("assistant") == std::string::npos);
}

TEST_CASE("ollama: plain text for a checkpoint without a template") {
  const auto outcome = read(backend(Template::none), {one_token()});
  CHECK(outcome.asked[0].path == "/api/generate");
  CHECK(outcome.asked[0].body ==
        R"({"model":"tiny","raw":true,"prompt":"Is it hot?\n\nTea.\n\ndecision:",)"
        R"("think":false,"stream":false,"truncate":false,"shift":false,"logprobs":true,)"
        R"("top_logprobs":3,"options":{"num_predict":1,"temperature":0.0,"num_ctx":2048}})");
  const auto bare = read(backend(Template::none, LeadForm::none), {one_token()});
  CHECK(bare.asked[0].body.find(R"("prompt":"Is it hot?\n\nTea.\n\n")") != std::string::npos);
}

TEST_CASE("A10: ollama: a version that ignores the request for log-probabilities") {
  for (const char* logprobs : {"", R"(,"logprobs":null)", R"(,"logprobs":[])"}) {
    INFO(logprobs);
    const auto outcome = read(backend(), {answer_reply(logprobs)});
    CHECK(outcome.failure().error_class == "no_logprobs");
    CHECK(outcome.failure().message ==
          "no log-probabilities from Ollama: 0.12.11 and later give them, for models that run here "
          "and not at ollama.com");
    CHECK_FALSE(outcome.failure().retry);
  }
  const Ollama server = backend();
  server.version() = "0.9.6";
  CHECK(read(server, {answer_reply("")}).failure().message.find("from Ollama 0.9.6: 0.12.11 and") !=
        std::string::npos);
  CHECK(read(server, {answer_reply("", {"tiny", "stop", 24, 1})})
            .failure()
            .message.find("unless the first token ends the answer") != std::string::npos);
  CHECK(read(backend(), {answer_reply(R"(,"logprobs":[{"token":" no","logprob":-0.75}])")})
            .failure()
            .error_class == "no_logprobs");
}

TEST_CASE("ollama: a prompt that fills the context was cut") {
  CHECK(read(backend(), {one_token({"tiny", "length", 2048, 1})}).failure().error_class ==
        "truncated");
  CHECK(read(backend(), {one_token({"tiny", "length", 2048, 1})}).failure().message ==
        "the prompt fills the context of 2048 tokens: it was cut");
  CHECK(read(backend(), {one_token({"tiny", "length", 2047, 1})}).result().prompt_tokens == 2047);
}

TEST_CASE("ollama: replies that cannot be used") {
  const auto failure = [](HttpReply reply) {
    return read(backend(), {std::move(reply)}).failure();
  };
  CHECK(failure(ok_reply("busy")).error_class == "invalid_json");
  CHECK(failure(ok_reply("[]")).message == "the reply does not say that it is done");
  CHECK(failure(ok_reply(R"({"model":"tiny","done":false})")).error_class == "unexpected_reply");
  CHECK(failure(answer_reply("", {"tiny", "load", 0, 0})).error_class == "unexpected_reply");
  CHECK(failure(one_token({"tiny", "length", 24, 2})).error_class == "unexpected_reply");
  CHECK(failure(answer_reply(fmt::format(R"(,"logprobs":[{0},{0}])", kTokens))).message ==
        "several tokens were generated where one was asked for");
  CHECK(
      failure(status_reply(400, R"({"error":"top_logprobs must be between 0 and 20"})")).message ==
      "HTTP 400: top_logprobs must be between 0 and 20");
  CHECK(failure(status_reply(404, R"({"error":"model 'tiny' not found"})")).message ==
        "HTTP 404: model 'tiny' not found");
}

TEST_CASE("ollama: another model's answer is none") {
  CHECK(read(backend(), {one_token({"other", "length", 24, 1})}).failure().message ==
        "answered by other, where tiny was asked");
  CHECK(read(backend(), {one_token({"tiny:latest", "length", 24, 1})}).result().model ==
        "tiny:latest");
}

TEST_CASE("ollama: who answers") {
  const Ollama server = backend();
  const auto outcome =
      converse_with<Identity>(*server.identify(), {kVersion, ok_reply(kShow), ok_reply(kTags)});
  REQUIRE(outcome.asked.size() == 3);
  CHECK(outcome.asked[0].path == "/api/version");
  CHECK(outcome.asked[1].path == "/api/show");
  CHECK(outcome.asked[1].body == R"({"model":"tiny"})");
  CHECK(outcome.asked[2].path == "/api/tags");
  CHECK(outcome.result().facts == Json{{"engine", "ollama"},
                                       {"version", "0.12.11"},
                                       {"model", "tiny"},
                                       {"format", "gguf"},
                                       {"family", "llama"},
                                       {"parameter_size", "134.52M"},
                                       {"quantization_level", "Q4_1"},
                                       {"chat_template_sha256", sha256_hex("{{ .Prompt }}")},
                                       {"digest", "ab12"}});
  CHECK(server.version() == "0.12.11");
  // Without a template, without details, without a digest, elsewhere.
  const Ollama plain = backend(Template::none);
  CHECK(converse_with<Identity>(*plain.identify(),
                                {kVersion, ok_reply(R"({"remote_host":"https://ollama.com:443"})"),
                                 ok_reply(R"({"models":[]})")})
            .result()
            .facts == Json{{"engine", "ollama"},
                           {"version", "0.12.11"},
                           {"model", "tiny"},
                           {"runs_at", "https://ollama.com:443"}});
}

TEST_CASE("ollama: a server that is none, or has not the model") {
  const auto failure = [](std::deque<HttpReply> replies) {
    return converse_with<Identity>(*backend().identify(), std::move(replies)).failure();
  };
  CHECK(failure({ok_reply("{}")}).message == "/api/version is not that of an Ollama server");
  CHECK(failure({ok_reply("[]")}).error_class == "unexpected_reply");
  CHECK(failure({status_reply(404, "404 page not found")}).http_status == 404);
  CHECK(failure({kVersion, status_reply(404, R"({"error":"model 'tiny' not found"})")}).message ==
        "HTTP 404: model 'tiny' not found");
  CHECK(failure({kVersion, ok_reply("[]")}).message == "/api/show is no object");
  CHECK(failure({kVersion, ok_reply(kShow), ok_reply("{}")}).message ==
        "/api/tags lists no models");
  BackendSpec nameless;
  nameless.id = "local";
  CHECK_THROWS_AS(Ollama(nameless, {}, {}), Error);
}

TEST_CASE("ollama: health and nonsense") {
  CHECK(backend().health().path == "/api/version");
  CHECK(backend().health().method == "GET");
  CHECK(backend().nonsense().path == "/api/generate");
}
