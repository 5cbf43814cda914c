// The rules of acceptance that all protocols share.
#include "backend/acceptance.h"

#include <cmath>
#include <limits>

#include "backend/dialogues.h"

using namespace preval;
using namespace preval::test;

namespace {

const HttpReply kReply = ok_reply("{}");

Failure failure_of(const std::variant<Distribution, Failure>& accepted) {
  REQUIRE(std::holds_alternative<Failure>(accepted));
  return std::get<Failure>(accepted);
}

}  // namespace

TEST_CASE("acceptance: what stands for minus infinity") {
  CHECK(is_sentinel(-9999.0));
  CHECK(is_sentinel(-3.4028234663852886e38));
  CHECK(is_sentinel(-std::numeric_limits<double>::infinity()));
  // The lowest numbers of bfloat16 and half float: what a mask leaves of a token.
  CHECK(is_sentinel(-3.3895313892515355e38));
  CHECK(is_sentinel(-65504));
  CHECK(is_sentinel(-1e30));
  CHECK_FALSE(is_sentinel(-8999));
  CHECK_FALSE(is_sentinel(0));
  const Failure failure = sentinel_failure({0, -9999.0}, kReply);
  CHECK(failure.error_class == "logprob_sentinel");
  CHECK(failure.retry);
  CHECK(failure.alone);
  CHECK_FALSE(failure.server);
}

TEST_CASE("acceptance: numbers that can be log-probabilities, each token once") {
  CHECK_FALSE(logprob_problem({{7, -0.5}, {8, 1e-6}, {9, -9999}}, kReply));
  CHECK(logprob_problem({{7, 2e-6}}, kReply)->error_class == "not_finite");
  CHECK(logprob_problem({{7, std::nan("")}}, kReply)->message ==
        "nan as the log-probability of token 7");
  CHECK(logprob_problem({{7, -HUGE_VAL}}, kReply)->error_class == "not_finite");
  CHECK(logprob_problem({{7, -1}, {8, -2}, {7, -1}}, kReply)->message == "token 7 is there twice");
}

TEST_CASE("acceptance: C4: the echo must be what was sent") {
  CHECK_FALSE(echo_problem({1, 2, 3}, {1, 2, 3}, kReply));
  CHECK(echo_problem({1, 2, 3}, {1, 1, 2, 3}, kReply)->message ==
        "3 prompt tokens were sent, 4 came back, different from position 1 on");
  CHECK(echo_problem({1, 2, 3}, {1, 2}, kReply)->message ==
        "3 prompt tokens were sent, 2 came back, different from position 2 on");
  CHECK(echo_problem({1, 2}, {}, kReply)->error_class == "prompt_mismatch");
}

TEST_CASE("acceptance: C1: a doubled start") {
  CHECK(doubled_start({2, 2, 105}, std::nullopt, true) ==
        "the prompt begins with token 2 twice: a doubled BOS");
  CHECK_FALSE(doubled_start({2, 2, 105}, 2, false).empty());
  CHECK(doubled_start({7, 7}, 2, false).empty());
  CHECK(doubled_start({7, 7}, std::nullopt, false).empty());
  CHECK(doubled_start({2, 105}, 2, true).empty());
  CHECK(doubled_start({2}, 2, true).empty());
}

TEST_CASE("acceptance: by id: every label, with a value") {
  const std::vector<TokenId> labels{7, 8};
  const auto accepted = accept_by_id({{19, -0.1}, {8, -1}, {7, -2}}, labels, false, kReply);
  const Distribution& distribution = std::get<Distribution>(accepted);
  CHECK(distribution.labels[0].logprob == -2);
  CHECK(distribution.predicted == 1);
  CHECK(distribution.labels_returned == 2);
  CHECK_FALSE(distribution.entropy);
  CHECK_FALSE(distribution.argmax_is_label);
  CHECK(failure_of(accept_by_id({{19, -0.1}, {8, -1}}, labels, true, kReply)).error_class ==
        "missing_label");
  CHECK(failure_of(accept_by_id({}, labels, true, kReply)).error_class == "missing_label");
  CHECK(failure_of(accept_by_id({{8, -1}, {7, -9999}}, labels, false, kReply)).message ==
        "token 7: -9999");
  const auto zero = accept_by_id({{8, -1}, {7, -9999}}, labels, true, kReply);
  CHECK(std::get<Distribution>(zero).labels[0].probability == 0);
  CHECK(std::get<Distribution>(zero).labels[1].probability == 1);
  CHECK(std::get<Distribution>(zero).label_mass == std::exp(-1.0));
  CHECK(failure_of(accept_by_id({{8, -9999}, {7, -9999}}, labels, true, kReply)).alone);
}

TEST_CASE("acceptance: top-k: as many as asked for, values, at least one label") {
  const std::vector<TokenId> labels{7, 8};
  const auto accepted = accept_top_k({{8, -1}, {3, -2}}, 2, labels, kReply);
  CHECK(std::get<Distribution>(accepted).labels_returned == 1);
  CHECK(failure_of(accept_top_k({{8, -1}}, 2, labels, kReply)).message ==
        "2 log-probabilities asked for, 1 came");
  CHECK(failure_of(accept_top_k({}, 0, labels, kReply)).error_class == "unexpected_reply");
  CHECK(failure_of(accept_top_k({{2, -1}, {3, -2}}, 2, labels, kReply)).message ==
        "no label among the 2 best tokens");
  // A sentinel says more than a count.
  CHECK(failure_of(accept_top_k({{0, -9999}}, 32, labels, kReply)).error_class ==
        "logprob_sentinel");
}
