#include "stats/calibration.h"

#include <algorithm>
#include <cmath>

#include "stats/sums.h"

namespace preval {
namespace {

double edge(std::size_t i, Binning binning) {
  return static_cast<double>(i) / static_cast<double>(binning.count);
}

/// sum(term(i) for i in range(n)) / n.
template <class Term>
std::optional<double> mean_over(std::size_t n, Term term) {
  if (n == 0) return std::nullopt;
  PythonSum sum;
  for (std::size_t i = 0; i < n; ++i) sum.add(term(i));
  return sum.value() / static_cast<double>(n);
}

}  // namespace

std::optional<std::size_t> bin_of(double confidence, Binning binning) {
  if (!(confidence >= 0 && confidence <= 1) || binning.count == 0) return std::nullopt;
  const std::size_t last = binning.count - 1;
  // The product may round across an edge; the edges themselves decide.
  std::size_t bin =
      std::min(static_cast<std::size_t>(confidence * static_cast<double>(binning.count)), last);
  if (binning.edges == Edges::left_closed) {
    while (bin > 0 && confidence < edge(bin, binning)) --bin;
    while (bin < last && confidence >= edge(bin + 1, binning)) ++bin;
  } else {
    while (bin > 0 && confidence <= edge(bin, binning)) --bin;
    while (bin < last && confidence > edge(bin + 1, binning)) ++bin;
  }
  return bin;
}

std::vector<ReliabilityBin> reliability(std::span<const Confidence> answers, Binning binning) {
  std::vector<ReliabilityBin> bins(binning.count);
  std::vector<PythonSum> confidence(binning.count);
  for (const Confidence& answer : answers) {
    const std::optional<std::size_t> bin = bin_of(answer.value, binning);
    if (!bin) continue;
    bins[*bin].n += 1;
    bins[*bin].n_correct += answer.correct ? 1 : 0;
    confidence[*bin].add(answer.value);
  }
  for (std::size_t i = 0; i < bins.size(); ++i) {
    ReliabilityBin& bin = bins[i];
    bin.low = edge(i, binning);
    bin.high = edge(i + 1, binning);
    if (bin.n == 0) continue;
    bin.mean_confidence = confidence[i].value() / static_cast<double>(bin.n);
    bin.accuracy = static_cast<double>(bin.n_correct) / static_cast<double>(bin.n);
  }
  return bins;
}

std::optional<double> ece(std::span<const Confidence> answers, Binning binning) {
  if (answers.empty()) return std::nullopt;
  const auto n = static_cast<double>(answers.size());
  double total = 0;
  if (binning.edges == Edges::left_closed) {
    std::vector<PythonSum> gaps(binning.count);
    for (const Confidence& answer : answers) {
      const std::optional<std::size_t> bin = bin_of(answer.value, binning);
      if (bin) gaps[*bin].add(answer.value - (answer.correct ? 1.0 : 0.0));
    }
    for (const PythonSum& gap : gaps) total += std::fabs(gap.value()) / n;
  } else {
    for (const ReliabilityBin& bin : reliability(answers, binning)) {
      total += static_cast<double>(bin.n) / n * std::fabs(bin.accuracy - bin.mean_confidence);
    }
  }
  return total;
}

double brier_of(std::span<const double> p, std::size_t gold) {
  PythonSum sum;
  for (std::size_t k = 0; k < p.size(); ++k) sum.add(square(p[k] - (k == gold ? 1 : 0)));
  return sum.value();
}

std::optional<double> brier(const ScoredReads& reads) {
  return mean_over(reads.size(),
                   [&](std::size_t i) { return brier_of(reads.p(i), reads.gold(i)); });
}

double nll_of(std::span<const double> p, std::size_t gold, double clip) {
  return -std::log(std::max(p[gold], clip));
}

std::optional<double> nll(const ScoredReads& reads, double clip) {
  return mean_over(reads.size(),
                   [&](std::size_t i) { return nll_of(reads.p(i), reads.gold(i), clip); });
}

}  // namespace preval
