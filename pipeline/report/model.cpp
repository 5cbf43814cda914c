#include "report/model.h"

#include <algorithm>
#include <map>

#include "base/json.h"
#include "plan/plan.h"

namespace preval {

namespace {

class ModelReader {
 public:
  explicit ModelReader(Db& db) : db_(db) {}

  ReportModel read() {
    read_plan();
    read_arms();
    read_deviations();
    read_groups();
    read_accuracy();
    read_states();
    mark_partly_asked();
    read_calibration();
    read_bounds();
    read_medians();
    read_agreement();
    read_published();
    read_failures();
    read_stability();
    read_native();
    read_unconfirmed();
    read_impossible();
    read_runs();
    model_.exploratory = query_integer(db_, "SELECT coalesce(min(exploratory), 0) FROM run") == 1;
    model_.scored = query_integer(db_, "SELECT count(*) FROM scored") == 1;
    model_.unscored = query_integer(
        db_, "SELECT count(*) - coalesce((SELECT predictions FROM scored), 0) FROM prediction");
    return std::move(model_);
  }

 private:
  struct Place {
    std::size_t group = 0, subset = 0;
  };

  void read_plan() {
    Stmt query(db_,
               "SELECT name, version, sha256, effective_sha256, locked_at, coalesce(ledger_head, "
               "''), json, "
               "simulated FROM plan");
    if (!query.step()) return;
    const Plan plan = parse_plan(parse_json(query.text(6), "stored plan"), "stored plan");
    ReportPlan& report = model_.plan.emplace();
    report.name = query.text(0);
    report.version = query.text(1);
    report.sha256 = query.text(2);
    report.effective_sha256 = query.text(3);
    report.locked_at = query.text_or_null(4);
    report.ledger_head = query.text(5);
    report.description = plan.description;
    report.authors = plan.authors;
    report.prompt_sha256 = plan.prompt.sha256;
    model_.simulated = query.integer(7) == 1;
    model_.hypotheses = plan.hypotheses;
    for (ReportHypothesis& each : model_.hypotheses) {
      if (each.kind == "equivalence" && !each.margin) each.margin = plan.margins.at(each.metric);
    }
    for (const DatasetGroup& group : plan.datasets) titles_[group.id] = group.title;
    for (const Checkpoint& each : plan.checkpoints) checkpoints_[each.id] = each;
  }

  void read_arms() {
    Stmt query(
        db_,
        "SELECT a.id, a.name, a.checkpoint, a.backend, a.kind, a.read, a.source, a.status, "
        "coalesce(a.reason, ''), a.confirmatory, coalesce(c.identity, ''), coalesce(c.sha256, '') "
        "FROM arm a LEFT JOIN configuration c ON c.arm_id = a.id AND c.current = 1 "
        "WHERE a.in_plan = 1 ORDER BY a.position, a.id");
    while (query.step()) {
      ReportArm arm;
      arm.id = query.integer(0);
      arm.name = query.text(1);
      arm.checkpoint = arm.checkpoint_name = query.text(2);
      arm.backend = query.text(3);
      arm.kind = query.text(4);
      arm.read = query.text(5);
      arm.source = query.text(6);
      arm.status = query.text(7);
      arm.reason = query.text(8);
      arm.confirmatory = query.integer(9) == 1;
      arm.started = arm.status == "started";
      arm.identity = query.text(10);
      arm.configuration_sha256 = query.text(11);
      if (const auto known = checkpoints_.find(arm.checkpoint); known != checkpoints_.end()) {
        arm.checkpoint_name = known->second.name;
        arm.revision = known->second.revision;
        arm.weights_dtype = known->second.weights_dtype;
      }
      arm_index_[arm.id] = model_.arms.size();
      model_.arms.push_back(std::move(arm));
    }
  }

  void read_deviations() {
    Stmt query(db_, "SELECT number, field, registered, done, why, at FROM v_deviation");
    while (query.step()) {
      model_.deviations.push_back({static_cast<int>(query.integer(0)), query.text(1), query.text(2),
                                   query.text(3), query.text(4), query.text(5)});
    }
    Stmt drift(db_, "SELECT kind, name, detail, predictions FROM v_drift");
    while (drift.step()) {
      model_.drift.push_back({drift.text(0), drift.text(1), drift.text(2), drift.integer(3)});
    }
  }

  void read_groups() {
    Stmt query(
        db_,
        "SELECT dataset, scoring, name, type, status, coalesce(problem, ''), registered_sha256, "
        "registered_records, registered_families FROM subset WHERE in_plan = 1 ORDER BY position, "
        "id");
    while (query.step()) {
      const std::string dataset = query.text(0);
      if (model_.groups.empty() || model_.groups.back().id != dataset) {
        ReportGroup& group = model_.groups.emplace_back();
        group.id = dataset;
        group.scoring = query.text(1);
        const auto title = titles_.find(dataset);
        group.title = title == titles_.end() ? dataset : title->second;
        group.arms.resize(model_.arms.size());
      }
      ReportGroup& group = model_.groups.back();
      places_[{dataset, query.text(2)}] = {model_.groups.size() - 1, group.subsets.size()};
      group.subsets.push_back({query.text(2), query.text(3), query.text(4), query.text(5),
                               query.text(6), query.integer(7), query.integer(8)});
      for (ReportGroupArm& arm : group.arms) arm.cells.emplace_back();
    }
  }

  ReportGroup* group_of(const std::string& dataset) {
    const auto found = std::find_if(model_.groups.begin(), model_.groups.end(),
                                    [&](const ReportGroup& group) { return group.id == dataset; });
    return found == model_.groups.end() ? nullptr : &*found;
  }

  ReportGroupArm* group_arm(const std::string& dataset, std::int64_t arm) {
    ReportGroup* group = group_of(dataset);
    const auto index = arm_index_.find(arm);
    return group == nullptr || index == arm_index_.end() ? nullptr : &group->arms[index->second];
  }

  ReportCell* cell(const std::string& dataset, std::int64_t arm, const std::string& subset) {
    const auto place = places_.find({dataset, subset});
    const auto index = arm_index_.find(arm);
    if (place == places_.end() || index == arm_index_.end()) return nullptr;
    return &model_.groups[place->second.group].arms[index->second].cells[place->second.subset];
  }

  void read_accuracy() {
    Stmt query(
        db_,
        "SELECT arm_id, dataset, scope, scope_kind, n_subsets, of_subsets, n_registered, "
        "n_answered, "
        "n_correct, accuracy, low, high, answered_only, baseline, coalesce(baseline_key, ''), "
        "n_tied, "
        "n_one_label, all_returned, label_mass FROM score_accuracy ORDER BY arm_id, dataset, "
        "CASE scope WHEN 'all' THEN 0 WHEN 'noul' THEN 1 WHEN 'choice' THEN 2 ELSE 3 END");
    while (query.step()) {
      ReportAccuracy row;
      row.scope = query.text(2);
      row.scope_kind = query.text(3);
      row.n_subsets = query.integer(4);
      row.of_subsets = query.integer(5);
      row.n_registered = query.integer(6);
      row.n_answered = query.integer(7);
      row.n_correct = query.integer(8);
      row.accuracy = query.real_or_null(9);
      row.low = query.real_or_null(10);
      row.high = query.real_or_null(11);
      row.answered_only = query.real_or_null(12);
      row.baseline = query.real_or_null(13);
      row.baseline_key = query.text(14);
      row.n_tied = query.integer(15);
      row.n_one_label = query.integer(16);
      row.all_returned = query.real_or_null(17);
      row.label_mass = query.real_or_null(18);
      if (row.scope_kind == "subset") {
        if (ReportCell* place = cell(query.text(1), query.integer(0), row.scope))
          place->accuracy = row;
      } else if (ReportGroupArm* arm = group_arm(query.text(1), query.integer(0))) {
        if (row.scope_kind == "macro") {
          arm->macro = row;
        } else {
          arm->pooled.push_back(row);
        }
      }
    }
  }

  void read_states() {
    Stmt query(
        db_,
        "SELECT a.id, c.dataset, c.subset, c.state, c.n_failed FROM v_completeness c JOIN arm a ON "
        "a.name = c.arm WHERE c.variant = 'none' AND c.repeat = 0");
    while (query.step()) {
      if (ReportCell* place = cell(query.text(1), query.integer(0), query.text(2))) {
        place->state = query.text(3);
        place->n_failed = query.integer(4);
      }
    }
    Stmt unreadable(db_,
                    "SELECT a.id, u.dataset, u.subset, u.n, u.reason FROM v_unreadable u JOIN arm "
                    "a ON a.name = u.arm WHERE a.status = 'started'");
    while (unreadable.step()) {
      if (ReportCell* place = cell(unreadable.text(1), unreadable.integer(0), unreadable.text(2))) {
        place->n_unreadable = unreadable.integer(3);
        place->unreadable = unreadable.text(4);
      }
    }
  }

  void mark_partly_asked() {
    for (ReportGroup& group : model_.groups) {
      for (ReportGroupArm& arm : group.arms) {
        bool any = false;
        for (ReportCell& cell : arm.cells) {
          if (!cell.accuracy || cell.n_not_asked() == 0) continue;
          cell.accuracy->partly_asked = any = true;
        }
        for (ReportAccuracy& row : arm.pooled) row.partly_asked = any;
        if (arm.macro) arm.macro->partly_asked = any;
      }
    }
  }

  void read_calibration() {
    Stmt query(
        db_,
        "SELECT arm_id, dataset, scope, n, bins, edges, ece, brier, nll, nll_clip, ece_after_50, "
        "coalesce(labels, 0), splits, temperature_low, temperature_high, at_edge FROM "
        "score_calibration");
    while (query.step()) {
      ReportCell* place = cell(query.text(1), query.integer(0), query.text(2));
      if (place == nullptr) continue;
      ReportCalibration& row = place->calibration.emplace();
      row.n = query.integer(3);
      row.n_bins = static_cast<int>(query.integer(4));
      row.edges = query.text(5);
      row.ece = query.real_or_null(6);
      row.brier = query.real_or_null(7);
      row.nll = query.real_or_null(8);
      row.nll_clip = query.real(9);
      row.ece_after_labels = query.real_or_null(10);
      row.labels = static_cast<int>(query.integer(11));
      if (const auto splits = query.integer_or_null(12)) row.splits = static_cast<int>(*splits);
      row.temperature_low = query.real_or_null(13);
      row.temperature_high = query.real_or_null(14);
      if (const auto edge = query.integer_or_null(15)) row.at_edge = static_cast<int>(*edge);
    }
    Stmt bins(
        db_,
        "SELECT arm_id, dataset, scope, low, high, n, confidence, accuracy FROM score_bin ORDER BY "
        "arm_id, dataset, scope, bins, bin");
    while (bins.step()) {
      ReportCell* place = cell(bins.text(1), bins.integer(0), bins.text(2));
      if (place == nullptr || !place->calibration) continue;
      place->calibration->bins.push_back({bins.real(3), bins.real(4), bins.integer(5),
                                          bins.real_or_null(6), bins.real_or_null(7)});
    }
  }

  void read_bounds() {
    Stmt query(
        db_,
        "SELECT a.id, b.dataset, b.subset, b.n, b.n_incomplete, b.n_tied_at_bound, b.nll_clip, "
        "b.confidence, b.confidence_at_bound, b.confidence_at_nothing, b.confidence_low, "
        "b.confidence_high, b.ece, b.ece_at_bound, b.ece_at_nothing, b.ece_low, b.ece_high, "
        "b.brier, b.brier_at_bound, b.brier_at_nothing, b.brier_low, b.brier_high, b.nll, "
        "b.nll_at_bound, b.nll_at_nothing, b.nll_low, b.nll_high FROM v_bounds b JOIN arm a ON "
        "a.name = b.arm");
    while (query.step()) {
      ReportCell* place = cell(query.text(1), query.integer(0), query.text(2));
      if (place == nullptr) continue;
      const auto extremes = [&](int first) {
        return ReportExtremes{query.real_or_null(first), query.real(first + 1),
                              query.real(first + 2), query.real(first + 3), query.real(first + 4)};
      };
      place->bounds =
          ReportBounds{query.integer(3), query.integer(4), query.integer(5), query.real(6),
                       extremes(7),      extremes(12),     extremes(17),     extremes(22)};
    }
  }

  void read_medians() {
    Stmt query(
        db_,
        "SELECT arm_id, dataset, n_subsets, of_subsets, ece, ece_after_50, brier, nll, label_mass "
        "FROM score_median");
    while (query.step()) {
      if (ReportGroupArm* arm = group_arm(query.text(1), query.integer(0))) {
        arm->median =
            ReportMedian{query.integer(2),      query.integer(3),      query.real_or_null(4),
                         query.real_or_null(5), query.real_or_null(6), query.real_or_null(7),
                         query.real_or_null(8)};
      }
    }
  }

  void read_agreement() {
    Stmt query(db_,
               "SELECT dataset, arm_a, arm_b, subset, scope_kind, same_checkpoint, n, same, share, "
               "low FROM "
               "v_agreement");
    while (query.step()) {
      if (ReportGroup* group = group_of(query.text(0))) {
        group->agreement.push_back({query.text(1), query.text(2), query.text(3), query.text(4),
                                    query.integer(5) == 1, query.integer(6), query.integer(7),
                                    query.real_or_null(8), query.real_or_null(9)});
      }
    }
  }

  void read_published() {
    Stmt query(
        db_,
        "SELECT dataset, arm, subset, scope_kind, coalesce(why_not, ''), comparable, n_subsets, "
        "of_subsets, published_n, n, published_accuracy, accuracy, difference, low, high, "
        "published_ece, ece FROM v_published_vs_ours");
    while (query.step()) {
      ReportGroup* group = group_of(query.text(0));
      if (group == nullptr) continue;
      ReportPublished row;
      row.arm = query.text(1);
      row.scope = query.text(2);
      row.scope_kind = query.text(3);
      row.why_not = query.text(4);
      row.comparable = query.integer(5) == 1;
      row.n_subsets = query.integer(6);
      row.of_subsets = query.integer(7);
      row.published_n = query.integer(8);
      row.n = query.integer(9);
      row.published_accuracy = query.real_or_null(10);
      row.accuracy = query.real_or_null(11);
      row.difference = query.real_or_null(12);
      row.low = query.real_or_null(13);
      row.high = query.real_or_null(14);
      row.published_ece = query.real_or_null(15);
      row.ece = query.real_or_null(16);
      group->published.push_back(std::move(row));
    }
    Stmt source(db_, "SELECT model, source FROM published LIMIT 1");
    if (source.step()) {
      model_.published_model = source.text(0);
      model_.published_source = source.text(1);
    }
  }

  void read_stability() {
    Stmt query(db_,
               "SELECT arm, dataset, subset, variant, repeat, n, same, largest_step FROM "
               "v_stability");
    while (query.step()) {
      model_.stability.push_back({query.text(0), query.text(1), query.text(2), query.text(3),
                                  query.integer(4), query.integer(5), query.integer(6),
                                  query.real_or_null(7)});
    }
  }

  void read_native() {
    Stmt query(db_,
               "SELECT n.arm, sum(n.n_answered), sum(n.n_sum_is_off), sum(n.n_choice_differs), "
               "sum(n.n_values) FROM v_native n JOIN arm a ON a.name = n.arm GROUP BY a.id ORDER "
               "BY a.position, a.id");
    while (query.step()) {
      model_.native.push_back(
          {query.text(0), query.integer(1), query.integer(2), query.integer(3), query.integer(4)});
    }
  }

  void read_failures() {
    Stmt query(db_,
               "SELECT arm, class, count(*), sum(final) FROM v_failure GROUP BY arm, class ORDER "
               "BY arm, class");
    while (query.step()) {
      model_.failures.push_back({query.text(0), query.text(1), query.integer(2), query.integer(3)});
    }
  }

  void read_unconfirmed() {
    Stmt query(db_, "SELECT arm, run, n_answered FROM v_unconfirmed");
    while (query.step()) {
      model_.unconfirmed.push_back({query.text(0), query.integer(1), query.integer(2)});
    }
  }

  /// Rounding makes a label mass a little larger than 1; nothing makes it so much larger.
  void read_impossible() {
    Stmt query(db_,
               "SELECT a.name, count(*), max(p.label_mass) FROM v_evidence e JOIN prediction p ON "
               "p.id = e.prediction_id JOIN arm a ON a.id = e.arm_id WHERE p.label_mass > 1.01 "
               "GROUP BY a.id ORDER BY a.position");
    while (query.step()) {
      model_.impossible.push_back({query.text(0), query.integer(1), query.real(2)});
    }
  }

  void read_runs() {
    Stmt query(
        db_,
        "SELECT run, started_at, coalesce(ended_at, ''), coalesce(outcome, ''), tool_version, "
        "coalesce(git_commit, ''), coalesce(host, ''), command, exploratory, record_limit, "
        "shard, shards FROM v_run");
    while (query.step()) {
      model_.runs.push_back({query.integer(0),
                             query.text(1),
                             query.text(2),
                             query.text(3),
                             query.text(4),
                             query.text(5),
                             query.text(6),
                             query.text(7),
                             query.integer(8) == 1,
                             query.integer_or_null(9),
                             {}});
      if (query.is_null(10)) continue;
      model_.runs.back().shard =
          Shard{static_cast<int>(query.integer(10)), static_cast<int>(query.integer(11))};
    }
  }

  Db& db_;
  ReportModel model_;
  std::map<std::string, std::string> titles_;
  std::map<std::string, Checkpoint> checkpoints_;
  std::map<std::int64_t, std::size_t> arm_index_;
  std::map<std::pair<std::string, std::string>, Place> places_;
};

}  // namespace

std::vector<int> ReportModel::deviations_of(std::size_t hypothesis) const {
  const std::string own = "/hypotheses/" + std::to_string(hypothesis);
  std::vector<int> numbers;
  for (const ReportDeviation& each : deviations) {
    const bool concerns =
        each.field == "/hypotheses" || each.field == own || each.field.starts_with(own + "/");
    if (concerns) numbers.push_back(each.number);
  }
  return numbers;
}

const ReportGroup* ReportModel::headline() const {
  for (const ReportGroup& group : groups) {
    if (group.scoring == "suite") return &group;
  }
  return groups.empty() ? nullptr : &groups.front();
}

ReportModel build_report(Db& db) { return ModelReader(db).read(); }

}  // namespace preval
