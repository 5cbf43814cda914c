#pragma once
// The answer of a decision server, which is numbers printed for people: two decimals on the hosted
// interface, so that thirds add up to 0.99 and forty options to 1.18. What is printed is kept as it
// is, never divided by its sum, and is refused only when no rounding of numbers that add up to one
// could have printed it.
#include <vector>

#include "backend/backend.h"

namespace preval {

/// The printed probabilities of one answer, in millionths.
struct PrintedSum {
  long long sum = 0;
  long long least = 0, most = 0;  ///< what the unrounded numbers can add up to
  bool any = false;               ///< one of them is above zero

  bool is_possible() const { return any && least <= 1'000'000 && most >= 1'000'000; }
  /// By more than 0.05 from 1.
  bool is_off() const { return sum < 950'000 || sum > 1'050'000; }
};

PrintedSum printed_sum(const std::vector<double>& probabilities);

/// The level that an expected level counts as. `levels` from 0; the rule is not none.
int level_of(double expected, int levels, LevelRule rule);

/// What a reply says about the question of `item`. Options are found by their names, levels by
/// their numbers, counted from 0 or from 1 as the reply's own keys or legend do. The prediction is
/// the largest printed probability or the choice that the server names, as `spec.scored` says
/// (yes/no and score answers name none). A score without probabilities is an expected level, which
/// counts as `spec.score_level` says.
///
/// Failures: invalid_json, unexpected_reply (no answer, one of another type or with options that
/// were not asked about), missing_label, not_finite, impossible_sum, no_level_rule.
std::variant<Answer, Failure> read_systemone(const Json& said, const Item& item,
                                             const BackendSpec& spec, const HttpReply& reply);

}  // namespace preval
