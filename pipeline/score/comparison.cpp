#include "score/comparison.h"

#include <algorithm>
#include <unordered_map>

#include "stats/sums.h"

namespace preval {

Agreement compare_answers(const CellAnswers& a, const CellAnswers& b) {
  if (a.records == b.records) return agreement(a.predicted, b.predicted);
  // Somebody lacks answers: keep the records that both have, in a's order.
  std::unordered_map<std::int64_t, int> of_b;
  for (std::size_t i = 0; i < b.records.size(); ++i) of_b.emplace(b.records[i], b.predicted[i]);
  std::vector<int> both_a, both_b;
  for (std::size_t i = 0; i < a.records.size(); ++i) {
    const auto other = of_b.find(a.records[i]);
    if (other == of_b.end()) continue;
    both_a.push_back(a.predicted[i]);
    both_b.push_back(other->second);
  }
  return agreement(both_a, both_b);
}

std::string why_not_comparable(const PublishedSubset& published, const ScoredArm& arm,
                               const ScoredSubset& subset, std::size_t n_answered,
                               std::size_t n_not_asked) {
  if (subset.registered_sha256 != published.dataset_sha256) return "different records";
  if (!subset.verified) return "subset " + subset.status;
  if (!arm.started) return "arm not run";
  if (n_answered == 0) return "no answer";
  // What was asked in vain counts as wrong, here as everywhere; what was never asked says nothing
  // about the model.
  if (n_not_asked > 0) return "not all records were asked";
  return {};
}

PublishedScore compare_published(const PublishedSubset& published, const AccuracyScore& ours,
                                 std::optional<double> our_ece, const std::string& why_not) {
  PublishedScore score;
  score.scope = published.subset;
  score.scope_kind = "subset";
  score.comparable = why_not.empty();
  score.why_not = why_not;
  score.n_subsets = score.comparable ? 1 : 0;
  score.of_subsets = 1;
  score.published_n = published.n;
  score.n = ours.n_registered;
  score.published_accuracy = published.accuracy;
  score.published_ece = published.ece;
  if (!score.comparable) return score;
  score.accuracy = ours.accuracy;
  score.ece = our_ece;
  if (ours.accuracy) {
    score.difference =
        unpaired_difference(published.accuracy, published.n, *ours.accuracy, ours.n_registered);
  }
  return score;
}

PooledPublished::PooledPublished(std::string scope) {
  sum_.scope = std::move(scope);
  sum_.scope_kind = "pooled";
}

void PooledPublished::add(const PublishedSubset& published, const AccuracyScore& ours,
                          const std::string& why_not) {
  ++sum_.of_subsets;
  if (!why_not.empty()) {
    if (sum_.why_not.empty()) sum_.why_not = why_not;
    return;
  }
  ++sum_.n_subsets;
  sum_.published_n += published.n;
  sum_.n += ours.n_registered;
  published_correct_ += round_half_even(published.accuracy * static_cast<double>(published.n));
  our_correct_ += ours.n_correct;
}

std::optional<PublishedScore> PooledPublished::pooled() const {
  if (sum_.of_subsets == 0) return std::nullopt;
  PublishedScore score = sum_;
  score.comparable = score.n_subsets > 0;
  if (!score.comparable) return score;
  score.why_not.clear();
  score.published_accuracy = published_correct_ / static_cast<double>(score.published_n);
  score.accuracy = share(our_correct_, score.n);
  if (score.accuracy) {
    score.difference =
        unpaired_difference(*score.published_accuracy, score.published_n, *score.accuracy, score.n);
  }
  return score;
}

}  // namespace preval
