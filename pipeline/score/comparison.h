#pragma once
// Two comparisons: the answers of two arms with each other, and an arm's accuracy with published
// figures. The second one is made only where both were measured on byte-identical records.
#include <optional>
#include <string>
#include <vector>

#include "score/cell_score.h"
#include "stats/agreement.h"

namespace preval {

/// What is kept of a cell to compare it with others.
struct CellAnswers {
  std::vector<std::int64_t> records;  ///< record.id
  std::vector<int> predicted;
};

/// Over the records that both arms answered. Both lists in one order of records.
Agreement compare_answers(const CellAnswers& a, const CellAnswers& b);

/// A row of score_published.
struct PublishedScore {
  std::string scope, scope_kind;  ///< kind: subset | pooled
  bool comparable = false;
  std::string why_not;  ///< empty when comparable
  std::size_t n_subsets = 0, of_subsets = 0;
  std::size_t published_n = 0, n = 0;
  std::optional<double> published_accuracy, accuracy;
  std::optional<Difference> difference;  ///< published minus ours
  std::optional<double> published_ece, ece;
};

/// Why a subset cannot be compared; empty when it can.
std::string why_not_comparable(const PublishedSubset& published, const ScoredArm& arm,
                               const ScoredSubset& subset, std::size_t n_answered,
                               std::size_t n_not_asked);

/// One subset, comparable when `why_not` is empty.
PublishedScore compare_published(const PublishedSubset& published, const AccuracyScore& ours,
                                 std::optional<double> our_ece, const std::string& why_not);

/// Sums the comparable subsets of a group. Of a published figure only a rounded share is known; its
/// count is recovered as round(accuracy · n), halves to even.
class PooledPublished {
 public:
  explicit PooledPublished(std::string scope);
  void add(const PublishedSubset& published, const AccuracyScore& ours, const std::string& why_not);
  /// Nothing when no published subset is of the group.
  std::optional<PublishedScore> pooled() const;

 private:
  PublishedScore sum_;
  double published_correct_ = 0;
  std::size_t our_correct_ = 0;
};

}  // namespace preval
