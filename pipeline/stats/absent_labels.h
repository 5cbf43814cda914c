#pragma once
// What labels that did not come back could change. A top-k read scores them at a floor, which is a
// convention; all that is known is that they lie between nothing and a bound. So calibration is
// computed at both ends, with every absent label of every answer at the same one.
//
// The labels that came stay as they came. Then mean confidence lies between its two values whatever
// the absent labels were: the chosen label's probability falls as theirs rise. ECE, Brier score and
// NLL need not, since answers may lie at different ends; the two values show how much hangs on the
// absent labels.
#include <cstddef>
#include <optional>
#include <vector>

#include "stats/calibration.h"
#include "stats/scored_reads.h"

namespace preval {

/// Some answers with other probabilities than they are scored with.
struct OtherReads {
  std::vector<std::size_t> which;  ///< ascending indices into the reads that are scored
  ScoredReads reads;               ///< one for each, with the same labels and gold label
};

struct TrustScores {
  double confidence = 0;  ///< mean probability of the chosen label
  double ece = 0, brier = 0, nll = 0;
};

/// Mean confidence, ECE, Brier score and NLL of `reads`, those in `other` at the probabilities that
/// stand there. The choice stays that of `reads`: where an absent label ties with it at the bound,
/// or could pass it, its own probability counts and not the largest one. Without others these are
/// ece(), brier() and nll() of the reads to the last bit. Nothing for no reads; a std::logic_error
/// when the two do not fit.
std::optional<TrustScores> trust_scores(const ScoredReads& reads, const OtherReads& other,
                                        Binning binning, double clip);

}  // namespace preval
