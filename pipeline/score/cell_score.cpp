#include "score/cell_score.h"

#include "stats/summary.h"
#include "stats/sums.h"

namespace preval {

namespace {

constexpr char kWilson[] = "Wilson, z 1.959964";

std::optional<double> mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return python_sum(values) / static_cast<double>(values.size());
}

}  // namespace

AccuracyScore score_accuracy(const Cell& cell, const ScoredSubset& subset) {
  AccuracyScore score;
  score.scope = subset.name;
  score.scope_kind = "subset";
  score.n_subsets = score.of_subsets = 1;
  score.n_registered = subset.n_registered;
  score.n_answered = cell.n_answered();
  score.n_correct = cell.n_correct;
  score.accuracy = share(score.n_correct, score.n_registered);
  score.interval = wilson(score.n_correct, score.n_registered);
  score.method = kWilson;
  score.majority = subset.majority;
  if (subset.majority > 0) score.baseline = share(subset.majority, subset.n_registered);
  score.baseline_key = subset.majority_key;
  score.n_tied = cell.n_tied;
  score.n_one_label = cell.n_one_label;
  score.n_all_returned = cell.n_all_returned;
  score.returned_known = cell.returned_known;
  score.label_mass = subset.scoring == ScoringProfile::tasks ? median(cell.label_mass)
                                                             : upper_median(cell.label_mass);
  return score;
}

PooledAccuracy::PooledAccuracy(std::string scope) { sum_.scope = std::move(scope); }

void PooledAccuracy::add(const AccuracyScore& subset) {
  ++sum_.n_subsets;
  ++sum_.of_subsets;
  sum_.n_registered += subset.n_registered;
  sum_.n_answered += subset.n_answered;
  sum_.n_correct += subset.n_correct;
  sum_.majority += subset.majority;
  sum_.n_tied += subset.n_tied;
  sum_.n_one_label += subset.n_one_label;
  sum_.n_all_returned += subset.n_all_returned;
  sum_.returned_known = sum_.returned_known && subset.returned_known;
  if (subset.accuracy) accuracies_.push_back(*subset.accuracy);
  if (subset.baseline) baselines_.push_back(*subset.baseline);
}

std::optional<AccuracyScore> PooledAccuracy::pooled() const {
  if (sum_.of_subsets == 0) return std::nullopt;
  AccuracyScore score = sum_;
  score.scope_kind = "pooled";
  score.accuracy = share(score.n_correct, score.n_registered);
  score.interval = wilson(score.n_correct, score.n_registered);
  if (score.interval) score.method = kWilson;
  if (score.majority > 0) score.baseline = share(score.majority, score.n_registered);
  return score;
}

std::optional<AccuracyScore> PooledAccuracy::macro() const {
  if (sum_.of_subsets == 0) return std::nullopt;
  AccuracyScore score = sum_;
  score.scope = score.scope_kind = "macro";
  score.accuracy = mean(accuracies_);
  score.baseline = mean(baselines_);
  return score;
}

CalibrationScore score_calibration(const Cell& cell, ScoringProfile profile,
                                   const CalibrationSpec& spec) {
  const bool tasks = profile == ScoringProfile::tasks;
  CalibrationScore score;
  score.n = cell.reads.size();
  score.binning = {static_cast<std::size_t>(tasks ? spec.task_bins : spec.suite_bins),
                   tasks ? Edges::right_closed : Edges::left_closed};
  score.clip = tasks ? kTaskClip : kSuiteClip;
  score.labels = static_cast<std::size_t>(spec.labels);
  if (cell.reads.empty()) return score;

  const std::vector<Confidence> confidences = cell.reads.confidences();
  score.ece = ece(confidences, score.binning);
  score.brier = brier(cell.reads);
  score.nll = nll(cell.reads, score.clip);
  score.bins = reliability(confidences, score.binning);
  // A fit on fewer labels than registered would be another figure under the same name.
  if (score.n / 2 >= score.labels) {
    score.after =
        ece_after_labels(cell.reads, {spec.split_seed, static_cast<std::size_t>(spec.splits),
                                      score.labels, score.binning, score.clip});
  }
  return score;
}

std::optional<BoundsScore> score_bounds(const Cell& cell, const CalibrationScore& calibration) {
  if (!cell.absent || cell.reads.empty()) return std::nullopt;
  const auto scores = [&](const OtherReads& other) {
    return *trust_scores(cell.reads, other, calibration.binning, calibration.clip);
  };
  BoundsScore score;
  score.n = calibration.n;
  score.n_incomplete = cell.absent->n_incomplete();
  score.n_tied_at_bound = cell.absent->n_tied_at_bound;
  score.binning = calibration.binning;
  score.clip = calibration.clip;
  score.confidence = scores({}).confidence;
  score.at_bound = scores(cell.absent->at_bound);
  score.at_nothing = scores(cell.absent->at_nothing);
  return score;
}

}  // namespace preval
