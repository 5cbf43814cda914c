// SGLang's protocol, with replies in the form that its 0.5.23 writes. In the reads the labels are
// tokens 7, 8 and 9 of a prompt of five.
#include "backend/sglang.h"

#include <fmt/format.h>

#include <cmath>

#include "backend/dialogues.h"

using namespace preval;
using namespace preval::test;

namespace {

constexpr const char* kLowest = "-3.4028234663852886e+38";

constexpr const char* kModelInfo =
    R"({"model_path":"Qwen/Qwen3-0.6B","served_model_name":"qwen","tokenizer_path":"Qwen/Qwen3-0.6B",)"
    R"("is_generation":true,"preferred_sampling_params":null,"weight_version":"default","model_type":"qwen3"})";
constexpr const char* kServerInfo =
    R"({"model_path":"Qwen/Qwen3-0.6B","dtype":"auto","quantization":null,"kv_cache_dtype":"auto",)"
    R"("attention_backend":"fa3","api_key":"secret","random_seed":5,"version":"0.5.23"})";
constexpr const char* kModels =
    R"({"object":"list","data":[{"id":"qwen","object":"model","owned_by":"sglang","root":"qwen","max_model_len":40960}]})";

Sglang backend(ReadMode mode = ReadMode::exact, int k = 3,
               Template chat_template = Template::chat) {
  BackendSpec spec;
  spec.kind = "sglang";
  spec.read = mode;
  spec.k = k;
  Checkpoint checkpoint;
  checkpoint.chat_template = chat_template;
  return Sglang(spec, checkpoint, {});
}

Outcome<Identity> identity(const Sglang& server, std::deque<HttpReply> replies) {
  return converse_with<Identity>(*server.identify(), std::move(replies));
}

HttpReply tokens_reply(const std::vector<int>& tokens) {
  return ok_reply(fmt::format(R"({{"tokens":[{}],"count":{},"max_model_len":40960}})",
                              fmt::join(tokens, ","), tokens.size()));
}

Outcome<TokenPrompt> tokenise(const Sglang& server, std::deque<HttpReply> replies) {
  Record record;
  record.id = "r-1";
  const Prompt asked = hot_or_not();
  return converse_with<TokenPrompt>(*server.tokenise({&record, &asked, "none", 0}),
                                    std::move(replies));
}

/// What a generation says beside its log-probabilities.
struct Facts {
  int prompt_tokens = 5, completion_tokens = 1, cached = 4;
  std::string finish = R"({"type":"length","length":1})", weights = "default";
};

/// `lists` as they stand in meta_info.
HttpReply generation(const std::string& lists, const Facts& facts = {}) {
  return ok_reply(fmt::format(
      R"({{"text":" no","output_ids":[8],"meta_info":{{"id":"8a2f","finish_reason":{},"prompt_tokens":{},)"
      R"("weight_version":"{}","num_retractions":0{}{},"completion_tokens":{},"cached_tokens":{},)"
      R"("e2e_latency":0.02}}}})",
      facts.finish, facts.prompt_tokens, facts.weights, lists.empty() ? "" : ",", lists,
      facts.completion_tokens, facts.cached));
}

std::string sampled(int id, const std::string& logprob = "-0.5") {
  return fmt::format(
      R"("input_token_logprobs":[],"output_token_logprobs":[[{},{},null]],"output_token_logprobs_length":1)",
      logprob, id);
}

HttpReply by_id(const std::string& entries, int best = 8, const Facts& facts = {}) {
  return generation(
      fmt::format(R"({},"input_token_ids_logprobs":[],"output_token_ids_logprobs":[[{}]])",
                  sampled(best), entries),
      facts);
}

HttpReply listed(const std::string& entries, const Facts& facts = {}) {
  return generation(fmt::format(R"({},"input_top_logprobs":[],"output_top_logprobs":[[{}]])",
                                sampled(8), entries),
                    facts);
}

Outcome<Answer> read(const Sglang& server, HttpReply reply, const Sampling& sampling = {}) {
  return converse_with<Answer>(*server.read({}, {{1, 2, 3, 4, 5}, {7, 8, 9}}, sampling),
                               std::deque<HttpReply>{std::move(reply)});
}

Outcome<Answer> exact(HttpReply reply) { return read(backend(), std::move(reply)); }

Outcome<Answer> top_k(HttpReply reply) { return read(backend(ReadMode::top_k), std::move(reply)); }

}  // namespace

TEST_CASE("sglang: identity keeps what can change values, and no secrets") {
  const Sglang server = backend();
  const auto outcome =
      identity(server, {ok_reply(kModelInfo), ok_reply(kServerInfo), ok_reply(kModels)});
  CHECK(outcome.asked[0].path == "/model_info");
  CHECK(outcome.asked[1].path == "/server_info");
  CHECK(outcome.asked[2].path == "/v1/models");
  CHECK(outcome.asked[2].method == "GET");
  CHECK(outcome.result().facts == Json{{"engine", "sglang"},
                                       {"weights", "default"},
                                       {"model", "qwen"},
                                       {"version", "0.5.23"},
                                       {"kv_cache", "auto"},
                                       {"dtype", "auto"},
                                       {"attention", "fa3"},
                                       {"context", 40960}});
  CHECK(server.learned().weights == "default");
  // A local path says where a machine keeps its weights.
  CHECK(identity(backend(),
                 {ok_reply(R"({"model_path":"/m/tiny"})"), ok_reply(kServerInfo), ok_reply("{}")})
            .result()
            .facts["model"] == "tiny");
}

TEST_CASE("sglang: a server that is something else") {
  const auto failure = [](std::deque<HttpReply> replies) {
    return identity(backend(), std::move(replies)).failure();
  };
  CHECK(failure({ok_reply("{}")}).message == "/model_info is not that of an SGLang server");
  CHECK(failure({ok_reply(kModelInfo), ok_reply("{}")}).message == "/server_info tells no version");
  // Whatever is wrong with it, a body full of the server's arguments is kept out of the store.
  CHECK(failure({ok_reply(kModelInfo), ok_reply(R"({"admin_api_key":"secret"})")}).body.empty());
  CHECK(failure({ok_reply(kModelInfo), ok_reply(R"({"admin_api_key":)")}).body.empty());
  CHECK(failure({status_reply(404, R"({"detail":"Not Found"})")}).message == "HTTP 404: Not Found");
  CHECK(failure({ok_reply("<html>")}).error_class == "invalid_json");
}

TEST_CASE("sglang: template → labels") {
  const auto outcome = tokenise(
      backend(),
      {tokens_reply({151644, 8948}), tokens_reply({63, 25, 9834}), tokens_reply({63, 25, 902})});
  CHECK(outcome.asked[0].path == "/tokenize");
  CHECK(
      outcome.asked[0].body ==
      R"({"messages":[{"role":"system","content":"Is it hot?"},{"role":"user","content":"Tea."}],)"
      R"("chat_template_kwargs":{"enable_thinking":false}})");
  CHECK(outcome.asked[1].body == R"({"prompt":"decision: yes","add_special_tokens":false})");
  CHECK(outcome.result().tokens == std::vector<TokenId>{151644, 8948, 63, 25});
  CHECK(outcome.result().labels == std::vector<TokenId>{9834, 902});
}

TEST_CASE("sglang: a version that cannot render the template says so") {
  const auto refused = tokenise(
      backend(),
      {status_reply(400,
                    R"({"object":"error","message":"1 validation error: Field required: prompt",)"
                    R"("type":"Bad Request","param":null,"code":400})")});
  CHECK(refused.failure().error_class == "http_error");
  CHECK(refused.failure().message.find("takes no messages cannot render") != std::string::npos);
  CHECK(refused.failure().message.find("template none") != std::string::npos);
  // A refusal of something else is passed on as it is.
  const Sglang plain = backend(ReadMode::exact, 0, Template::none);
  CHECK(tokenise(plain, {status_reply(400, R"({"object":"error","message":"no"})")})
            .failure()
            .message == "HTTP 400: no");
  CHECK(tokenise(plain, {tokens_reply({30}), tokens_reply({2, 30}), tokens_reply({9, 70}),
                         tokens_reply({9, 71})})
            .result()
            .tokens == std::vector<TokenId>{2, 30, 9});
}

TEST_CASE("C1, A13: sglang: a doubled BOS, a label of two tokens") {
  CHECK(tokenise(backend(), {tokens_reply({2, 2, 105})}).failure().error_class ==
        "prompt_mismatch");
  CHECK(
      tokenise(backend(), {tokens_reply({1}), tokens_reply({33, 220, 10}), tokens_reply({33, 21})})
          .failure()
          .error_class == "label_tokens");
}

TEST_CASE("sglang: request bodies") {
  CHECK(sglang_exact_body({{1, 2}, {7, 8}}) ==
        R"({"input_ids":[1,2],"sampling_params":{"max_new_tokens":1,"temperature":0},)"
        R"("return_logprob":true,"logprob_start_len":-1,"token_ids_logprob":[7,8]})");
  CHECK(sglang_top_k_body({1, 2}, 32, {0.7}) ==
        R"({"input_ids":[1,2],"sampling_params":{"max_new_tokens":1,"temperature":0.7},)"
        R"("return_logprob":true,"logprob_start_len":-1,"top_logprobs_num":32})");
  CHECK(backend().health().path == "/health");
  CHECK(backend().nonsense().path == "/generate");
}

TEST_CASE("sglang: an exact read") {
  const auto outcome = exact(by_id(R"([-2.5,7,null],[-1.5,8," no"],[-9,9,null])", 19));
  REQUIRE(outcome.asked.size() == 1);
  CHECK(outcome.asked[0].path == "/generate");
  CHECK(outcome.asked[0].body == sglang_exact_body({{1, 2, 3, 4, 5}, {7, 8, 9}}));
  const Answer& answer = outcome.result();
  CHECK(answer.requests == 1);
  CHECK(answer.latency_ms == 10);
  CHECK(answer.prompt_tokens == 5);
  CHECK(answer.model.empty());
  const Distribution& distribution = answer.distribution;
  CHECK(distribution.labels_returned == 3);
  CHECK(distribution.predicted == 1);
  CHECK(distribution.labels[0].logprob == -2.5);
  CHECK(distribution.label_mass == Approx(std::exp(-2.5) + std::exp(-1.5) + std::exp(-9.0)));
  CHECK(distribution.argmax_is_label == false);
  CHECK_FALSE(distribution.entropy);
  CHECK(exact(by_id("[-2.5,7,null],[-1.5,8,null],[-9,9,null]"))
            .result()
            .distribution.argmax_is_label == true);
  CHECK_FALSE(read(backend(), by_id("[-2.5,7,null],[-1.5,8,null],[-9,9,null]"), {0.7})
                  .result()
                  .distribution.argmax_is_label);
}

TEST_CASE("sglang: a top-k read") {
  const auto outcome = top_k(listed("[-0.5,8,null],[-1.5,3,null],[-2.5,7,null]"));
  CHECK(outcome.asked[0].body == sglang_top_k_body({1, 2, 3, 4, 5}, 3));
  const Distribution& distribution = outcome.result().distribution;
  CHECK(distribution.floor == -7.5);
  CHECK(distribution.labels[2].source == LabelSource::floor);
  CHECK(distribution.labels_returned == 2);
  CHECK(distribution.entropy);
  CHECK(top_k(listed("[-0.5,8,null],[-1.5,3,null]")).failure().message ==
        "3 log-probabilities asked for, 2 came");
  CHECK(top_k(listed("[-0.5,1,null],[-1.5,2,null],[-2.5,3,null]")).failure().error_class ==
        "no_label");
}

TEST_CASE("sglang: a label that is not in the reply is an error, never a floor") {
  const auto failure = exact(by_id("[-2.5,7,null],[-1.5,8,null]")).failure();
  CHECK(failure.error_class == "missing_label");
  CHECK(failure.message == "token 9 was asked for by id and is not in the reply");
}

TEST_CASE("A5: sglang: a token that is there twice is refused") {
  CHECK(exact(by_id("[-2.5,7,null],[-1.5,8,null],[-9,9,null],[-3,7,null]")).failure().error_class ==
        "duplicate_key");
  CHECK(top_k(listed("[-0.5,8,null],[-1.5,8,null],[-2.5,7,null]")).failure().message ==
        "token 8 is there twice");
  const auto raw =
      generation(R"("output_token_ids_logprobs":[[[-1,7,null]]],"output_token_ids_logprobs":[])");
  CHECK(exact(raw).failure().error_class == "duplicate_key");
}

TEST_CASE("A8: sglang: the lowest float is no value of a label") {
  const HttpReply reply = by_id(fmt::format("[{},7,null],[-1.5,8,null],[-2.5,9,null]", kLowest));
  const auto failure = exact(reply).failure();
  CHECK(failure.error_class == "logprob_sentinel");
  CHECK(failure.message == "token 7: -3.4028234663852886e+38");
  // It is the model's own minus infinity: another try would find the same.
  CHECK_FALSE(failure.retry);
  CHECK_FALSE(failure.alone);
  BackendSpec spec;
  spec.sentinel_is_zero = true;
  const Sglang lenient(spec, {}, {});
  const Distribution distribution = read(lenient, reply).result().distribution;
  CHECK(distribution.labels[0].probability == 0);
  CHECK(distribution.labels[1].probability == Approx(1 / (1 + std::exp(-1.0))));
  CHECK(read(lenient, by_id(fmt::format("[{0},7,null],[{0},8,null],[{0},9,null]", kLowest)))
            .failure()
            .error_class == "logprob_sentinel");
  CHECK(top_k(listed(fmt::format("[-0.5,8,null],[-1.5,7,null],[{},3,null]", kLowest)))
            .failure()
            .error_class == "logprob_sentinel");
}

TEST_CASE("A10: sglang: a 200 without log-probabilities") {
  for (const char* lists : {"", R"("output_token_ids_logprobs":null,"output_top_logprobs":null)",
                            R"("output_token_ids_logprobs":[],"output_top_logprobs":[])",
                            R"("output_token_ids_logprobs":[null],"output_top_logprobs":[null])",
                            R"("output_token_ids_logprobs":[[]],"output_top_logprobs":[[]])"}) {
    INFO(lists);
    for (const auto& outcome : {exact(generation(lists)), top_k(generation(lists))}) {
      CHECK(outcome.failure().error_class == "no_logprobs");
      CHECK_FALSE(outcome.failure().retry);
    }
  }
}

TEST_CASE("A12: sglang: labels with next to no mass") {
  const auto outcome = exact(by_id("[-15.2,7,null],[-15.9,8,null],[-40,9,null]", 19));
  CHECK(outcome.result().distribution.label_mass == Approx(3.7e-7).epsilon(0.02));
}

TEST_CASE("C4: sglang: a prompt that the server counts otherwise") {
  Facts facts;
  facts.prompt_tokens = 6;
  const auto failure = exact(by_id("[-1,7,null],[-2,8,null],[-3,9,null]", 8, facts)).failure();
  CHECK(failure.error_class == "prompt_mismatch");
  CHECK(failure.message == "5 prompt tokens sent, 6 counted by the server");
}

TEST_CASE("sglang: weights that change under way are noticed") {
  const Sglang server = backend();
  server.learned().weights = "default";
  Facts facts;
  facts.weights = "step-200";
  const auto failure =
      read(server, by_id("[-1,7,null],[-2,8,null],[-3,9,null]", 8, facts)).failure();
  CHECK(failure.error_class == "identity_changed");
  CHECK(failure.message == "answered by weights step-200, where default were serving");
}

TEST_CASE("sglang: replies that are not one token of one generation") {
  const auto failure = [](const std::string& body) { return exact(ok_reply(body)).failure(); };
  CHECK(failure("{}").message == "no meta_info of one generation");
  CHECK(failure("[{\"meta_info\":{}}]").message == "no meta_info of one generation");
  CHECK(failure("{").error_class == "invalid_json");
  const std::string entries = "[-1,7,null],[-2,8,null],[-3,9,null]";
  Facts facts;
  facts.completion_tokens = 0;
  CHECK(exact(by_id(entries, 8, facts)).failure().message == "0 tokens where one was asked for");
  facts = {};
  facts.finish = R"({"type":"abort","message":"out of memory"})";
  CHECK(exact(by_id(entries, 8, facts)).failure().message == "ended by neither length nor stop");
  facts.finish = "null";
  CHECK(exact(by_id(entries, 8, facts)).failure().error_class == "unexpected_reply");
  facts.finish = R"({"type":"stop","matched":8})";
  CHECK(exact(by_id(entries, 8, facts)).result().requests == 1);
  CHECK(exact(generation(R"("output_token_ids_logprobs":[[[-1,7,null]],[[-1,7,null]]])"))
            .failure()
            .message == "log-probabilities of more than one token");
  CHECK(exact(generation(R"("output_token_ids_logprobs":["x"])")).failure().message ==
        "log-probabilities that are no list");
  for (const char* entry :
       {"7", "[-1]", "[-1,\"7\",null]", "[-1,-7,null]", "[-1,99999999999,null]"}) {
    CHECK(exact(by_id(entry)).failure().message ==
          "an entry that is not [log-probability, id, text]");
  }
  CHECK(exact(by_id("[null,7,null]")).failure().error_class == "not_finite");
  CHECK(exact(by_id("[0.5,7,null]")).failure().error_class == "not_finite");
}

TEST_CASE("sglang: refusals") {
  const auto failure = [](long status, const std::string& body) {
    return exact(status_reply(status, body)).failure();
  };
  CHECK(
      failure(
          400,
          R"({"error":{"message":"token_ids_logprob contains out-of-vocabulary token id 151936; valid )"
          R"(range is [0, 151936)."}})")
          .message.find("out-of-vocabulary") != std::string::npos);
  CHECK(failure(400, R"({"error":"field input_ids: expected integers"})").message ==
        "HTTP 400: field input_ids: expected integers");
  CHECK(failure(
            400,
            R"({"object":"error","message":"1 validation error","type":"Bad Request","code":400})")
            .message == "HTTP 400: 1 validation error");
}
