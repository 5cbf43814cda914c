#pragma once
// The answered reads of one cell (an arm on a subset or task), as every score looks at them: the
// probabilities of the labels and which label is right. One flat array, so that a million records
// are one block of memory.
#include <cstddef>
#include <span>
#include <vector>

namespace preval {

/// Index of the first of the greatest values; `values` is not empty. Ties go to the first label.
std::size_t first_maximum(std::span<const double> values);

/// A read's greatest probability and whether its label is the right one.
struct Confidence {
  double value = 0;
  bool correct = false;
};

/// Records in file order: splits, sums and so the last bits of the scores depend on it.
class ScoredReads {
 public:
  /// Room for that many records of that many labels each.
  void reserve(std::size_t records, std::size_t labels);
  /// `p` in the order of the record's keys; `gold` is an index into it. No probabilities, one that
  /// is negative or not finite, or a gold label outside are a std::logic_error: those who read the
  /// evidence have refused them with a better message.
  void add(std::span<const double> p, std::size_t gold);

  std::size_t size() const { return gold_.size(); }
  bool empty() const { return gold_.empty(); }

  std::span<const double> p(std::size_t record) const {
    return std::span(p_).subspan(start_[record], start_[record + 1] - start_[record]);
  }
  std::size_t gold(std::size_t record) const { return gold_[record]; }
  /// The label of the greatest probability, the first of several.
  std::size_t predicted(std::size_t record) const { return first_maximum(p(record)); }
  Confidence confidence(std::size_t record) const;

  std::size_t n_correct() const;
  std::vector<Confidence> confidences() const;
  /// Records per gold label, as many entries as the widest record has labels.
  std::vector<std::size_t> gold_counts() const;

 private:
  std::vector<double> p_;
  std::vector<std::size_t> start_{0};
  std::vector<std::size_t> gold_;
};

}  // namespace preval
