#pragma once
// From returned log-probabilities to the answer's distribution, exactly as the study computed it:
//   floor = min(top) - 5 (top-k reads only), lp_i = top[l_i] or floor,
//   p_i = exp(lp_i - max lp) / sum exp(lp_j - max lp), label_mass = sum exp(lp_i),
//   entropy = -sum p ln p over exp of the returned log-probabilities (nats).
// Sums are CPython's compensated ones, so the numbers equal the study's to the last bit.
#include <optional>
#include <string_view>
#include <vector>

#include "read/labels.h"

namespace preval {

/// Where a label's log-probability comes from.
enum class LabelSource { exact, top, floor, text, native, imported };
std::string_view to_text(LabelSource value);

/// One entry of a reply's list of log-probabilities (natural logarithm).
struct TokenLogprob {
  TokenId id = 0;
  double logprob = 0;
};

struct LabelProbability {
  double logprob = 0;      ///< nats
  double probability = 0;  ///< softmax over the labels alone
  LabelSource source = LabelSource::exact;
};

struct Distribution {
  std::vector<LabelProbability> labels;  ///< in the order presented; a logprob of NaN is unknown
  int predicted = 0;                     ///< first label of the largest probability
  bool tied = false;                     ///< another label has the same probability
  double label_mass = 0;                 ///< may exceed 1 by rounding; NaN: unknown
  std::optional<double> entropy;         ///< nats; not comparable across read modes
  std::optional<bool> argmax_is_label;   ///< the first maximal entry of the reply is a label
  int labels_returned = 0;               ///< how many labels the reply really held
  std::optional<double> floor;           ///< top-k reads: what an absent label was given
  /// Top-k reads: no absent label can have a higher log-probability. It is the lowest returned
  /// value, more where an absent label has several spellings (backend/text_labels.h).
  std::optional<double> bound;
  bool tied_at_bound = false;  ///< what is absent could make another label as likely as predicted
};

/// A top-k read. `top` in response order, without a sampled token that is no part of the k best. No
/// label returned gives the study's uniform distribution; the caller must fail such a read
/// (labels_returned == 0, class no_label).
Distribution read_top_k(const std::vector<TokenLogprob>& top, const std::vector<TokenId>& labels);

/// An exact read: a log-probability for every label. `top` (may be empty) gives entropy and argmax.
Distribution read_exact(const std::vector<double>& label_logprobs,
                        const std::vector<TokenLogprob>& top, const std::vector<TokenId>& labels);

/// The extremes of a top-k read: every absent label at the bound, and at minus infinity.
struct ProbabilityBounds {
  std::vector<double> at_bound, at_nothing;
};
ProbabilityBounds probability_bounds(const Distribution& distribution);

}  // namespace preval
