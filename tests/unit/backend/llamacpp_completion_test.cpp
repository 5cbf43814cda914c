#include "backend/llamacpp_completion.h"

#include "backend/acceptance.h"
#include "backend/llamacpp_replies.h"

using namespace preval;
using namespace preval::test;

namespace {

std::string failure_of(const HttpReply& reply) {
  const auto read = read_completion(reply);
  if (const auto* failure = std::get_if<Failure>(&read)) return failure->error_class;
  const auto problem = completion_problem(std::get<Completion>(read), 5, reply);
  return problem ? problem->error_class : "none";
}

/// A whole reply whose numbers are these bytes.
std::string failure_of_list(const std::string& list) {
  return failure_of(
      completion_reply(R"(,"completion_probabilities":[{"id":1,"top_logprobs":)" + list + "}]"));
}

}  // namespace

TEST_CASE("a reply as the server writes it") {
  // Recorded from xllamacpp 2026.10.11549; the prompt's echo and the settings are shortened.
  const HttpReply reply = ok_reply(
      R"({"index":0,"content":" no","tokens":[],"id_slot":0,"stop":true,"model":"/m/SmolLM2-135M-Instruct.Q4_1.gguf",)"
      R"("tokens_predicted":1,"tokens_evaluated":33,"generation_settings":{"seed":4294967295,"temperature":0.0,)"
      R"("dry_sequence_breakers":["\n",":","\"","*"],"stop":[],"logit_bias":[],"n_probs":3,"lora":[]},)"
      R"("prompt":"<|im_start|>system\nIs it hot?<|im_end|>\n<|im_start|>assistant\ndecision:","has_new_line":false,)"
      R"("truncated":false,"stop_type":"limit","stopping_word":"","tokens_cached":33,"timings":{"cache_n":0,)"
      R"("prompt_n":33,"prompt_ms":6332.409,"prompt_per_token_ms":191.89118181818182,"predicted_n":1,)"
      R"("predicted_ms":0.001},"completion_probabilities":[{"id":787,"token":" no","bytes":[32,110,111],)"
      R"("logprob":-0.6845390200614929,"top_logprobs":[{"id":787,"token":" no","bytes":[32,110,111],)"
      R"("logprob":-0.6845390200614929},{"id":9805,"token":" yes","bytes":[32,121,101,115],)"
      R"("logprob":-2.3039791584014893},{"id":2838,"token":" No","bytes":[32,78,111],"logprob":-3.0648434162139893}]}]})");
  const auto read = read_completion(reply);
  const Completion& completion = std::get<Completion>(read);
  CHECK(completion.positions == 1);
  CHECK(completion.predicted == 1);
  CHECK(completion.evaluated == 33);
  CHECK(completion.cached == 0);
  CHECK_FALSE(completion.truncated);
  CHECK_FALSE(completion.probabilities);
  CHECK(completion.model == "/m/SmolLM2-135M-Instruct.Q4_1.gguf");
  REQUIRE(completion.top.size() == 3);
  CHECK(completion.top[0].id == 787);
  CHECK(completion.top[1].logprob == -2.3039791584014893);
  CHECK(completion.top[2].id == 2838);
  CHECK_FALSE(completion_problem(completion, 33, reply));
}

TEST_CASE("probabilities behind the samplers are told apart") {
  const auto read = read_completion(restricted_reply({{7, 0.75}, {8, 0.25}}));
  const Completion& completion = std::get<Completion>(read);
  CHECK(completion.probabilities);
  CHECK(completion.top[1].logprob == 0.25);
}

TEST_CASE("A10: no log-probabilities, in all the ways that servers leave them out") {
  CHECK(failure_of(completion_reply("")) == "no_logprobs");
  CHECK(failure_of(completion_reply(R"(,"completion_probabilities":null)")) == "no_logprobs");
  CHECK(failure_of(completion_reply(R"(,"completion_probabilities":[])")) == "no_logprobs");
  CHECK(failure_of(completion_reply(R"(,"completion_probabilities":[{"id":7}])")) == "no_logprobs");
  CHECK(failure_of(ok_reply("{}")) == "no_logprobs");
  CHECK(failure_of_list("null") == "no_logprobs");
  CHECK(failure_of_list("[]") == "no_logprobs");
}

TEST_CASE("one choice, one token, the whole prompt, computed anew") {
  CHECK(failure_of(raw_reply({{7, -1}})) == "none");
  CHECK(failure_of(raw_reply({{7, -1}}, {5, 0, true, "m"})) == "truncated");
  CHECK(failure_of(raw_reply({{7, -1}}, {4, 0, false, "m"})) == "prompt_mismatch");
  CHECK(failure_of(raw_reply({{7, -1}}, {6, 0, false, "m"})) == "prompt_mismatch");
  std::string uncounted = raw_reply({{7, -1}}).body;
  uncounted.replace(uncounted.find("\"tokens_evaluated\""), 18, "\"evaluated\"");
  CHECK(failure_of(ok_reply(uncounted)) == "prompt_mismatch");
  // B6: values differ with what came from the cache.
  CHECK(failure_of(raw_reply({{7, -1}}, {5, 3, false, "m"})) == "cached_prompt");
  CHECK(failure_of(ok_reply("[" + raw_reply({{7, -1}}).body + "]")) == "unexpected_reply");
  CHECK(failure_of(completion_reply(
            R"(,"completion_probabilities":[{"id":7,"top_logprobs":[{"id":7,"logprob":-1}]},)"
            R"({"id":8,"top_logprobs":[{"id":8,"logprob":-1}]}])")) == "unexpected_reply");
  std::string two = raw_reply({{7, -1}}).body;
  two.replace(two.find("\"tokens_predicted\":1"), 20, "\"tokens_predicted\":2");
  CHECK(failure_of(ok_reply(two)) == "unexpected_reply");
}

TEST_CASE("A5: what is there twice is refused, not taken last") {
  CHECK(failure_of(raw_reply({{7, -1}, {8, -2}, {7, -3}})) == "duplicate_key");
  CHECK(failure_of_list(R"([{"id":7,"logprob":-1,"logprob":-2}])") == "duplicate_key");
  CHECK(failure_of(completion_reply(R"(,"truncated":false)")) == "duplicate_key");
}

TEST_CASE("numbers that are none") {
  CHECK(failure_of_list(R"([{"id":7,"logprob":null}])") == "not_finite");
  CHECK(failure_of_list(R"([{"id":null,"logprob":-1}])") == "not_finite");
  CHECK(failure_of_list(R"([{"id":7,"logprob":0.5}])") == "not_finite");
  CHECK(failure_of_list(R"([{"id":7,"logprob":0.0000005}])") == "none");
  CHECK(failure_of_list(R"([{"id":7,"logprob":0}])") == "none");
  CHECK(failure_of_list(R"([{"id":7,"logprob":-3}])") == "none");
  CHECK(failure_of_list(R"([{"id":7,"logprob":"-1"}])") == "unexpected_reply");
  CHECK(failure_of_list(R"([{"id":-7,"logprob":-1}])") == "unexpected_reply");
  CHECK(failure_of_list(R"([{"id":99999999999,"logprob":-1}])") == "unexpected_reply");
  CHECK(failure_of_list(R"([{"id":7}])") == "unexpected_reply");
  CHECK(failure_of_list(R"([{"logprob":-1}])") == "unexpected_reply");
  CHECK(failure_of_list(R"([{"id":7,"logprob":1e999}])") == "invalid_json");
  CHECK(failure_of_list(R"([{"id":7,"logprob":NaN}])") == "invalid_json");
  CHECK(failure_of(restricted_reply({{7, 1.5}})) == "not_finite");
  CHECK(failure_of(restricted_reply({{7, -0.5}})) == "not_finite");
}

TEST_CASE("a reply that is no JSON, or half of it") {
  const std::string whole = raw_reply({{7, -1}, {8, -2}}).body;
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    INFO(cut);
    CHECK(failure_of(ok_reply(whole.substr(0, cut))) == "invalid_json");
  }
  CHECK(failure_of(ok_reply("<html>busy</html>")) == "invalid_json");
  CHECK(failure_of(ok_reply(whole + "{}")) == "invalid_json");
  CHECK(failure_of(ok_reply("7")) == "no_logprobs");
}

TEST_CASE("A8: the numbers that stand for minus infinity") {
  CHECK(is_sentinel(-3.4028234663852886e38));
  CHECK(is_sentinel(-9999.0));
  CHECK_FALSE(is_sentinel(-998.0));
  CHECK_FALSE(is_sentinel(-120.5));
}

TEST_CASE("a whole vocabulary is read without keeping its texts") {
  Entries entries;
  for (int id = 0; id < 20000; ++id) entries.emplace_back(id, -0.001 * id);
  const auto read = read_completion(raw_reply(entries));
  const Completion& completion = std::get<Completion>(read);
  CHECK(completion.top.size() == 20000);
  CHECK(completion.top.back().id == 19999);
}
