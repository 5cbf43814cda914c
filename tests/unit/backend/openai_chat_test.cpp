// Chat completions, with replies trimmed from what llama.cpp's server sent and from OpenAI's
// documentation.
#include "backend/openai_chat.h"

#include <fmt/format.h>

#include "backend/dialogues.h"
#include "base/error.h"

using namespace preval;
using namespace preval::test;

namespace {

BackendSpec spec(LeadForm lead = LeadForm::none) {
  BackendSpec spec;
  spec.id = "chat";
  spec.kind = "openai-chat";
  spec.read = ReadMode::text_top_k;
  spec.k = 3;
  spec.url = "http://127.0.0.1:8080";
  spec.model = "tiny";
  spec.lead = lead;
  return spec;
}

OpenAiChat backend(const BackendSpec& of = spec()) { return OpenAiChat(of, {}, {}); }

Outcome<Answer> read(const OpenAiChat& server, std::deque<HttpReply> replies) {
  const Prompt asked = hot_or_not();
  return converse_with<Answer>(*server.read({nullptr, &asked, "none", 0}, {}, {}),
                               std::move(replies));
}

constexpr const char* kTokens =
    R"({"id":5230,"token":"no","bytes":[110,111],"logprob":-0.75,"top_logprobs":[)"
    R"({"id":5230,"token":"no","bytes":[110,111],"logprob":-0.75},)"
    R"({"id":504,"token":"The","bytes":[84,104,101],"logprob":-1.5},)"
    R"({"id":10539,"token":"yes","bytes":[121,101,115],"logprob":-3.5}]})";

HttpReply chat_reply(const std::string& logprobs, const std::string& model = "/m/tiny.gguf",
                     int completion_tokens = 1) {
  return ok_reply(fmt::format(
      R"({{"choices":[{{"finish_reason":"length","index":0,"message":{{"role":"assistant",)"
      R"("content":"no"}}{}}}],"created":1796070076,"model":"{}","system_fingerprint":"b0-unknown",)"
      R"("object":"chat.completion","usage":{{"completion_tokens":{},"prompt_tokens":24,)"
      R"("total_tokens":25}},"id":"chatcmpl-1"}})",
      logprobs, model, completion_tokens));
}

HttpReply one_token(const std::string& model = "/m/tiny.gguf") {
  return chat_reply(fmt::format(R"(,"logprobs":{{"content":[{}],"refusal":null}})", kTokens),
                    model);
}

HttpReply two_tokens() {
  return chat_reply(fmt::format(R"(,"logprobs":{{"content":[{0},{0}]}})", kTokens));
}

}  // namespace

TEST_CASE("openai-chat: a request without a lead holds what the interface documents") {
  const auto outcome = read(backend(), {one_token()});
  REQUIRE(outcome.asked.size() == 1);
  CHECK(outcome.asked[0].method == "POST");
  CHECK(outcome.asked[0].path == "/v1/chat/completions");
  CHECK(outcome.asked[0].body ==
        R"({"model":"tiny","messages":[{"role":"system","content":"Is it hot?"},)"
        R"({"role":"user","content":"Tea."}],"logprobs":true,"top_logprobs":3,)"
        R"("max_completion_tokens":1,"temperature":0.0,"n":1})");
  const Answer& answer = outcome.result();
  CHECK(answer.model == "tiny.gguf");
  CHECK(answer.prompt_tokens == 24);
  CHECK(answer.requests == 1);
  CHECK(answer.latency_ms == 10);
  CHECK_FALSE(answer.native);
  CHECK(answer.distribution.predicted == 1);
  CHECK(answer.distribution.labels[0].logprob == -3.5);
  CHECK(answer.distribution.labels[1].logprob == -0.75);
  CHECK(answer.distribution.labels[1].source == LabelSource::text);
  CHECK(answer.distribution.floor == -8.5);
}

TEST_CASE("openai-chat: with a lead the answer is begun, and servers are told to go on with it") {
  const auto outcome = read(backend(spec(LeadForm::assistant)), {one_token()});
  CHECK(outcome.asked[0].body ==
        R"({"model":"tiny","messages":[{"role":"system","content":"Is it hot?"},)"
        R"({"role":"user","content":"Tea."},{"role":"assistant","content":"decision:"}],)"
        R"("logprobs":true,"top_logprobs":3,"max_completion_tokens":1,"temperature":0.0,"n":1,)"
        R"("continue_final_message":true,"add_generation_prompt":false,)"
        R"("chat_template_kwargs":{"enable_thinking":false}})");
  const Prompt asked = hot_or_not();
  CHECK(chat_read_body(backend(), asked, Sampling{0.7}).find(R"("temperature":0.7)") !=
        std::string::npos);
}

TEST_CASE("openai-chat: an address that ends in /v1 is the same server") {
  BackendSpec other = spec();
  other.url = "https://api.example.org/v1";
  CHECK(read(backend(other), {one_token()}).asked[0].path == "/chat/completions");
  CHECK(backend(other).health().path == "/models");
  CHECK(backend().health().path == "/v1/models");
  CHECK(backend().health().method == "GET");
  CHECK(backend().nonsense().body == R"({"model":"tiny","messages":"none"})");
}

TEST_CASE("openai-chat: spellings of the plan") {
  BackendSpec other = spec();
  other.spellings = {" {label}"};
  const auto none = read(backend(other), {one_token()});
  CHECK(none.failure().error_class == "no_label");
  CHECK(none.failure().message ==
        R"(no label among the 3 best tokens, which begin with "no", "The", "yes")");
  other.spellings = {"yes{label}", "{label}"};
  Prompt asked = hot_or_not();
  asked.labels = {"yes", "yesyes"};
  CHECK_THROWS_AS(backend(other).read({nullptr, &asked, "none", 0}, {}, {}), Error);
}

TEST_CASE("A10: openai-chat: a reply without log-probabilities") {
  for (const char* logprobs :
       {"", R"(,"logprobs":null)", R"(,"logprobs":[])", R"(,"logprobs":{})",
        R"(,"logprobs":{"content":null})", R"(,"logprobs":{"content":[]})",
        R"(,"logprobs":{"tokens":["no"],"token_logprobs":[-0.7]})",
        R"(,"logprobs":{"content":[{"token":"no","logprob":-0.75}]})",
        R"(,"logprobs":{"content":[{"token":"no","logprob":-0.75,"top_logprobs":[]}]})"}) {
    INFO(logprobs);
    const auto outcome = read(backend(), {chat_reply(logprobs)});
    CHECK(outcome.failure().error_class == "no_logprobs");
    CHECK_FALSE(outcome.failure().retry);
  }
}

TEST_CASE("openai-chat: a server that knows max_tokens only is asked so from then on") {
  const OpenAiChat server = backend();
  const auto outcome = read(server, {two_tokens(), one_token()});
  REQUIRE(outcome.asked.size() == 2);
  CHECK(outcome.asked[1].body.find(R"("max_tokens":1)") != std::string::npos);
  CHECK(outcome.asked[1].body.find("max_completion_tokens") == std::string::npos);
  CHECK(outcome.result().requests == 2);
  CHECK(outcome.result().latency_ms == 20);
  const auto next = read(server, {one_token()});
  CHECK(next.asked[0].body.find(R"("max_tokens":1)") != std::string::npos);
  // One that ignores both cannot be read.
  const auto never = read(backend(), {two_tokens(), two_tokens()});
  CHECK(never.failure().error_class == "unexpected_reply");
  CHECK(never.failure().message == "several tokens were generated where one was asked for");
  // Tokens that are counted and not shown were generated all the same.
  const std::string shown = fmt::format(R"(,"logprobs":{{"content":[{}]}})", kTokens);
  CHECK(read(backend(), {chat_reply(shown, "m", 64), chat_reply(shown, "m", 64)})
            .failure()
            .error_class == "unexpected_reply");
}

TEST_CASE("openai-chat: replies that cannot be used") {
  const auto failure = [](HttpReply reply) {
    return read(backend(), {std::move(reply)}).failure();
  };
  CHECK(failure(ok_reply("<html>busy</html>")).error_class == "invalid_json");
  CHECK(failure(ok_reply("{}")).message == "the reply has no choices");
  CHECK(failure(ok_reply(R"({"error":{"message":"no provider","code":502}})")).message ==
        "no choices: no provider");
  CHECK(failure(ok_reply(R"({"choices":[]})")).message == "0 choices where one was asked for");
  CHECK(failure(ok_reply(R"({"choices":[{},{}]})")).error_class == "unexpected_reply");
  CHECK(failure(ok_reply(R"({"choices":[5]})")).error_class == "no_logprobs");
  CHECK(failure(ok_reply(R"({"model":"a","model":"b","choices":[]})")).error_class ==
        "duplicate_key");
  CHECK(failure(status_reply(400, R"({"error":{"message":"Unrecognized request argument supplied: )"
                                  R"(continue_final_message","type":"invalid_request_error"}})"))
            .message == "HTTP 400: Unrecognized request argument supplied: continue_final_message");
  CHECK(failure(status_reply(429, R"({"error":{"message":"slow down"}})")).retry);
}

TEST_CASE("openai-chat: every answer comes from the model that gave the first one") {
  const OpenAiChat server = backend();
  CHECK(read(server, {one_token("tiny-2026-01-01")}).result().model == "tiny-2026-01-01");
  CHECK(read(server, {one_token("tiny-2026-01-01")}).result().model == "tiny-2026-01-01");
  const auto other = read(server, {one_token("tiny-2026-11-30")});
  CHECK(other.failure().error_class == "identity_changed");
  CHECK(other.failure().message ==
        "answered by tiny-2026-11-30, where tiny-2026-01-01 answered before");
}

TEST_CASE("openai-chat: who answers") {
  const OpenAiChat server = backend();
  const auto facts = [&](HttpReply reply) {
    return converse_with<Identity>(*server.identify(), {std::move(reply)}).result().facts;
  };
  CHECK(facts(ok_reply(R"({"data":[{"id":"other"},{"id":"tiny","owned_by":"vllm",)"
                       R"("max_model_len":2048}]})")) == Json{{"engine", "openai-chat"},
                                                              {"model", "tiny"},
                                                              {"listed", true},
                                                              {"owner", "vllm"},
                                                              {"context", 2048}});
  CHECK(facts(ok_reply(R"({"data":[{"id":"/m/tiny.gguf"}]})")) ==
        Json{{"engine", "openai-chat"}, {"model", "tiny"}, {"listed", false}});
  CHECK(facts(status_reply(404, "")) == Json{{"engine", "openai-chat"}, {"model", "tiny"}});
  CHECK(converse_with<Identity>(*server.identify(), {status_reply(401, "{}")})
            .failure()
            .http_status == 401);
}

TEST_CASE("openai-chat: what a plan cannot ask of it") {
  BackendSpec nameless = spec();
  nameless.model.clear();
  try {
    backend(nameless);
    FAIL("a model is needed");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(std::string(error.what()) == "backend chat: kind openai-chat needs \"model\"");
  }
  Checkpoint plain;
  plain.id = "base";
  plain.chat_template = Template::none;
  CHECK_THROWS_AS(OpenAiChat(spec(), plain, {}), Error);
  CHECK(make_backend(spec(), {}, {}) != nullptr);
}

TEST_CASE("openai-chat: prompts are not tokenised here") {
  const Prompt asked = hot_or_not();
  const auto outcome = converse_with<TokenPrompt>(*backend().tokenise({nullptr, &asked, "none", 0}),
                                                  std::deque<HttpReply>{});
  CHECK(outcome.asked.empty());
  CHECK(outcome.result().tokens.empty());
}
