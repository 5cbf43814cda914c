#pragma once
// How far stated probabilities can be trusted: expected calibration error, Brier score, negative
// log likelihood, and the bins of a reliability diagram. Number of bins and side of the edges
// change the ECE, so they travel together as a Binning and stand beside every figure.
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "stats/scored_reads.h"

namespace preval {

/// Which bin a value exactly on an edge falls into.
enum class Edges {
  left_closed,   ///< [i/B, (i+1)/B), the last bin also holds 1
  right_closed,  ///< (i/B, (i+1)/B], the first bin also holds 0
};

/// Equally wide bins over 0 … 1. The edges are the doubles i / count: a linspace would put .3, .6
/// and .7 one bin lower.
struct Binning {
  std::size_t count;
  Edges edges;
};

/// The rules of the suite (13 subsets) and of the four tasks of 300 examples.
inline constexpr Binning kSuiteBinning{10, Edges::left_closed};
inline constexpr Binning kTaskBinning{15, Edges::right_closed};

/// Smallest probability that a likelihood sees, by rule. Each stored score names its rule.
inline constexpr double kSuiteClip = 1e-15;
inline constexpr double kTaskClip = 1e-12;

/// The bin of a confidence; nothing below 0 or above 1, where rounding can put one.
std::optional<std::size_t> bin_of(double confidence, Binning binning);

/// One bar of a reliability diagram. The means of an empty bin are 0.
struct ReliabilityBin {
  double low = 0;
  double high = 0;
  std::size_t n = 0;
  std::size_t n_correct = 0;
  double mean_confidence = 0;
  double accuracy = 0;
};

/// All bins from low to high, empty ones included. Confidences outside 0 … 1 are in none.
std::vector<ReliabilityBin> reliability(std::span<const Confidence> answers, Binning binning);

/// Expected calibration error of the top label, Σ_b (n_b / n) |accuracy_b - confidence_b|, in the
/// order of operations of the rule that has these edges: left-closed adds |Σ (confidence -
/// correct)| / n over the bins, right-closed adds (n_b / n) |accuracy_b - mean confidence_b|. Sums
/// within a bin are compensated, the one over the bins is plain. n counts confidences outside 0 … 1
/// as well. Nothing for no answers.
std::optional<double> ece(std::span<const Confidence> answers, Binning binning);

/// One read's part of the Brier score: Σ_k (p_k - [k = gold])².
double brier_of(std::span<const double> p, std::size_t gold);

/// Brier score for several classes: the mean of Σ_k (p_k - [k = gold])², 0 to 2. sklearn's binary
/// brier_score_loss is half of it for two labels. Nothing for no reads.
std::optional<double> brier(const ScoredReads& reads);

/// One read's part of the negative log likelihood: -ln max(p_gold, clip), in nats.
double nll_of(std::span<const double> p, std::size_t gold, double clip);

/// Mean of -ln max(p_gold, clip), in nats. Nothing for no reads.
std::optional<double> nll(const ScoredReads& reads, double clip);

}  // namespace preval
