#include "stats/temperature.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/python_random.h"
#include "stats/sums.h"

namespace preval {
namespace {

/// Confidences of the given records, in that order. They are computed in file order first: a
/// shuffled walk through the probabilities of a million records would wait for memory most of the
/// time.
std::vector<Confidence> tempered_confidences(const ScoredReads& reads,
                                             std::span<const std::size_t> records,
                                             double temperature) {
  std::vector<char> wanted(reads.size(), 0);
  for (const std::size_t i : records) wanted[i] = 1;
  std::vector<Confidence> by_record(reads.size());
  std::vector<double> scratch;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (wanted[i] == 0) continue;
    scratch.resize(reads.p(i).size());
    temper(reads.p(i), temperature, scratch);
    const std::size_t best = first_maximum(scratch);
    by_record[i] = {scratch[best], best == reads.gold(i)};
  }
  std::vector<Confidence> result;
  result.reserve(records.size());
  for (const std::size_t i : records) result.push_back(by_record[i]);
  return result;
}

}  // namespace

std::array<double, kGridSize> temperature_grid() {
  std::array<double, kGridSize> grid{};
  for (std::size_t i = 0; i < grid.size(); ++i) {
    grid[i] = round_to_digits(0.25 * std::pow(1.05, static_cast<double>(i)), 4);
  }
  return grid;
}

void temper(std::span<const double> p, double temperature, std::span<double> out) {
  const double exponent = 1.0 / temperature;
  PythonSum sum;
  for (std::size_t k = 0; k < p.size(); ++k) {
    out[k] = std::pow(std::max(p[k], kTemperFloor), exponent);
    sum.add(out[k]);
  }
  const double total = sum.value();
  for (double& weight : out) weight /= total;
}

double fit_temperature(const ScoredReads& reads, std::span<const std::size_t> records,
                       double clip) {
  if (records.empty()) return 1.0;
  std::vector<double> scratch;
  std::optional<double> least;
  double best = 1.0;
  for (const double candidate : temperature_grid()) {
    PythonSum loss;
    for (const std::size_t i : records) {
      scratch.resize(reads.p(i).size());
      temper(reads.p(i), candidate, scratch);
      loss.add(-std::log(std::max(scratch[reads.gold(i)], clip)));
    }
    if (!least || loss.value() < *least) {
      least = loss.value();
      best = candidate;
    }
  }
  return best;
}

ScoredReads tempered(const ScoredReads& reads, std::span<const std::size_t> records,
                     double temperature) {
  ScoredReads result;
  std::vector<double> scratch;
  for (const std::size_t i : records) {
    scratch.resize(reads.p(i).size());
    temper(reads.p(i), temperature, scratch);
    result.add(scratch, reads.gold(i));
  }
  return result;
}

LabelledSplit split_records(std::size_t n, const LabelRule& rule, std::size_t k) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  PythonRandom(rule.seed + k).shuffle(order);
  const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::size_t half = n / 2;
  return {{at(0), at(std::min(rule.labels, half))}, {at(half), order.end()}};
}

std::optional<AfterLabels> ece_after_labels(const ScoredReads& reads, const LabelRule& rule) {
  if (reads.size() < 2 || rule.splits == 0) return std::nullopt;
  const std::array<double, kGridSize> grid = temperature_grid();
  AfterLabels result;
  std::vector<double> errors;
  for (std::size_t k = 0; k < rule.splits; ++k) {
    const LabelledSplit parts = split_records(reads.size(), rule, k);
    LabelSplit split;
    split.temperature = fit_temperature(reads, parts.fit, rule.clip);
    split.at_edge = split.temperature == grid.front() || split.temperature == grid.back();
    split.ece = *ece(tempered_confidences(reads, parts.held_out, split.temperature), rule.binning);
    errors.push_back(split.ece);
    result.n_at_edge += split.at_edge ? 1 : 0;
    result.splits.push_back(split);
  }
  result.mean_ece = python_sum(errors) / static_cast<double>(rule.splits);
  return result;
}

}  // namespace preval
