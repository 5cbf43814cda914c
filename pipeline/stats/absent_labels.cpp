#include "stats/absent_labels.h"

#include <span>
#include <stdexcept>

#include "stats/sums.h"

namespace preval {

std::optional<TrustScores> trust_scores(const ScoredReads& reads, const OtherReads& other,
                                        Binning binning, double clip) {
  if (other.which.size() != other.reads.size())
    throw std::logic_error("trust_scores: not one read for each that has another one");
  if (reads.empty() && other.which.empty()) return std::nullopt;
  std::vector<Confidence> confidences;
  confidences.reserve(reads.size());
  PythonSum confidence, brier, nll;
  std::size_t next = 0;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    std::span<const double> p = reads.p(i);
    const std::size_t chosen = reads.predicted(i), gold = reads.gold(i);
    if (next < other.which.size() && other.which[next] == i) {
      if (other.reads.p(next).size() != p.size() || other.reads.gold(next) != gold)
        throw std::logic_error("trust_scores: the other read is one of another question");
      p = other.reads.p(next++);
    }
    confidences.push_back({p[chosen], chosen == gold});
    confidence.add(p[chosen]);
    brier.add(brier_of(p, gold));
    nll.add(nll_of(p, gold, clip));
  }
  if (next != other.which.size())
    throw std::logic_error("trust_scores: other reads of no answer, or not in their order");
  const auto n = static_cast<double>(reads.size());
  return TrustScores{confidence.value() / n, *ece(confidences, binning), brier.value() / n,
                     nll.value() / n};
}

}  // namespace preval
