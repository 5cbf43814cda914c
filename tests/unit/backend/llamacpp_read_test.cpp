// Exact and top-k reads, with replies in which the labels are tokens 7, 8 and 9 of a prompt of
// five.
#include <cmath>

#include "backend/llamacpp.h"
#include "backend/llamacpp_replies.h"

using namespace preval;
using namespace preval::test;

namespace {

constexpr double kLowest = -3.4028234663852886e38;

LlamaCpp backend(ReadMode mode, int count, bool sentinel_is_zero = false) {
  BackendSpec spec;
  spec.sentinel_is_zero = sentinel_is_zero;
  spec.kind = "llamacpp";
  spec.read = mode;
  spec.k = count;
  spec.raw_probs = count;
  return LlamaCpp(spec, {}, {});
}

Outcome<Answer> read(const LlamaCpp& server, std::deque<HttpReply> replies) {
  return converse_with<Answer>(*server.read({}, {{1, 2, 3, 4, 5}, {7, 8, 9}}, {}),
                               std::move(replies));
}

Outcome<Answer> exact(std::deque<HttpReply> replies, int raw_probs = 3) {
  return read(backend(ReadMode::exact, raw_probs), std::move(replies));
}

Outcome<Answer> top_k(std::deque<HttpReply> replies, int k = 3) {
  return read(backend(ReadMode::top_k, k), std::move(replies));
}

}  // namespace

TEST_CASE("exact: one raw read is enough when every label is in it") {
  const auto outcome = exact({raw_reply({{8, -0.5}, {7, -1.5}, {9, -2.5}})});
  CHECK(outcome.asked[0].path == "/completion");
  CHECK(outcome.asked[0].body == raw_read_body({1, 2, 3, 4, 5}, 3));
  const Answer& answer = outcome.result();
  CHECK(answer.requests == 1);
  CHECK(answer.latency_ms == 10);
  CHECK(answer.prompt_tokens == 5);
  CHECK(answer.model == "tiny.gguf");
  CHECK(answer.distribution.predicted == 1);
  CHECK(answer.distribution.labels_returned == 3);
  CHECK(answer.distribution.labels[0].logprob == -1.5);
  CHECK(answer.distribution.labels[0].source == LabelSource::exact);
  CHECK(answer.distribution.argmax_is_label == true);
  CHECK_FALSE(answer.distribution.floor);
}

TEST_CASE("exact: a restricted read gives the labels that the raw read lacks") {
  const auto outcome = exact({raw_reply({{4, -0.5}, {8, -1.5}, {3, -2.0}}),
                              restricted_reply({{8, 0.9}, {7, 0.0625}, {9, 0.0375}})});
  REQUIRE(outcome.asked.size() == 2);
  CHECK(outcome.asked[1].body == restricted_read_body({1, 2, 3, 4, 5}, {7, 8, 9}));
  const Answer& answer = outcome.result();
  CHECK(answer.requests == 2);
  CHECK(answer.latency_ms == 20);
  CHECK(answer.distribution.labels[1].logprob == -1.5);
  CHECK(answer.distribution.labels[0].logprob == -1.5 + std::log(0.0625 / 0.9));
  CHECK(answer.distribution.labels[2].probability == Approx(0.0375).epsilon(1e-12));
  CHECK(answer.distribution.argmax_is_label == false);
  CHECK(answer.distribution.label_mass == Approx(std::exp(-1.5) / 0.9).epsilon(1e-12));
}

TEST_CASE("exact: with several labels known the best one is the anchor, and known values stay") {
  const auto outcome =
      exact({raw_reply({{8, -1.0}, {7, -2.0}, {3, -2.5}}),
             restricted_reply(
                 {{8, 0.7}, {7, 0.7 * std::exp(-1.00001)}, {9, 0.3 - 0.7 * std::exp(-1.00001)}})});
  const auto& labels = outcome.result().distribution.labels;
  CHECK(labels[0].logprob == -2.0);
  CHECK(labels[1].logprob == -1.0);
  CHECK(labels[2].logprob == Approx(-1.0 + std::log((0.3 - 0.7 * std::exp(-1.00001)) / 0.7)));
}

TEST_CASE("exact: without any label the raw read grows eightfold, up to the vocabulary") {
  const auto grown =
      exact({raw_reply({{1, -1}, {2, -2}, {3, -3}}),
             raw_reply({{1, -1}, {2, -2}, {3, -3}, {4, -4}, {7, -5}, {8, -6}, {9, -7}, {5, -8}})},
            3);
  CHECK(grown.asked[1].body == raw_read_body({1, 2, 3, 4, 5}, 24));
  CHECK(grown.result().requests == 2);
  CHECK(grown.result().distribution.labels[0].logprob == -5);
  // Fewer than asked for: that was the whole vocabulary.
  const auto none = exact(
      {raw_reply({{1, -1}, {2, -2}, {3, -3}}), raw_reply({{1, -1}, {2, -2}, {3, -3}, {7, -4}})}, 3);
  CHECK(none.failure().error_class == "missing_label");
  CHECK(none.failure().message == "token 8 is not among the 4 that came, of 24 asked for");
}

TEST_CASE("exact: a restricted read that cannot be believed is replaced by the whole vocabulary") {
  const HttpReply raw = raw_reply({{4, -0.5}, {8, -1.5}, {3, -2.0}});
  const HttpReply whole = raw_reply({{4, -0.5}, {8, -1.5}, {3, -2.0}, {7, -6}, {9, -7}});
  const HttpReply strange = GENERATE_COPY(
      restricted_reply({{8, 1.0}, {7, 0.0}, {9, 0.0}}),            // underflow
      restricted_reply({{8, 0.9}, {7, 0.1}}),                      // a label is not there
      restricted_reply({{4, 0.6}, {8, 0.2}, {7, 0.1}, {9, 0.1}}),  // the bias was ignored
      restricted_reply({{9, 0.6}, {8, 0.3}, {7, 0.1}}),            // above the raw read's lowest
      restricted_reply({{7, 0.6}, {9, 0.4}, {8, 0.0}}));           // no anchor
  const auto outcome = exact({raw, strange, whole});
  REQUIRE(outcome.asked.size() == 3);
  CHECK(outcome.asked[2].body == raw_read_body({1, 2, 3, 4, 5}, kWholeVocabulary));
  CHECK(outcome.result().requests == 3);
  CHECK(outcome.result().distribution.labels[0].logprob == -6);
}

TEST_CASE("exact: a restricted read that contradicts the raw one is replaced, too") {
  const auto outcome = exact({raw_reply({{8, -1.0}, {7, -2.0}, {3, -2.5}}),
                              restricted_reply({{8, 0.5}, {7, 0.4}, {9, 0.1}}),
                              raw_reply({{8, -1.0}, {7, -2.0}, {3, -2.5}, {9, -3}})});
  CHECK(outcome.result().requests == 3);
  CHECK(outcome.result().distribution.labels[2].logprob == -3);
}

TEST_CASE("A8: a sentinel is no value of a label") {
  // In the raw read it only means that a label is far away: the restricted read tells how far.
  const auto restricted = exact({raw_reply({{8, -1.5}, {3, -2.0}, {7, kLowest}}),
                                 restricted_reply({{8, 0.9}, {7, 0.0625}, {9, 0.0375}})});
  CHECK(restricted.result().distribution.labels[0].logprob == -1.5 + std::log(0.0625 / 0.9));
  // When even the whole vocabulary has nothing else, the read fails.
  const auto nothing =
      exact({raw_reply({{8, -1.5}, {3, -2.0}, {4, -2.5}}),
             restricted_reply({{8, 1.0}, {7, 0.0}, {9, 0.0}}),
             raw_reply({{8, -1.5}, {3, -2.0}, {4, -2.5}, {7, kLowest}, {9, kLowest}})});
  CHECK(nothing.failure().error_class == "logprob_sentinel");
  CHECK_FALSE(nothing.failure().retry);
  // Of tokens that are no labels it is an honest zero, and no part of entropy.
  const auto others = exact({raw_reply({{8, -0.5}, {7, -1.5}, {9, -2.5}, {3, kLowest}})}, 4);
  CHECK(others.result().distribution.entropy ==
        exact({raw_reply({{8, -0.5}, {7, -1.5}, {9, -2.5}})}).result().distribution.entropy);
}

TEST_CASE("A8: llama.cpp: minus infinity of a label is zero only where the plan says so") {
  const LlamaCpp lenient = backend(ReadMode::exact, 3, true);
  const HttpReply near = raw_reply({{8, -1.5}, {3, -2.0}, {4, -2.5}});
  const HttpReply underflow = restricted_reply({{8, 1.0}, {7, 0.0}, {9, 0.0}});
  const auto whole = [](Entries rest) {
    Entries all{{8, -1.5}, {3, -2.0}, {4, -2.5}};
    all.insert(all.end(), rest.begin(), rest.end());
    return raw_reply(all);
  };
  const Distribution distribution =
      read(lenient, {near, underflow, whole({{7, kLowest}, {9, -3.5}})}).result().distribution;
  CHECK(distribution.labels[0].probability == 0);
  CHECK(distribution.labels[2].probability == Approx(1 / (1 + std::exp(2.0))));
  CHECK(distribution.labels_returned == 3);
  // A label that is not there at all is another matter, and so are sentinels alone.
  CHECK(read(lenient, {near, underflow, whole({{7, kLowest}})}).failure().error_class ==
        "missing_label");
  CHECK(read(backend(ReadMode::exact, 5, true),
             {raw_reply({{3, -0.5}, {7, kLowest}, {8, kLowest}, {9, kLowest}})})
            .failure()
            .error_class == "logprob_sentinel");
}

TEST_CASE("C4: llama.cpp: a prompt that the server counts one token longer is a final error") {
  const CompletionFacts longer{6, 0, false, "/models/tiny.gguf"};
  const Entries all{{8, -0.5}, {7, -1.5}, {9, -2.5}};
  for (const Failure& failure :
       {exact({raw_reply(all, longer)}).failure(), top_k({raw_reply(all, longer)}).failure()}) {
    CHECK(failure.error_class == "prompt_mismatch");
    CHECK(failure.message == "5 prompt tokens sent, 6 counted by the server");
    CHECK_FALSE(failure.retry);
  }
}

TEST_CASE("exact: a failure of any exchange ends the read") {
  const HttpReply raw = raw_reply({{4, -0.5}, {8, -1.5}, {3, -2.0}});
  CHECK(exact({status_reply(500, "")}).failure().retry);
  CHECK(exact({raw, raw_reply({{8, -1}})}).failure().error_class == "no_logprobs");
  CHECK(exact({raw, restricted_reply({{8, 0.9}}, {5, 2, false, "/models/tiny.gguf"})})
            .failure()
            .error_class == "cached_prompt");
  CHECK(exact({raw_reply({{8, -1}}, {4, 0, false, "m"})}).failure().error_class ==
        "prompt_mismatch");
}

TEST_CASE(
    "a generated fragment of a character leaves no log-probabilities: a label is generated "
    "instead") {
  const auto outcome = exact({completion_reply(""), raw_reply({{8, -0.5}, {7, -1.5}, {9, -2.5}})});
  CHECK(outcome.asked[1].body == raw_read_body({1, 2, 3, 4, 5}, 3, 7));
  CHECK(outcome.result().requests == 2);
  CHECK(top_k({completion_reply(""), raw_reply({{8, -0.5}, {7, -1.5}, {9, -2.5}})})
            .result()
            .requests == 2);
  // A10: a server that never gives any is not asked for ever.
  CHECK(exact({completion_reply(""), completion_reply("")}).failure().error_class == "no_logprobs");
  CHECK(top_k({completion_reply(""), completion_reply("")}).failure().error_class == "no_logprobs");
}

TEST_CASE("probabilities are not taken for log-probabilities, nor the other way round") {
  const HttpReply swapped = restricted_reply({{8, 0.6}, {7, 0.3}, {9, 0.1}});
  CHECK(exact({swapped, swapped}).failure().message.find("probabilities after sampling") == 0);
  CHECK(top_k({swapped, swapped}).failure().error_class == "no_logprobs");
  // Also where a raw read of everything takes the place of a restricted one that is not believed.
  const auto late = exact({raw_reply({{8, -0.5}, {1, -1.5}, {3, -3.0}}),
                           restricted_reply({{8, 0.9}, {7, 0.1}}), swapped, swapped});
  CHECK(late.failure().error_class == "no_logprobs");
  CHECK(exact({raw_reply({{8, -0.5}, {1, -1.5}, {3, -3.0}}), raw_reply({{8, -0.5}})})
            .failure()
            .message == "a restricted read without probabilities");
}

TEST_CASE("top-k: the k best, with a floor for the labels outside") {
  const auto outcome = top_k({raw_reply({{8, -0.5}, {3, -1.5}, {7, -2.5}})});
  REQUIRE(outcome.asked.size() == 1);
  CHECK(outcome.asked[0].body == raw_read_body({1, 2, 3, 4, 5}, 3));
  const Distribution& distribution = outcome.result().distribution;
  CHECK(distribution.floor == -7.5);
  CHECK(distribution.bound == -2.5);
  CHECK(distribution.labels[2].source == LabelSource::floor);
  CHECK(distribution.labels_returned == 2);
}

TEST_CASE("top-k: reads that are no answers") {
  CHECK(top_k({raw_reply({{1, -0.5}, {2, -1.5}, {3, -2.5}})}).failure().error_class == "no_label");
  CHECK(top_k({raw_reply({{8, -0.5}, {3, -1.5}})}).failure().message ==
        "3 log-probabilities asked for, 2 came");
  CHECK(top_k({raw_reply({{8, -0.5}, {3, -1.5}, {4, -2}, {5, -3}})}).failure().error_class ==
        "unexpected_reply");
  CHECK(top_k({raw_reply({{8, -0.5}, {3, -1.5}, {7, kLowest}})}).failure().error_class ==
        "logprob_sentinel");
  CHECK(top_k({raw_reply({{8, -0.5}, {3, -9999.0}, {7, -2}})}).failure().error_class ==
        "logprob_sentinel");
  // One label of several is an answer.
  CHECK(top_k({raw_reply({{8, -0.5}, {3, -1.5}, {4, -2}})}).result().distribution.labels_returned ==
        1);
}

TEST_CASE("a model that changes under way is noticed") {
  const LlamaCpp server = backend(ReadMode::top_k, 3);
  server.learned().model = "/models/tiny.gguf";
  const Entries entries{{8, -0.5}, {3, -1.5}, {7, -2.5}};
  CHECK(read(server, {raw_reply(entries)}).result().model == "tiny.gguf");
  const auto changed = read(server, {raw_reply(entries, {5, 0, false, "/models/other.gguf"})});
  CHECK(changed.failure().error_class == "identity_changed");
  CHECK(changed.failure().message == "answered by other.gguf, where tiny.gguf was serving");
}

TEST_CASE("the referee reads the whole vocabulary at once") {
  const LlamaCpp server = backend(ReadMode::exact, 3);
  const auto outcome =
      converse_with<Answer>(*server.read_whole_vocabulary({{1, 2, 3, 4, 5}, {7, 8, 9}}),
                            {raw_reply({{8, -0.5}, {3, -1}, {7, -1.5}, {9, -2.5}})});
  CHECK(outcome.asked[0].body == raw_read_body({1, 2, 3, 4, 5}, kWholeVocabulary));
  CHECK(outcome.result().distribution.labels[2].logprob == -2.5);
}
