#include "score/score_tables.h"

#include <algorithm>

namespace preval {

namespace {

std::int64_t as_integer(std::size_t value) { return static_cast<std::int64_t>(value); }

std::optional<std::string> or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

template <class Part>
std::optional<double> low_of(const std::optional<Part>& interval) {
  return interval ? std::optional(interval->low) : std::nullopt;
}

template <class Part>
std::optional<double> high_of(const std::optional<Part>& interval) {
  return interval ? std::optional(interval->high) : std::nullopt;
}

std::string_view name_of(Edges edges) {
  return edges == Edges::left_closed ? "left-closed" : "right-closed";
}

}  // namespace

ScoreTables::ScoreTables(Db& db)
    : db_(db),
      accuracy_(
          db,
          "INSERT INTO score_accuracy (arm_id, dataset, scope, scope_kind, n_subsets, of_subsets, "
          "n_registered, n_answered, n_correct, accuracy, low, high, method, answered_only, "
          "baseline, "
          "baseline_key, n_tied, n_one_label, all_returned, label_mass) "
          "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      calibration_(
          db,
          "INSERT INTO score_calibration (arm_id, dataset, scope, n, bins, spacing, edges, ece, "
          "brier, nll, nll_clip, ece_after_50, labels, splits, temperature_low, temperature_high, "
          "at_edge) VALUES (?, ?, ?, ?, ?, 'equal width', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      bin_(db,
           "INSERT INTO score_bin (arm_id, dataset, scope, bins, bin, low, high, n, confidence, "
           "accuracy) "
           "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      bounds_(db,
              "INSERT INTO score_bounds (arm_id, dataset, scope, n, n_incomplete, n_tied_at_bound, "
              "bins, edges, nll_clip, confidence, confidence_at_bound, confidence_at_nothing, "
              "ece_at_bound, ece_at_nothing, brier_at_bound, brier_at_nothing, nll_at_bound, "
              "nll_at_nothing) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      median_(db,
              "INSERT INTO score_median (arm_id, dataset, n_subsets, of_subsets, ece, "
              "ece_after_50, brier, "
              "nll, label_mass) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      agreement_(db,
                 "INSERT INTO score_agreement (arm_a, arm_b, dataset, scope, scope_kind, "
                 "same_checkpoint, n, "
                 "same, share) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      published_(db,
                 "INSERT INTO score_published (arm_id, dataset, scope, scope_kind, comparable, "
                 "why_not, n_subsets, "
                 "of_subsets, published_n, n, published_accuracy, accuracy, difference, low, high, "
                 "published_ece, ece) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") {
}

void ScoreTables::clear() {
  db_.exec(
      "DELETE FROM score_accuracy; DELETE FROM score_calibration; DELETE FROM score_bin; "
      "DELETE FROM score_bounds; "
      "DELETE FROM score_median; DELETE FROM score_agreement; DELETE FROM score_published; "
      "DELETE FROM scored");
}

void ScoreTables::put(std::int64_t arm, const std::string& dataset, const AccuracyScore& score) {
  Stmt& row = accuracy_;
  row.bind(1, arm).bind(2, dataset).bind(3, score.scope).bind(4, score.scope_kind);
  row.bind(5, as_integer(score.n_subsets)).bind(6, as_integer(score.of_subsets));
  row.bind(7, as_integer(score.n_registered)).bind(8, as_integer(score.n_answered));
  row.bind(9, as_integer(score.n_correct)).bind(10, score.accuracy);
  row.bind(11, low_of(score.interval))
      .bind(12, high_of(score.interval))
      .bind(13, or_null(score.method));
  row.bind(14, score.answered_only())
      .bind(15, score.baseline)
      .bind(16, or_null(score.baseline_key));
  row.bind(17, as_integer(score.n_tied)).bind(18, as_integer(score.n_one_label));
  row.bind(19, score.all_returned()).bind(20, score.label_mass).run();
}

void ScoreTables::put(std::int64_t arm, const std::string& dataset, const std::string& subset,
                      const CalibrationScore& score) {
  const std::int64_t bins = as_integer(score.binning.count);
  Stmt& row = calibration_;
  row.bind(1, arm).bind(2, dataset).bind(3, subset).bind(4, as_integer(score.n)).bind(5, bins);
  row.bind(6, name_of(score.binning.edges));
  row.bind(7, score.ece).bind(8, score.brier).bind(9, score.nll).bind(10, score.clip);
  row.bind(12, as_integer(score.labels));
  if (score.after) {
    const auto [least, largest] = std::minmax_element(
        score.after->splits.begin(), score.after->splits.end(),
        [](const LabelSplit& a, const LabelSplit& b) { return a.temperature < b.temperature; });
    row.bind(11, score.after->mean_ece).bind(13, as_integer(score.after->splits.size()));
    row.bind(14, least->temperature).bind(15, largest->temperature);
    row.bind(16, as_integer(score.after->n_at_edge));
  }
  row.run();
  for (std::size_t i = 0; i < score.bins.size(); ++i) {
    const ReliabilityBin& bin = score.bins[i];
    bin_.bind(1, arm).bind(2, dataset).bind(3, subset).bind(4, bins).bind(5, as_integer(i));
    bin_.bind(6, bin.low).bind(7, bin.high).bind(8, as_integer(bin.n));
    if (bin.n > 0) bin_.bind(9, bin.mean_confidence).bind(10, bin.accuracy);
    bin_.run();
  }
}

void ScoreTables::put(std::int64_t arm, const std::string& dataset, const std::string& subset,
                      const BoundsScore& score) {
  Stmt& row = bounds_;
  row.bind(1, arm).bind(2, dataset).bind(3, subset).bind(4, as_integer(score.n));
  row.bind(5, as_integer(score.n_incomplete)).bind(6, as_integer(score.n_tied_at_bound));
  row.bind(7, as_integer(score.binning.count)).bind(8, name_of(score.binning.edges));
  row.bind(9, score.clip).bind(10, score.confidence);
  row.bind(11, score.at_bound.confidence).bind(12, score.at_nothing.confidence);
  row.bind(13, score.at_bound.ece).bind(14, score.at_nothing.ece);
  row.bind(15, score.at_bound.brier).bind(16, score.at_nothing.brier);
  row.bind(17, score.at_bound.nll).bind(18, score.at_nothing.nll).run();
}

void ScoreTables::put(std::int64_t arm, const std::string& dataset, const MedianScore& score) {
  Stmt& row = median_;
  row.bind(1, arm).bind(2, dataset).bind(3, as_integer(score.n_subsets));
  row.bind(4, as_integer(score.of_subsets)).bind(5, score.ece).bind(6, score.ece_after);
  row.bind(7, score.brier).bind(8, score.nll).bind(9, score.label_mass).run();
}

void ScoreTables::put(const ScoredArm& a, const ScoredArm& b, const std::string& dataset,
                      const std::string& scope_kind, const std::string& scope,
                      const Agreement& agreement) {
  Stmt& row = agreement_;
  row.bind(1, a.id).bind(2, b.id).bind(3, dataset).bind(4, scope).bind(5, scope_kind);
  row.bind(6, a.checkpoint == b.checkpoint).bind(7, as_integer(agreement.n));
  row.bind(8, as_integer(agreement.same)).bind(9, agreement.share()).run();
}

void ScoreTables::put(std::int64_t arm, const std::string& dataset, const PublishedScore& score) {
  Stmt& row = published_;
  row.bind(1, arm).bind(2, dataset).bind(3, score.scope).bind(4, score.scope_kind);
  row.bind(5, score.comparable)
      .bind(6, or_null(score.why_not))
      .bind(7, as_integer(score.n_subsets));
  row.bind(8, as_integer(score.of_subsets)).bind(9, as_integer(score.published_n));
  row.bind(10, as_integer(score.n)).bind(11, score.published_accuracy).bind(12, score.accuracy);
  if (score.difference) {
    row.bind(13, score.difference->value).bind(14, score.difference->interval.low);
    row.bind(15, score.difference->interval.high);
  }
  row.bind(16, score.published_ece).bind(17, score.ece).run();
}

void ScoreTables::put_scored(const std::string& at, const std::string& tool_version) {
  Stmt row(db_,
           "INSERT INTO scored (id, at, tool_version, predictions) VALUES (1, ?, ?, (SELECT "
           "count(*) FROM "
           "prediction))");
  row.bind(1, at).bind(2, tool_version).run();
}

}  // namespace preval
