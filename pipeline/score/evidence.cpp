#include "score/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "base/error.h"
#include "base/json.h"
#include "read/distribution.h"

namespace preval {

namespace {

constexpr double kSameNumber = 1e-9;  // a store may have been written by another machine

ScoringProfile profile_of(const std::string& text) {
  for (const ScoringProfile each :
       {ScoringProfile::suite, ScoringProfile::tasks, ScoringProfile::own}) {
    if (text == to_text(each)) return each;
  }
  throw std::logic_error("no scoring profile: " + text);
}

QuestionType type_of(const std::string& text) {
  for (const QuestionType each : {QuestionType::noul, QuestionType::choice, QuestionType::score}) {
    if (text == to_text(each)) return each;
  }
  throw std::logic_error("no question type: " + text);
}

/// The most frequent target of a subset, by its key: records may list their options in other
/// orders.
void find_majority(Db& db, ScoredSubset& subset) {
  Stmt query(db,
             "SELECT o.key, count(*) AS n FROM record r JOIN option o ON o.set_id = r.set_id AND "
             "o.position = r.target WHERE r.subset_id = ? AND r.current = 1 GROUP BY o.key "
             "ORDER BY n DESC, min(o.position), o.key LIMIT 1");
  query.bind(1, subset.id);
  if (!query.step()) return;
  subset.majority_key = query.text(0);
  subset.majority = static_cast<std::size_t>(query.integer(1));
}

class CellReader {
 public:
  CellReader(Db& db, const ScoredArm& arm, const ScoredSubset& subset, int kind)
      : db_(db), arm_(arm), subset_(subset), kind_(kind) {}

  Cell read() {
    const std::string order =
        subset_.scoring == ScoringProfile::tasks ? "r.record_id" : "r.position";
    Stmt query(
        db_,
        "SELECT p.id, r.id, r.record_id, r.set_id, r.target, p.predicted, p.tied, p.label_mass, "
        "p.labels_returned, p.value IS NULL, p.bound, p.tied_at_bound FROM record r "
        "CROSS JOIN prompt q ON q.record_id = r.id AND q.variant = 'none' AND q.current = 1 "
        "CROSS JOIN prediction p ON p.configuration_id = ?1 AND p.prompt_id = q.id AND p.repeat = "
        "0 "
        "AND p.exploratory = ?2 WHERE r.subset_id = ?3 AND r.current = 1 ORDER BY " +
            order);
    query.bind(1, *arm_.configuration).bind(2, kind_).bind(3, subset_.id);
    while (query.step()) add(query);
    if (cell_.n_answered() > subset_.n_registered) {
      throw Error(ErrorKind::drift,
                  fmt::format("{}: {} records of {} are answered by arm {}, {} are registered",
                              db_.path().string(), cell_.n_answered(), subset_.name, arm_.name,
                              subset_.n_registered),
                  "no run writes this; restore a copy of the store");
    }
    if (any_bound_ && !unbounded_) cell_.absent = std::move(absent_);
    return std::move(cell_);
  }

 private:
  void add(const Stmt& row) {
    const std::string record = row.text(2);
    const std::size_t labels = size_of_set(row.integer(3));
    const auto target = static_cast<int>(row.integer(4));
    const auto predicted = static_cast<int>(row.integer(5));
    if (target < 0 || static_cast<std::size_t>(target) >= labels)
      torn(record, "its target is no option");
    // A score that came as an expected level has no probabilities, so no calibration.
    if (row.integer(9) == 1) {
      read_probabilities(row.integer(0), record, labels);
      check_answer(record, predicted, row.integer(6) == 1, row.real_or_null(7));
      if (arm_.may_lack_labels) {
        add_extremes(record, static_cast<std::size_t>(target), row.real_or_null(10));
        if (row.integer(11) == 1) ++absent_.n_tied_at_bound;
      }
      cell_.reads.add(probabilities_, static_cast<std::size_t>(target));
    }
    cell_.records.push_back(row.integer(1));
    cell_.predicted.push_back(predicted);
    if (predicted == target) ++cell_.n_correct;
    if (row.integer(6) == 1) ++cell_.n_tied;
    if (const auto mass = row.real_or_null(7)) cell_.label_mass.push_back(*mass);
    if (const auto returned = row.integer_or_null(8)) {
      if (*returned == 1 && labels > 1) ++cell_.n_one_label;
      if (static_cast<std::size_t>(*returned) == labels) ++cell_.n_all_returned;
    } else {
      cell_.returned_known = false;
    }
  }

  /// The answer at hand at both ends of what its absent labels can be, if it lacks any.
  void add_extremes(const std::string& record, std::size_t target, std::optional<double> bound) {
    if (bound && !std::isfinite(*bound)) torn(record, "a bound that is none");
    any_bound_ = any_bound_ || bound;
    if (!any_absent_) return;
    if (!bound || logprobs_.empty()) {
      unbounded_ = true;
      return;
    }
    Distribution read;
    read.bound = bound;
    for (std::size_t i = 0; i < logprobs_.size(); ++i) {
      read.labels.push_back({logprobs_[i], 0, sources_[i]});
      if (sources_[i] != LabelSource::floor) ++read.labels_returned;
    }
    const ProbabilityBounds bounds = probability_bounds(read);
    const auto add_to = [&](OtherReads& extreme, const std::vector<double>& presented) {
      for (std::size_t i = 0; i < presented.size(); ++i)
        by_option_[static_cast<std::size_t>(options_[i])] = presented[i];
      extreme.which.push_back(cell_.reads.size());
      extreme.reads.add(by_option_, target);
    };
    by_option_.assign(probabilities_.size(), 0);
    add_to(absent_.at_bound, bounds.at_bound);
    add_to(absent_.at_nothing, bounds.at_nothing);
  }

  std::size_t size_of_set(std::int64_t set) {
    const auto known = set_sizes_.find(set);
    if (known != set_sizes_.end()) return known->second;
    count_options_.bind(1, set);
    count_options_.step();
    const auto size = static_cast<std::size_t>(count_options_.integer(0));
    count_options_.reset();
    return set_sizes_[set] = size;
  }

  /// What follows from the log-probabilities is computed again, so that an answer that somebody
  /// changed by hand does not fit together any more. Values of other origin (native, imported) have
  /// no log-probabilities.
  void check_answer(const std::string& record, int predicted, bool tied,
                    const std::optional<double>& mass) const {
    if (logprobs_.empty()) return;
    const Distribution again = read_exact(logprobs_, {}, options_);
    for (std::size_t i = 0; i < again.labels.size(); ++i) {
      const double stored = probabilities_[static_cast<std::size_t>(options_[i])];
      if (std::abs(again.labels[i].probability - stored) > kSameNumber)
        torn(record, "a probability is not that of its log-probability");
    }
    // Of equal ones the first presented label is the prediction.
    if (options_[static_cast<std::size_t>(again.predicted)] != predicted && !tied)
      torn(record, "the prediction is not its most probable label");
    if (mass && std::abs(*mass - again.label_mass) > kSameNumber * std::max(1.0, again.label_mass))
      torn(record, "the label mass is not the sum of its labels");
  }

  /// Probabilities in the record's own order of options.
  void read_probabilities(std::int64_t prediction, const std::string& record, std::size_t labels) {
    probabilities_.assign(labels, -1.0);
    logprobs_.clear();
    options_.clear();
    sources_.clear();
    any_absent_ = false;
    bool all_known = true;
    labels_.bind(1, prediction);
    while (labels_.step()) {
      const std::int64_t option = labels_.integer(0);
      const double probability = labels_.real(1);
      if (option < 0 || static_cast<std::size_t>(option) >= labels)
        torn(record, "a label of no option");
      if (!(probability >= 0) || !std::isfinite(probability))
        torn(record, "a probability that is none");
      probabilities_[static_cast<std::size_t>(option)] = probability;
      const std::optional<double> logprob = labels_.real_or_null(2);
      all_known = all_known && logprob;
      logprobs_.push_back(logprob.value_or(0));
      options_.push_back(static_cast<int>(option));
      sources_.push_back(static_cast<LabelSource>(labels_.integer(3)));
      any_absent_ = any_absent_ || sources_.back() == LabelSource::floor;
    }
    labels_.reset();
    if (!all_known) logprobs_.clear();
    for (const double each : probabilities_) {
      if (each < 0) torn(record, "a label too few");
    }
  }

  [[noreturn]] void torn(const std::string& record, std::string_view what) const {
    throw Error(ErrorKind::drift,
                fmt::format("{}: the stored answer of arm {} to {} record {} was changed: {}",
                            db_.path().string(), arm_.name, subset_.name, record, what),
                "no run writes this; restore a copy of the store");
  }

  Db& db_;
  const ScoredArm& arm_;
  const ScoredSubset& subset_;
  int kind_;
  Stmt labels_{db_,
               "SELECT option, probability, logprob, source FROM label WHERE prediction_id = "
               "? ORDER BY position"};
  Stmt count_options_{db_, "SELECT count(*) FROM option WHERE set_id = ?"};
  std::map<std::int64_t, std::size_t> set_sizes_;
  std::vector<double> probabilities_;
  std::vector<double> logprobs_;  // in the order presented; empty when one is unknown
  std::vector<int> options_;      // of the same labels
  std::vector<LabelSource> sources_;
  bool any_absent_ = false;  // of these labels
  std::vector<double> by_option_;
  bool any_bound_ = false, unbounded_ = false;  // of the cell's answers
  AbsentLabels absent_;
  Cell cell_;
};

}  // namespace

std::vector<ScoredArm> read_arms(Db& db) {
  std::vector<ScoredArm> arms;
  Stmt query(db,
             "SELECT a.id, a.name, a.checkpoint, a.status = 'started', c.id, a.read IN ('top-k', "
             "'text-top-k') FROM arm a LEFT JOIN configuration c ON c.arm_id = a.id AND c.current "
             "= 1 WHERE a.in_plan = 1 ORDER BY "
             "a.position, "
             "a.id");
  while (query.step()) {
    arms.push_back({query.integer(0), query.text(1), query.text(2), query.integer(3) == 1,
                    query.integer_or_null(4), query.integer(5) == 1});
  }
  return arms;
}

std::vector<ScoredSubset> read_subsets(Db& db) {
  std::vector<ScoredSubset> subsets;
  Stmt query(
      db,
      "SELECT id, dataset, name, scoring, type, status, registered_sha256, registered_records "
      "FROM subset WHERE in_plan = 1 ORDER BY position, id");
  while (query.step()) {
    ScoredSubset subset;
    subset.id = query.integer(0);
    subset.dataset = query.text(1);
    subset.name = query.text(2);
    subset.scoring = profile_of(query.text(3));
    subset.type = type_of(query.text(4));
    subset.status = query.text(5);
    subset.verified = subset.status == "ok";
    subset.registered_sha256 = query.text(6);
    subset.n_registered = static_cast<std::size_t>(query.integer(7));
    find_majority(db, subset);
    subsets.push_back(std::move(subset));
  }
  return subsets;
}

std::vector<PublishedSubset> read_published(Db& db) {
  std::vector<PublishedSubset> figures;
  Stmt query(db, "SELECT subset, dataset_sha256, n, accuracy, ece FROM published ORDER BY subset");
  while (query.step()) {
    figures.push_back({query.text(0), query.text(1), static_cast<std::size_t>(query.integer(2)),
                       query.real(3), query.real_or_null(4)});
  }
  return figures;
}

CalibrationSpec read_calibration_spec(Db& db) {
  Stmt query(db, "SELECT json FROM plan");
  if (!query.step()) return {};
  return parse_plan(parse_json(query.text(0), "stored plan"), "stored plan").calibration;
}

int counted_kind(Db& db) {
  return static_cast<int>(query_integer(db, "SELECT coalesce(min(exploratory), 0) FROM run"));
}

Cell read_cell(Db& db, const ScoredArm& arm, const ScoredSubset& subset, int kind) {
  if (!arm.configuration) return {};
  return CellReader(db, arm, subset, kind).read();
}

std::set<std::pair<std::string, std::string>> read_unreadable(Db& db, const std::string& dataset) {
  Stmt query(db, "SELECT arm, subset FROM v_unreadable WHERE dataset = ? AND n >= n_registered");
  query.bind(1, dataset);
  std::set<std::pair<std::string, std::string>> cells;
  while (query.step()) cells.emplace(query.text(0), query.text(1));
  return cells;
}

std::map<std::pair<std::string, std::string>, std::size_t> read_not_asked(
    Db& db, const std::string& dataset) {
  Stmt query(db,
             "SELECT arm, subset, n_not_asked + n_unreadable FROM v_completeness WHERE dataset = ? "
             "AND variant = 'none' AND repeat = 0 AND n_not_asked + n_unreadable > 0");
  query.bind(1, dataset);
  std::map<std::pair<std::string, std::string>, std::size_t> counts;
  while (query.step()) {
    counts[{query.text(0), query.text(1)}] = static_cast<std::size_t>(query.integer(2));
  }
  return counts;
}

}  // namespace preval
