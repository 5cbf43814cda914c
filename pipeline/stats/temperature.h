#pragma once
// Temperature scaling (Guo et al. 2017) as it was registered: one number per split, taken from a
// fixed grid, fitted on a few labelled records and judged on records that the fit has not seen.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stats/calibration.h"
#include "stats/scored_reads.h"

namespace preval {

/// round(0.25 · 1.05^i, 4) for i = 0 … 71: 0.25 to 7.9869. 1.0 is not on it (0.98, 1.029 are).
inline constexpr std::size_t kGridSize = 72;
std::array<double, kGridSize> temperature_grid();

/// Smallest probability that is tempered: zero would stay zero at every temperature.
inline constexpr double kTemperFloor = 1e-12;

/// Writes max(p_k, 1e-12)^(1/T), normalised, to `out`, which is as long as `p`. T = 1 is no
/// identity: it floors and normalises too.
void temper(std::span<const double> p, double temperature, std::span<double> out);

/// The first grid value with the least Σ -ln max(temper(p)[gold], clip) over the given records, in
/// their order. 1.0 when there are none, as the study has it for 0 labels.
double fit_temperature(const ScoredReads& reads, std::span<const std::size_t> records, double clip);

/// The given records, in that order, with tempered probabilities: for Brier score and likelihood
/// after calibration.
ScoredReads tempered(const ScoredReads& reads, std::span<const std::size_t> records,
                     double temperature);

/// What was registered for calibration with few labels. The defaults are the suite's.
struct LabelRule {
  std::uint64_t seed = 20260923;
  std::size_t splits = 20;
  std::size_t labels = 50;
  Binning binning = kSuiteBinning;
  double clip = kSuiteClip;
};

/// One split: a fit on the first labels of its first half, a judgement on its second half.
struct LabelSplit {
  double temperature = 1;
  double ece = 0;        ///< of the held-out half, tempered
  bool at_edge = false;  ///< the fit ended at the first or last grid value, so T is only a bound
};

struct AfterLabels {
  std::vector<LabelSplit> splits;
  double mean_ece = 0;
  std::size_t n_at_edge = 0;
};

/// The two parts that split k makes of n records, after shuffling 0 … n-1 with Random(seed + k).
struct LabelledSplit {
  std::vector<std::size_t> fit;       ///< the first `labels` of the first half, which has n // 2
  std::vector<std::size_t> held_out;  ///< the other half
};
LabelledSplit split_records(std::size_t n, const LabelRule& rule, std::size_t k);

/// ECE after a few labels, split by split and on average. Nothing for fewer than two records, which
/// cannot be split, or for no splits.
std::optional<AfterLabels> ece_after_labels(const ScoredReads& reads, const LabelRule& rule = {});

}  // namespace preval
