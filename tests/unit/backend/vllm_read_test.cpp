// Exact and top-k reads of vLLM, in which the labels are tokens 7, 8 and 9 of a prompt of five.
#include <fmt/format.h>

#include <cmath>

#include "backend/vllm.h"
#include "backend/vllm_replies.h"

using namespace preval;
using namespace preval::test;

namespace {

Vllm backend(ReadMode mode = ReadMode::exact, int k = 3) {
  BackendSpec spec;
  spec.kind = "vllm";
  spec.read = mode;
  spec.k = k;
  return Vllm(spec, {}, {});
}

Outcome<Answer> read(const Vllm& server, HttpReply reply, const Sampling& sampling = {}) {
  return converse_with<Answer>(*server.read({}, {{1, 2, 3, 4, 5}, {7, 8, 9}}, sampling),
                               std::deque<HttpReply>{std::move(reply)});
}

Outcome<Answer> exact(HttpReply reply) { return read(backend(), std::move(reply)); }

Outcome<Answer> top_k(HttpReply reply, int k = 3) {
  return read(backend(ReadMode::top_k, k), std::move(reply));
}

}  // namespace

TEST_CASE("vllm: an exact read holds every label and the sampled token") {
  const auto outcome = exact(vllm_listed({{19, -0.25}, {7, -2.5}, {8, -1.5}, {9, -9.0}}, 19));
  REQUIRE(outcome.asked.size() == 1);
  CHECK(outcome.asked[0].path == "/v1/completions");
  CHECK(outcome.asked[0].body == vllm_exact_body("", {{1, 2, 3, 4, 5}, {7, 8, 9}}));
  const Answer& answer = outcome.result();
  CHECK(answer.requests == 1);
  CHECK(answer.latency_ms == 10);
  CHECK(answer.prompt_tokens == 5);
  CHECK(answer.model == "smollm2-135m");
  const Distribution& distribution = answer.distribution;
  CHECK(distribution.labels_returned == 3);
  CHECK(distribution.predicted == 1);
  CHECK(distribution.labels[0].logprob == -2.5);
  CHECK(distribution.labels[2].source == LabelSource::exact);
  CHECK(distribution.label_mass == Approx(std::exp(-2.5) + std::exp(-1.5) + std::exp(-9.0)));
  // The best token is known, the distribution over all tokens is not.
  CHECK(distribution.argmax_is_label == false);
  CHECK_FALSE(distribution.entropy);
  CHECK_FALSE(distribution.floor);
  CHECK_FALSE(distribution.bound);
}

TEST_CASE("vllm: exact: a sampled label is the best token; at other temperatures nobody knows") {
  CHECK(
      exact(vllm_listed({{8, -0.5}, {7, -1.5}, {9, -2.5}})).result().distribution.argmax_is_label ==
      true);
  // A tie: the sampled token comes first and is the server's choice.
  CHECK(exact(vllm_listed({{19, -0.5}, {7, -0.5}, {8, -2}, {9, -3}}, 19))
            .result()
            .distribution.argmax_is_label == false);
  CHECK_FALSE(read(backend(), vllm_listed({{19, -4.0}, {7, -0.5}, {8, -2}, {9, -3}}, 19), {0.7})
                  .result()
                  .distribution.argmax_is_label);
}

TEST_CASE("A1: a top-k reply over which another request was written") {
  const auto outcome = top_k(vllm_map(R"({"token_id:0":-9999.0})"), 32);
  CHECK(outcome.failure().error_class == "logprob_sentinel");
  CHECK(outcome.failure().message == "token 0: -9999");
  CHECK(outcome.failure().retry);
  CHECK(outcome.failure().alone);
  CHECK_FALSE(outcome.failure().server);
  // As it came from vLLM 0.32.0: the sampled token with its value, and one that is none.
  CHECK(top_k(vllm_map(R"({"token_id:8":-0.5,"token_id:0":-9999.0})"), 32).failure().alone);
  // As many entries as asked for do not hide it, nor one more.
  CHECK(top_k(vllm_listed({{8, -0.5}, {7, -1.5}, {0, -9999}})).failure().alone);
  CHECK(top_k(vllm_listed({{8, -9999}, {7, -1.5}, {9, -2}, {3, -3}})).failure().alone);
}

TEST_CASE("A2: ids asked for, and not there: an error, never a floor") {
  const auto outcome = exact(vllm_map(R"({"token_id:358":-0.1})", 358));
  CHECK(outcome.failure().error_class == "missing_label");
  CHECK(outcome.failure().message == "token 7 was asked for by id and is not in the reply");
  CHECK_FALSE(outcome.failure().retry);
  // Two of three are not enough either.
  CHECK(exact(vllm_listed({{8, -0.5}, {7, -1.5}})).failure().message.starts_with("token 9 "));
}

TEST_CASE("A3: reads by id that end in a 500 \"list index out of range\"") {
  const auto failure =
      exact(status_reply(500, R"({"error":{"message":"list index out of range","type":)"
                              R"("InternalServerError","param":null,"code":500}})"))
          .failure();
  CHECK(failure.error_class == "http_error");
  CHECK(failure.message == "HTTP 500: list index out of range");
  CHECK(failure.retry);
}

TEST_CASE("A4: text keys are refused, since tokens of one text overwrite each other") {
  const std::string map = R"({"false":-0.23307,"true":-1.57682,"null":-8.38932,"▁false":-8.47526})";
  CHECK(exact(vllm_map(map)).failure().error_class == "text_keys");
  CHECK(top_k(vllm_map(map), 4).failure().error_class == "text_keys");
  CHECK(exact(vllm_map(map)).failure().message.find("by text (\"false\")") != std::string::npos);
  // By id the two spellings of "false" are two tokens, and P(true) over {true, false} is right.
  const Vllm server = backend(ReadMode::top_k, 4);
  const auto outcome = converse_with<Answer>(
      *server.read({}, {{1, 2, 3, 4, 5}, {7, 8}}, {}),
      {vllm_listed({{8, -0.23307}, {7, -1.57682}, {3, -8.38932}, {4, -8.47526}})});
  CHECK(outcome.result().distribution.labels[0].probability == Approx(0.2069).margin(5e-5));
  for (const char* key : {"token_id:", "token_id:x", "token_id:-1", "token_id:99999999999", " 7"}) {
    CHECK(exact(vllm_map(fmt::format(R"({{"{}":-1}})", key))).failure().error_class == "text_keys");
  }
}

TEST_CASE("A5: vllm: a token that is there twice is refused, not the last one taken") {
  const auto raw = exact(vllm_map(R"({"token_id:7":-0.5,"token_id:8":-1,"token_id:7":-3})"));
  CHECK(raw.failure().error_class == "duplicate_key");
  CHECK(raw.failure().message.find("token_id:7") != std::string::npos);
  CHECK_FALSE(raw.failure().retry);
  const auto spelt = exact(vllm_map(R"({"token_id:7":-0.5,"token_id:8":-1,"token_id:07":-3})"));
  CHECK(spelt.failure().error_class == "duplicate_key");
}

TEST_CASE("A8: vllm: minus infinity of a label is zero only where the plan says so") {
  const HttpReply reply = vllm_listed({{8, -0.5}, {7, -9999}, {9, -1.5}});
  const auto failure = exact(reply).failure();
  CHECK(failure.error_class == "logprob_sentinel");
  CHECK(failure.message == "token 7: -9999");
  CHECK(failure.alone);
  BackendSpec spec;
  spec.sentinel_is_zero = true;
  const Vllm lenient(spec, {}, {});
  const Distribution distribution = read(lenient, reply).result().distribution;
  CHECK(distribution.labels[0].probability == 0);
  CHECK(distribution.labels[1].probability == Approx(1 / (1 + std::exp(-1.0))));
  // All labels at minus infinity are no answer, and no other token ever is there.
  CHECK(read(lenient, vllm_listed({{19, -0.5}, {7, -9999}, {8, -9999}, {9, -9999}}, 19))
            .failure()
            .error_class == "logprob_sentinel");
  CHECK(
      read(lenient, vllm_listed({{19, -9999}, {7, -1}, {8, -2}, {9, -3}}, 19)).failure().message ==
      "token 19: -9999");
}

TEST_CASE("A9: vllm: NaN inside the server") {
  const auto failure =
      exact(status_reply(
                500, R"({"error":{"message":"Out of range float values are not JSON compliant",)"
                     R"("type":"InternalServerError","param":null,"code":500}})"))
          .failure();
  CHECK(failure.error_class == "server_nan");
  CHECK_FALSE(failure.retry);
  CHECK(failure.server);
}

TEST_CASE("A10: vllm: a 200 without log-probabilities") {
  for (const char* logprobs :
       {"null", R"({"tokens":["token_id:8"],"top_logprobs":null})", R"({"top_logprobs":[]})",
        R"({"top_logprobs":[null]})", R"({"top_logprobs":[{}]})", R"({"token_logprobs":[-1]})"}) {
    INFO(logprobs);
    for (const auto& outcome :
         {exact(vllm_completion(logprobs)), top_k(vllm_completion(logprobs))}) {
      CHECK(outcome.failure().error_class == "no_logprobs");
      CHECK_FALSE(outcome.failure().retry);
    }
  }
  const char* absent = R"({"choices":[{"finish_reason":"length","prompt_token_ids":[1,2,3,4,5]}]})";
  CHECK(exact(ok_reply(absent)).failure().error_class == "no_logprobs");
}

TEST_CASE("A12: labels with next to no mass") {
  const Vllm server = backend();
  const auto outcome =
      converse_with<Answer>(*server.read({}, {{1, 2, 3, 4, 5}, {7, 8}}, {}),
                            {vllm_listed({{19, -0.01}, {7, -15.2}, {8, -15.9}}, 19)});
  CHECK(outcome.result().distribution.label_mass == Approx(3.7e-7).epsilon(0.02));
  CHECK(outcome.result().distribution.argmax_is_label == false);
}

TEST_CASE("C4: vllm: a prompt that comes back one id longer") {
  VllmFacts facts;
  facts.echo = "[1,1,2,3,4,5]";
  const auto failure = exact(vllm_listed({{8, -0.5}, {7, -1.5}, {9, -2.5}}, 8, facts)).failure();
  CHECK(failure.error_class == "prompt_mismatch");
  CHECK(failure.message == "5 prompt tokens were sent, 6 came back, different from position 1 on");
  CHECK_FALSE(failure.retry);
}

TEST_CASE("vllm: before ids were echoed there was the count") {
  VllmFacts facts;
  facts.echo = "null";
  CHECK(exact(vllm_listed({{8, -0.5}, {7, -1.5}, {9, -2.5}}, 8, facts)).result().prompt_tokens ==
        5);
  facts.prompt_tokens = 6;
  CHECK(exact(vllm_listed({{8, -0.5}, {7, -1.5}, {9, -2.5}}, 8, facts)).failure().message ==
        "5 prompt tokens sent, 6 counted by the server");
  const char* silent =
      R"({"choices":[{"finish_reason":"length","logprobs":{"top_logprobs":[{"token_id:7":-1}]}}]})";
  CHECK(exact(ok_reply(silent)).failure().message ==
        "the reply does not say which prompt it is for");
}

TEST_CASE("vllm: a model or a server that changes under way is noticed") {
  const std::vector<std::pair<int, double>> entries{{8, -0.5}, {7, -1.5}, {9, -2.5}};
  const Vllm server = backend();
  CHECK(read(server, vllm_listed(entries)).result().model == "smollm2-135m");
  VllmFacts facts;
  facts.model = "other";
  const auto changed = read(server, vllm_listed(entries, 8, facts));
  CHECK(changed.failure().error_class == "identity_changed");
  CHECK(changed.failure().message == "answered by other, where smollm2-135m was serving");
  facts = {};
  facts.fingerprint = "vllm-0.33.0-00000000";
  CHECK(read(server, vllm_listed(entries, 8, facts)).failure().message ==
        "answered by vllm-0.33.0-00000000, where vllm-0.32.0-f4bf138f was serving");
  // Another name of the same model is fine, but only one that is served, and always the same.
  const Vllm aliased = backend();
  aliased.learned().model = "small";
  aliased.learned().served = {"smollm2-135m", "small"};
  CHECK(read(aliased, vllm_listed(entries)).result().model == "smollm2-135m");
  facts = {};
  facts.model = "small";
  CHECK(read(aliased, vllm_listed(entries, 8, facts)).failure().error_class == "identity_changed");
  const Vllm foreign = backend();
  foreign.learned().model = "small";
  foreign.learned().served = {"small"};
  CHECK(read(foreign, vllm_listed(entries)).failure().message ==
        "answered by smollm2-135m, where small was serving");
}

TEST_CASE("vllm: replies that are not one token of one choice") {
  const auto failure = [](const std::string& body) { return exact(ok_reply(body)).failure(); };
  CHECK(failure("{}").message == "no choices in the reply");
  CHECK(failure(R"({"choices":[]})").message == "not exactly one choice");
  CHECK(failure(R"({"choices":[{},{}]})").message == "not exactly one choice");
  CHECK(failure("[1]").error_class == "unexpected_reply");
  CHECK(failure("{").error_class == "invalid_json");
  VllmFacts facts;
  facts.completion_tokens = 2;
  CHECK(exact(vllm_listed({{8, -1}}, 8, facts)).failure().message ==
        "2 tokens where one was asked for");
  facts = {};
  facts.finish = "abort";
  CHECK(exact(vllm_listed({{8, -1}}, 8, facts)).failure().message ==
        "finish_reason \"abort\", where length or stop ends a read");
  facts.finish = "stop";
  CHECK(exact(vllm_listed({{8, -1}, {7, -2}, {9, -3}}, 8, facts)).result().requests == 1);
  CHECK(exact(vllm_completion(R"({"top_logprobs":[{"token_id:7":-1},{"token_id:7":-1}]})"))
            .failure()
            .message == "log-probabilities not of exactly one token");
  CHECK(exact(vllm_completion(R"({"top_logprobs":[[]]})")).failure().message ==
        "top_logprobs[0] is no object");
  CHECK(exact(vllm_map(R"({"token_id:7":null})")).failure().error_class == "not_finite");
  CHECK(exact(vllm_map(R"({"token_id:7":"-1"})")).failure().error_class == "not_finite");
  CHECK(exact(vllm_listed({{7, 0.5}})).failure().error_class == "not_finite");
  facts = {};
  facts.echo = "\"1 2 3\"";
  CHECK(exact(vllm_listed({{8, -1}}, 8, facts)).failure().message == "prompt_token_ids is no list");
}

TEST_CASE("vllm: top-k: the k best, with a floor for the labels outside") {
  const auto outcome = top_k(vllm_listed({{8, -0.5}, {3, -1.5}, {7, -2.5}}));
  CHECK(outcome.asked[0].body == vllm_top_k_body("", {1, 2, 3, 4, 5}, 3));
  const Distribution& distribution = outcome.result().distribution;
  CHECK(distribution.floor == -7.5);
  CHECK(distribution.bound == -2.5);
  CHECK(distribution.labels[2].source == LabelSource::floor);
  CHECK(distribution.labels_returned == 2);
  CHECK(distribution.argmax_is_label == true);
  CHECK(distribution.entropy);
}

TEST_CASE("vllm: top-k: a token that is there because it was sampled does not shift the floor") {
  // As vLLM sends it at a temperature: the sampled token first, then the k best.
  const auto sampled = top_k(vllm_listed({{26, -8.745}, {8, -0.5}, {3, -1.5}, {7, -2.5}}, 26));
  CHECK(sampled.result().distribution.floor == -7.5);
  // It is no label that was returned, either.
  const auto label = top_k(vllm_listed({{9, -8.745}, {8, -0.5}, {3, -1.5}, {7, -2.5}}, 9));
  CHECK(label.result().distribution.labels_returned == 2);
  // A tie at the bound: still one more than the k best.
  CHECK(top_k(vllm_listed({{9, -2.5}, {8, -0.5}, {3, -1.5}, {7, -2.5}}, 9))
            .result()
            .distribution.labels_returned == 2);
  // The first of equals decides.
  CHECK(top_k(vllm_listed({{3, -0.5}, {8, -0.5}, {7, -2.5}}, 3))
            .result()
            .distribution.argmax_is_label == false);
  // One more that was not sampled, or is better than another, is no reply to this request.
  CHECK(top_k(vllm_listed({{26, -8}, {8, -0.5}, {3, -1.5}, {7, -2.5}}, 8)).failure().message ==
        "3 log-probabilities asked for, 4 came");
  CHECK(top_k(vllm_listed({{8, -0.5}, {3, -1.5}})).failure().message ==
        "3 log-probabilities asked for, 2 came");
  CHECK(top_k(vllm_listed({{1, -0.5}, {2, -1.5}, {3, -2.5}})).failure().error_class == "no_label");
}

TEST_CASE("vllm: refusals of the real server") {
  const auto failure = [](long status, const std::string& body) {
    return exact(status_reply(status, body)).failure();
  };
  const auto unknown = failure(
      404,
      R"({"error":{"message":"The model `nope` does not exist. Valid aliases: smollm2-135m.","type":"NotFoundError",)"
      R"("param":"model","code":404}})");
  CHECK(unknown.error_class == "http_error");
  CHECK(unknown.http_status == 404);
  CHECK_FALSE(unknown.retry);
  CHECK(
      failure(
          400,
          R"({"error":{"message":"This model's maximum context length is 2048 tokens. However, your prompt contains )"
          R"(3000 input tokens","type":"BadRequestError","param":"input_tokens","code":400}})")
          .error_class == "context_exceeded");
  CHECK(failure(401, R"({"error":"Unauthorized"})").message == "HTTP 401: Unauthorized");
}
