#pragma once
// What one arm did on one subset, in numbers, and how subsets add up to groups. Pure: cells in,
// scores out.
#include <optional>
#include <string>
#include <vector>

#include "score/evidence.h"
#include "stats/accuracy.h"
#include "stats/calibration.h"
#include "stats/temperature.h"

namespace preval {

/// A row of score_accuracy, of a subset or a group of them.
struct AccuracyScore {
  std::string scope, scope_kind;  ///< kind: subset | pooled | macro
  std::size_t n_subsets = 0, of_subsets = 0;
  std::size_t n_registered = 0, n_answered = 0, n_correct = 0;
  std::optional<double> accuracy;
  std::optional<Interval> interval;
  std::string method;        ///< empty without an interval
  std::size_t majority = 0;  ///< records that the baseline gets right
  std::optional<double> baseline;
  std::string baseline_key;  ///< of a subset
  std::size_t n_tied = 0, n_one_label = 0, n_all_returned = 0;
  bool returned_known = true;
  std::optional<double> label_mass;  ///< of a subset

  std::optional<double> answered_only() const { return share(n_correct, n_answered); }
  std::optional<double> all_returned() const {
    return returned_known ? share(n_all_returned, n_answered) : std::nullopt;
  }
};

/// Unanswered records count as wrong: the share is over the registered ones.
AccuracyScore score_accuracy(const Cell& cell, const ScoredSubset& subset);

/// Sums a group. Subsets that are missing, dropped or not readable are in of_subsets only.
class PooledAccuracy {
 public:
  explicit PooledAccuracy(std::string scope);
  void add(const AccuracyScore& subset);
  void add_unmeasured() { ++sum_.of_subsets; }
  /// Nothing when the plan has no subset of the group.
  std::optional<AccuracyScore> pooled() const;
  /// The mean of the subsets' accuracies, each weighing the same.
  std::optional<AccuracyScore> macro() const;

 private:
  AccuracyScore sum_;
  std::vector<double> accuracies_, baselines_;
};

/// A row of score_calibration with its bins. Everything is over answered records.
struct CalibrationScore {
  std::size_t n = 0;
  Binning binning = kSuiteBinning;
  double clip = kSuiteClip;
  std::optional<double> ece, brier, nll;
  std::size_t labels = 50;
  std::optional<AfterLabels> after;  ///< nothing when half of the records are fewer than the labels
  std::vector<ReliabilityBin> bins;  ///< empty without answers
};

/// By the rules of the suite (left-closed bins, clip 1e-15) or of the tasks (right-closed, 1e-12).
CalibrationScore score_calibration(const Cell& cell, ScoringProfile profile,
                                   const CalibrationSpec& spec);

/// A row of score_bounds: the cell with every absent label at its bound, and at nothing. There the
/// NLL of a right label that is absent is -ln clip, by the clip of the calibration.
struct BoundsScore {
  std::size_t n = 0, n_incomplete = 0, n_tied_at_bound = 0;
  Binning binning = kSuiteBinning;
  double clip = kSuiteClip;
  double confidence = 0;  ///< as scored, absent labels at the floor
  TrustScores at_bound, at_nothing;
};

/// With the bins and the clip of the cell's calibration. Nothing for reads that cannot lack labels,
/// without stored bounds, and without answers.
std::optional<BoundsScore> score_bounds(const Cell& cell, const CalibrationScore& calibration);

}  // namespace preval
