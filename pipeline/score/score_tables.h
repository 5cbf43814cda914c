#pragma once
// Writing scores: one function per score_* table, so that column lists stand in one place.
#include "score/cell_score.h"
#include "score/comparison.h"

namespace preval {

/// Upper medians over the subsets of a suite that have answers.
struct MedianScore {
  std::size_t n_subsets = 0, of_subsets = 0;
  std::optional<double> ece, ece_after, brier, nll, label_mass;
};

class ScoreTables {
 public:
  explicit ScoreTables(Db& db);
  void clear();
  void put(std::int64_t arm, const std::string& dataset, const AccuracyScore& score);
  void put(std::int64_t arm, const std::string& dataset, const std::string& subset,
           const CalibrationScore& score);
  void put(std::int64_t arm, const std::string& dataset, const std::string& subset,
           const BoundsScore& score);
  void put(std::int64_t arm, const std::string& dataset, const MedianScore& score);
  void put(const ScoredArm& a, const ScoredArm& b, const std::string& dataset,
           const std::string& scope_kind, const std::string& scope, const Agreement& agreement);
  void put(std::int64_t arm, const std::string& dataset, const PublishedScore& score);
  void put_scored(const std::string& at, const std::string& tool_version);

 private:
  Db& db_;
  Stmt accuracy_, calibration_, bin_, bounds_, median_, agreement_, published_;
};

}  // namespace preval
