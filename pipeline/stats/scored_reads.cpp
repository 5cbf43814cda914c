#include "stats/scored_reads.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace preval {

std::size_t first_maximum(std::span<const double> values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

void ScoredReads::reserve(std::size_t records, std::size_t labels) {
  p_.reserve(records * labels);
  start_.reserve(records + 1);
  gold_.reserve(records);
}

void ScoredReads::add(std::span<const double> p, std::size_t gold) {
  if (gold >= p.size())
    throw std::logic_error("ScoredReads: the gold label is not among the labels");
  for (const double value : p) {
    if (!std::isfinite(value) || value < 0) {
      throw std::logic_error("ScoredReads: a probability is negative or not finite");
    }
  }
  p_.insert(p_.end(), p.begin(), p.end());
  start_.push_back(p_.size());
  gold_.push_back(gold);
}

Confidence ScoredReads::confidence(std::size_t record) const {
  const std::span<const double> values = p(record);
  const std::size_t best = first_maximum(values);
  return {values[best], best == gold_[record]};
}

std::size_t ScoredReads::n_correct() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < size(); ++i) count += predicted(i) == gold_[i] ? 1 : 0;
  return count;
}

std::vector<Confidence> ScoredReads::confidences() const {
  std::vector<Confidence> all;
  all.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) all.push_back(confidence(i));
  return all;
}

std::vector<std::size_t> ScoredReads::gold_counts() const {
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < size(); ++i) {
    counts.resize(std::max(counts.size(), p(i).size()));
    ++counts[gold_[i]];
  }
  return counts;
}

}  // namespace preval
