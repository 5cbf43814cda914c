#pragma once
// What a report says, before anybody decides how it looks: one model, read once from the store, and
// as many renderings as people need. The model holds numbers and facts; document.h turns them into
// headings, sentences and tables for readers, json.cpp into fields for programs. Equal stores give
// equal reports: times come from the store, never from the clock.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "store/db.h"
#include "suite/shard.h"

namespace preval {

struct ReportPlan {
  std::string name, version, description;
  std::vector<std::string> authors;
  std::string sha256, effective_sha256, ledger_head, prompt_sha256;
  std::optional<std::string> locked_at;
};

/// As in the plan with its deviations; an equivalence without a margin of its own has the plan's.
using ReportHypothesis = Hypothesis;

struct ReportDeviation {
  int number = 0;
  std::string field, registered, done, why, at;
};

/// Something that is not what was registered (view v_drift).
struct ReportDrift {
  std::string kind, name, detail;
  std::int64_t predictions = 0;
};

struct ReportArm {
  std::int64_t id = 0;
  std::string name, checkpoint, checkpoint_name, revision, weights_dtype;
  std::string backend, kind, read, source, status, reason;
  bool confirmatory = false, started = false;
  std::string identity, configuration_sha256;  ///< of the current configuration; empty: none
};

struct ReportBin {
  double low = 0, high = 0;
  std::int64_t n = 0;
  std::optional<double> confidence, accuracy;
};

struct ReportCalibration {
  std::int64_t n = 0;
  int n_bins = 0;
  std::string edges;
  std::optional<double> ece, brier, nll, ece_after_labels;
  double nll_clip = 0;
  int labels = 0;
  std::optional<int> splits, at_edge;
  std::optional<double> temperature_low, temperature_high;
  std::vector<ReportBin> bins;
};

/// One figure with every absent label at its bound, and at nothing.
struct ReportExtremes {
  std::optional<double> as_scored;  ///< absent labels at the floor
  double at_bound = 0, at_nothing = 0, low = 0, high = 0;
};

/// What absent labels could change in the calibration of one cell (view v_bounds).
struct ReportBounds {
  std::int64_t n = 0, n_incomplete = 0, n_tied_at_bound = 0;
  double nll_clip = 0;
  ReportExtremes confidence, ece, brier, nll;
};

/// A row of accuracy: of a subset, a pooled group, or the mean over subsets (macro).
struct ReportAccuracy {
  std::string scope, scope_kind;
  std::int64_t n_subsets = 0, of_subsets = 0;
  std::int64_t n_registered = 0, n_answered = 0, n_correct = 0;
  std::optional<double> accuracy, low, high, answered_only, baseline;
  std::string baseline_key;
  std::int64_t n_tied = 0, n_one_label = 0;
  std::optional<double> all_returned, label_mass;
  bool partly_asked = false;  ///< some of its records were never asked: accuracy is a lower bound

  /// The interval holds the baseline, or lies below it: no evidence of skill. Nothing is said of
  /// records that were never asked.
  bool no_skill() const { return !partly_asked && low && baseline && *low <= *baseline; }
};

struct ReportSubset {
  std::string name, type, status, problem, registered_sha256;
  std::int64_t n_registered = 0, families = 0;
};

/// One arm on one subset. Without scores when the arm or the subset was not run.
struct ReportCell {
  std::string state;              ///< complete, incomplete, no answer, or why nothing was measured
  std::int64_t n_failed = 0;      ///< given up
  std::int64_t n_unreadable = 0;  ///< with more options than the arm can read: never asked
  std::string unreadable;         ///< the same in words; empty when there is none
  std::optional<ReportAccuracy> accuracy;
  std::optional<ReportCalibration> calibration;
  std::optional<ReportBounds> bounds;  ///< of reads that can lack labels

  /// Registered records that the arm can read and that were neither answered nor given up; 0 where
  /// nothing was run.
  std::int64_t n_not_asked() const {
    if (!accuracy) return 0;
    const std::int64_t left =
        accuracy->n_registered - accuracy->n_answered - n_failed - n_unreadable;
    return left > 0 ? left : 0;
  }
};

struct ReportMedian {
  std::int64_t n_subsets = 0, of_subsets = 0;
  std::optional<double> ece, ece_after_labels, brier, nll, label_mass;
};

/// One arm on a dataset group.
struct ReportGroupArm {
  std::vector<ReportCell> cells;       ///< one per subset of the group
  std::vector<ReportAccuracy> pooled;  ///< all, then by question type
  std::optional<ReportAccuracy> macro;
  std::optional<ReportMedian> median;
};

struct ReportAgreement {
  std::string arm_a, arm_b, scope, scope_kind;
  bool same_checkpoint = false;
  std::int64_t n = 0, same = 0;
  std::optional<double> share, low;
};

struct ReportPublished {
  std::string arm, scope, scope_kind, why_not;
  bool comparable = false;
  std::int64_t n_subsets = 0, of_subsets = 0, published_n = 0, n = 0;
  std::optional<double> published_accuracy, accuracy, difference, low, high, published_ece, ece;
};

/// Subsets that are scored together. Arms as in ReportModel::arms.
struct ReportGroup {
  std::string id, title, scoring;
  std::vector<ReportSubset> subsets;
  std::vector<ReportGroupArm> arms;
  std::vector<ReportAgreement> agreement;
  std::vector<ReportPublished> published;
};

struct ReportFailures {
  std::string arm, error_class;
  std::int64_t attempts = 0, given_up = 0;
};

/// Native replies of one arm, over all its subsets.
struct ReportNative {
  std::string arm;
  std::int64_t answers = 0, sum_is_off = 0, choice_differs = 0, values = 0;
};

/// How the answers of an arm to one subset hold when it is asked again (view v_stability).
struct ReportStability {
  std::string arm, dataset, subset, variant;
  std::int64_t repeat = 0, n = 0, same = 0;
  std::optional<double> largest_step;  ///< of a probability; none: no probabilities
};

/// Answers of an arm whose labels have more probability together than there is.
struct ReportImpossible {
  std::string arm;
  std::int64_t answers = 0;
  double most = 0;  ///< largest label mass
};

/// Answers of a run that ended before the server had said once more who it is.
struct ReportUnconfirmed {
  std::string arm;
  std::int64_t run = 0, answers = 0;
};

struct ReportRun {
  std::int64_t id = 0;
  std::string started_at, ended_at, outcome, tool_version, git_commit, host, command;
  bool exploratory = false;
  std::optional<std::int64_t> record_limit;
  std::optional<Shard> shard;
};

struct ReportModel {
  bool simulated = false;
  bool exploratory = false;        ///< only exploratory answers exist, and so are what is shown
  std::optional<ReportPlan> plan;  ///< none: an empty store, or imported rows only
  std::vector<ReportHypothesis> hypotheses;
  std::vector<ReportDeviation> deviations;
  std::vector<ReportDrift> drift;
  std::vector<ReportArm> arms;
  std::vector<ReportGroup> groups;
  std::vector<ReportFailures> failures;
  std::vector<ReportStability> stability;
  std::vector<ReportNative> native;
  std::vector<ReportUnconfirmed> unconfirmed;
  std::vector<ReportImpossible> impossible;
  std::vector<ReportRun> runs;
  std::string published_model, published_source;
  std::int64_t unscored = 0;  ///< stored answers that came after the last scoring
  bool scored = false;

  /// Numbers of the deviations that changed a hypothesis (by its place) after the registration:
  /// what `hypotheses` says of it is no longer what was registered.
  std::vector<int> deviations_of(std::size_t hypothesis) const;

  /// The group that stands for the whole: the first suite, else the first one; none without groups.
  const ReportGroup* headline() const;
};

/// Reads everything a report says from the store. Writes nothing.
ReportModel build_report(Db& db);

enum class ReportFormat { table, markdown, json };

struct RenderOptions {
  bool color = false;
  int width = 100;     ///< columns of the terminal; table only
  bool brief = false;  ///< results without calibration, coverage, provenance; table only
};

/// The report as text that ends with a line feed. Markdown and JSON do not depend on the options.
std::string render(const ReportModel& model, ReportFormat format, const RenderOptions& options);

}  // namespace preval
