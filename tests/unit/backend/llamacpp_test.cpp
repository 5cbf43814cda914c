// Who answers, and how a prompt becomes tokens.
#include "backend/llamacpp.h"

#include "backend/llamacpp_replies.h"
#include "base/sha256.h"

using namespace preval;
using namespace preval::test;

namespace {

constexpr const char* kProps =
    R"({"default_generation_settings":{"params":{"seed":1,"temperature":0.8},"n_ctx":2048},"total_slots":1,)"
    R"("model_alias":"/m/tiny.Q4_1.gguf","model_ftype":"Q4_1","model_path":"/m/tiny.Q4_1.gguf",)"
    R"("media_marker":"<__media_AqE4yVs0__>","chat_template":"{% for m in messages %}…","bos_token":"<s>",)"
    R"("build_info":"b0-unknown"})";
constexpr const char* kModels =
    R"({"object":"list","data":[{"id":"/m/tiny.Q4_1.gguf","object":"model","created":1796057480,)"
    R"("meta":{"vocab_type":2,"n_vocab":49152,"n_ctx_train":8192,"n_params":134515008,"size":96576768}}]})";

Checkpoint with_template(Template chat_template) {
  Checkpoint checkpoint;
  checkpoint.id = "tiny";
  checkpoint.files = {{"tiny.Q4_1.gguf", "", 0}};
  checkpoint.chat_template = chat_template;
  return checkpoint;
}

LlamaCpp backend(Template chat_template = Template::chat) {
  return LlamaCpp({}, with_template(chat_template), {});
}

const HttpReply kRendered = ok_reply(R"({"prompt":"<|im_start|>system\nIs it hot?<|im_end|>\n"})");

Outcome<TokenPrompt> tokenise(const LlamaCpp& server, std::deque<HttpReply> replies,
                              const Prompt& asked = hot_or_not()) {
  Record record;
  record.id = "r-1";
  return converse_with<TokenPrompt>(*server.tokenise({&record, &asked, "none", 0}),
                                    std::move(replies));
}

}  // namespace

TEST_CASE("identity: what is served, without paths and times") {
  const LlamaCpp server = backend();
  const auto outcome =
      converse_with<Identity>(*server.identify(), {ok_reply(kProps), ok_reply(kModels)});
  CHECK(outcome.asked[0].method == "GET");
  CHECK(outcome.asked[0].path == "/props");
  CHECK(outcome.asked[1].path == "/v1/models");
  CHECK(outcome.result().facts ==
        Json{{"engine", "llama.cpp"},
             {"build", "b0-unknown"},
             {"model", "tiny.Q4_1.gguf"},
             {"ftype", "Q4_1"},
             {"slots", 1},
             {"context", 2048},
             {"chat_template_sha256", sha256_hex("{% for m in messages %}…")},
             {"vocabulary", 49152},
             {"parameters", 134515008},
             {"weights_bytes", 96576768},
             {"context_trained", 8192}});
  CHECK(server.learned().model == "/m/tiny.Q4_1.gguf");
  // A template that is not used is no part of who answers.
  const LlamaCpp plain = backend(Template::none);
  CHECK_FALSE(converse_with<Identity>(*plain.identify(), {ok_reply(kProps), ok_reply(kModels)})
                  .result()
                  .facts.contains("chat_template_sha256"));
}

TEST_CASE("identity: a server that is no llama.cpp") {
  const LlamaCpp server = backend();
  const auto failure = [&](std::deque<HttpReply> replies) {
    return converse_with<Identity>(*server.identify(), std::move(replies)).failure();
  };
  CHECK(failure({ok_reply("{\"version\":\"0.32.0\"}")}).error_class == "unexpected_reply");
  CHECK(failure({ok_reply("hello")}).error_class == "invalid_json");
  CHECK(failure({status_reply(404, "{\"detail\":\"Not Found\"}")}).message ==
        "HTTP 404: Not Found");
  CHECK(failure({ok_reply(kProps), ok_reply("{\"data\":[]}")}).message ==
        "/v1/models names no model");
}

TEST_CASE("chat template → tokens → BOS → labels, and what was learned is not asked again") {
  const LlamaCpp server = backend();
  const auto first =
      tokenise(server, {kRendered, tokens_reply({1, 9690, 198}), tokens_reply({}),
                        tokens_reply({43066, 42, 9805}), tokens_reply({43066, 42, 787})});
  REQUIRE(first.asked.size() == 5);
  CHECK(first.asked[0].path == "/apply-template");
  CHECK(
      first.asked[0].body ==
      R"({"messages":[{"role":"system","content":"Is it hot?"},{"role":"user","content":"Tea."}],)"
      R"("chat_template_kwargs":{"enable_thinking":false}})");
  CHECK(
      first.asked[1].body ==
      R"({"content":"<|im_start|>system\nIs it hot?<|im_end|>\n","add_special":false,"parse_special":true})");
  CHECK(first.asked[2].body == R"({"content":"","add_special":true})");
  CHECK(first.asked[3].body ==
        R"({"content":"decision: yes","add_special":false,"parse_special":false})");
  CHECK(first.result().tokens == std::vector<TokenId>{1, 9690, 198, 43066, 42});
  CHECK(first.result().labels == std::vector<TokenId>{9805, 787});

  const auto second = tokenise(server, {kRendered, tokens_reply({1, 4093})});
  CHECK(second.result().tokens == std::vector<TokenId>{1, 4093, 43066, 42});
  // Another id is another lead.
  Prompt other = hot_or_not();
  other.lead = "verdict: ";
  const auto third = tokenise(
      server,
      {kRendered, tokens_reply({1}), tokens_reply({5, 42, 9805}), tokens_reply({5, 42, 787})},
      other);
  CHECK(third.result().tokens == std::vector<TokenId>{1, 5, 42});
}

TEST_CASE("a BOS that the server cut from the template is put back") {
  const LlamaCpp server = backend();
  const auto outcome = tokenise(server, {kRendered, tokens_reply({105, 106}), tokens_reply({2}),
                                         tokens_reply({9, 70}), tokens_reply({9, 71})});
  CHECK(outcome.result().tokens == std::vector<TokenId>{2, 105, 106, 9});
  CHECK(tokenise(server, {kRendered, tokens_reply({2, 105})}).result().tokens ==
        std::vector<TokenId>{2, 105, 9});
}

TEST_CASE("C1: a doubled BOS is refused") {
  const LlamaCpp server = backend();
  const auto outcome = tokenise(server, {kRendered, tokens_reply({2, 2, 105}), tokens_reply({2})});
  CHECK(outcome.failure().error_class == "prompt_mismatch");
  CHECK(outcome.failure().message == "the prompt begins with token 2 twice: a doubled BOS");
  // Also where the model adds none by itself.
  CHECK(tokenise(backend(), {kRendered, tokens_reply({1, 1, 105}), tokens_reply({})})
            .failure()
            .error_class == "prompt_mismatch");
  const LlamaCpp plain = backend(Template::none);
  CHECK(tokenise(plain, {tokens_reply({2, 2, 105}), tokens_reply({2})}).failure().error_class ==
        "prompt_mismatch");
  // A plain text may begin with two equal tokens.
  CHECK(tokenise(plain, {tokens_reply({7, 7}), tokens_reply({9, 70}), tokens_reply({9, 71})})
            .result()
            .tokens == std::vector<TokenId>{2, 7, 7, 9});
}

TEST_CASE("template none: plain text with the BOS that the model adds, if any") {
  const LlamaCpp with_bos = backend(Template::none);
  const auto outcome = tokenise(with_bos, {tokens_reply({30, 31}), tokens_reply({2}),
                                           tokens_reply({9, 70}), tokens_reply({9, 71})});
  CHECK(outcome.asked[0].body ==
        R"({"content":"Is it hot?\n\nTea.\n\n","add_special":false,"parse_special":false})");
  CHECK(outcome.result().tokens == std::vector<TokenId>{2, 30, 31, 9});
  const LlamaCpp without = backend(Template::none);
  CHECK(tokenise(without, {tokens_reply({30, 31}), tokens_reply({}), tokens_reply({9, 70}),
                           tokens_reply({9, 71})})
            .result()
            .tokens == std::vector<TokenId>{30, 31, 9});
}

TEST_CASE("A13: a label that is not one token names the record") {
  const auto outcome =
      tokenise(backend(), {kRendered, tokens_reply({1}), tokens_reply({}), tokens_reply({9, 5, 70}),
                           tokens_reply({9, 5, 71, 72})});
  CHECK(outcome.failure().error_class == "label_tokens");
  CHECK(outcome.failure().message.find("record r-1: label \"no\" is not one token") == 0);
  CHECK_FALSE(outcome.failure().retry);
}

TEST_CASE("tokenising: replies that cannot be used") {
  const auto failure = [](std::deque<HttpReply> replies) {
    return tokenise(backend(), std::move(replies)).failure();
  };
  CHECK(failure({ok_reply("{\"text\":\"x\"}")}).message == "/apply-template gives no prompt");
  CHECK(failure({ok_reply("{\"prompt\":5}")}).error_class == "unexpected_reply");
  CHECK(failure({kRendered, ok_reply("{\"token\":[]}")}).message == "/tokenize gives no tokens");
  CHECK(failure({kRendered, ok_reply("{\"tokens\":[1,\"a\"]}")}).message == "\"a\" as a token id");
  CHECK(failure({kRendered, ok_reply("{\"tokens\":[-1]}")}).error_class == "unexpected_reply");
  CHECK(failure({kRendered, ok_reply("{\"tokens\":[1],\"tokens\":[2]}")}).error_class ==
        "duplicate_key");
  CHECK(failure({kRendered, tokens_reply({1}), tokens_reply({1, 2})})
            .message.find("adds 2 tokens of its own") != std::string::npos);
  CHECK(failure({kRendered, status_reply(503, R"({"error":{"message":"Loading model"}})")}).retry);
}

TEST_CASE("request bodies") {
  CHECK(raw_read_body({1, 2, 3}, 64) ==
        R"({"prompt":[1,2,3],"n_predict":1,"temperature":0,"n_probs":64,"cache_prompt":false,)"
        R"("post_sampling_probs":false})");
  CHECK(raw_read_body({1}, 3, 7) ==
        R"({"prompt":[1],"n_predict":1,"temperature":0,"n_probs":3,"cache_prompt":false,)"
        R"("post_sampling_probs":false,"logit_bias":[[7,100]]})");
  CHECK(
      restricted_read_body({1, 2}, {7, 8}) ==
      R"({"prompt":[1,2],"n_predict":1,"temperature":1,"samplers":[],"n_probs":2,"cache_prompt":false,)"
      R"("post_sampling_probs":true,"logit_bias":[[7,100],[8,100]]})");
  CHECK(backend().health().method == "GET");
  CHECK(backend().health().path == "/health");
  CHECK(model_file("/a/b/c.gguf") == "c.gguf");
  CHECK(model_file("C:\\m\\c.gguf") == "c.gguf");
  CHECK(model_file("alias") == "alias");
}
