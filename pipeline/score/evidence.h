#pragma once
// The stored answers as flat arrays, one cell (an arm on a subset) at a time, so that scoring a
// million answers needs the memory of one subset. What counts is defined in store/views.sql; the
// queries here start from a subset's records because that is the shortest way through the indexes.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "stats/absent_labels.h"
#include "stats/scored_reads.h"
#include "store/db.h"

namespace preval {

struct ScoredArm {
  std::int64_t id = 0;
  std::string name, checkpoint;
  bool started = false;
  std::optional<std::int64_t> configuration;  ///< the current one; none: nothing was ever asked
  bool may_lack_labels = false;               ///< its reads are lists of the k best
};

struct ScoredSubset {
  std::int64_t id = 0;
  std::string dataset, name;
  ScoringProfile scoring = ScoringProfile::suite;
  QuestionType type = QuestionType::noul;
  bool verified = false;  ///< its file is the registered one
  std::string status, registered_sha256;
  std::size_t n_registered = 0;
  std::size_t majority = 0;  ///< records of the most frequent target
  std::string majority_key;
};

/// Published figures of one subset.
struct PublishedSubset {
  std::string subset, dataset_sha256;
  std::size_t n = 0;
  double accuracy = 0;
  std::optional<double> ece;
};

/// The answers of a cell that lack labels, at both ends of what these can be.
struct AbsentLabels {
  std::size_t n_tied_at_bound = 0;  ///< of all answers of the cell
  OtherReads at_bound, at_nothing;  ///< of the same answers

  std::size_t n_incomplete() const { return at_bound.which.size(); }
};

/// The answers of one arm to one subset: base variant, repeat 0, in the order that scoring asks
/// for.
struct Cell {
  ScoredReads reads;                  ///< of the answers that have probabilities
  std::vector<std::int64_t> records;  ///< record.id of every answer, in the same order
  std::vector<int> predicted;         ///< option position
  std::size_t n_correct = 0;
  std::size_t n_tied = 0;
  std::size_t n_one_label = 0;  ///< one label of several was returned
  std::size_t n_all_returned = 0;
  bool returned_known = true;  ///< false: an answer does not say how many labels it had
  std::vector<double> label_mass;
  /// Of arms whose reads can lack labels, where the bounds are stored; an answer that lacks labels
  /// and has no bound leaves nothing to say about the cell.
  std::optional<AbsentLabels> absent;

  std::size_t n_answered() const { return records.size(); }
};

/// Arms and subsets of the plan, in its order.
std::vector<ScoredArm> read_arms(Db& db);
std::vector<ScoredSubset> read_subsets(Db& db);
std::vector<PublishedSubset> read_published(Db& db);

/// Settings of the calibration scores, from the stored plan; the study's when there is none.
CalibrationSpec read_calibration_spec(Db& db);

/// 1 when only exploratory answers exist and so are what counts, else 0.
int counted_kind(Db& db);

/// Empty for an arm without a configuration. The suite's order is that of the file, the tasks' that
/// of the record ids as strings.
Cell read_cell(Db& db, const ScoredArm& arm, const ScoredSubset& subset, int kind);

/// Arms and subsets (names) of a dataset where the arm can read none of the subset's questions:
/// nothing is measured there, as where a subset is missing.
std::set<std::pair<std::string, std::string>> read_unreadable(Db& db, const std::string& dataset);

/// Records that a started arm neither answered nor gave up, those that it cannot read included, by
/// arm and subset (names), for the verified subsets of a dataset. One pass over all evidence.
std::map<std::pair<std::string, std::string>, std::size_t> read_not_asked(
    Db& db, const std::string& dataset);

}  // namespace preval
