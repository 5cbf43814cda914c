// The report for programs. Field names are a contract (schema_version): fields may be added, none
// may be renamed without a new version. Values that are not defined are null.
#include "base/json.h"

#include <algorithm>

#include "report/rendering.h"

namespace preval {

namespace {

constexpr char kSchemaVersion[] = "1.0";

Json number(std::optional<double> value) { return value ? Json(*value) : Json(); }

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json plan_json(const ReportModel& model) {
  if (!model.plan) return Json();
  const ReportPlan& plan = *model.plan;
  return {{"name", plan.name},
          {"version", plan.version},
          {"sha256", plan.sha256},
          {"locked_at", plan.locked_at ? Json(*plan.locked_at) : Json()},
          {"effective_sha256", plan.effective_sha256},
          {"ledger_head", text_or_null(plan.ledger_head)},
          {"description", plan.description},
          {"authors", plan.authors}};
}

Json interval_json(const ReportAccuracy& row) {
  return {{"value", number(row.accuracy)}, {"low", number(row.low)}, {"high", number(row.high)}};
}

Json bins_json(const std::vector<ReportBin>& bins) {
  Json list = Json::array();
  for (const ReportBin& bin : bins) {
    list.push_back({{"low", bin.low},
                    {"high", bin.high},
                    {"n", bin.n},
                    {"confidence", number(bin.confidence)},
                    {"accuracy", number(bin.accuracy)}});
  }
  return list;
}

void add_calibration(Json& json, const std::optional<ReportCalibration>& calibration) {
  static const ReportCalibration kNone;
  const ReportCalibration& row = calibration ? *calibration : kNone;
  json["ece10"] = row.n_bins == 10 ? number(row.ece) : Json();
  json["brier"] = number(row.brier);
  json["nll"] = number(row.nll);
  json["ece"] = number(row.ece);
  json["ece_bins"] = row.n_bins > 0 ? Json(row.n_bins) : Json();
  json["ece_edges"] = text_or_null(row.edges);
  json["ece_after_labels"] = number(row.ece_after_labels);
  json["calibration_labels"] = calibration ? Json(row.labels) : Json();
  json["temperature_low"] = number(row.temperature_low);
  json["temperature_high"] = number(row.temperature_high);
  json["splits_at_edge"] = row.at_edge ? Json(*row.at_edge) : Json();
  json["bins"] = bins_json(row.bins);
}

Json extremes_json(const ReportExtremes& figure) {
  return {{"as_scored", number(figure.as_scored)},
          {"at_bound", figure.at_bound},
          {"at_nothing", figure.at_nothing},
          {"low", figure.low},
          {"high", figure.high}};
}

Json bounds_json(const std::optional<ReportBounds>& bounds) {
  if (!bounds) return Json();
  return {{"n", bounds->n},
          {"n_incomplete", bounds->n_incomplete},
          {"n_tied_at_bound", bounds->n_tied_at_bound},
          {"nll_clip", bounds->nll_clip},
          {"confidence", extremes_json(bounds->confidence)},
          {"ece", extremes_json(bounds->ece)},
          {"brier", extremes_json(bounds->brier)},
          {"nll", extremes_json(bounds->nll)}};
}

Json subset_json(const ReportGroup& group, const ReportSubset& subset, const ReportCell& cell) {
  static const ReportAccuracy kNone;
  const ReportAccuracy& row = cell.accuracy ? *cell.accuracy : kNone;
  Json json = {
      {"subset", subset.name},
      {"dataset", group.id},
      {"type", subset.type},
      {"state", cell.state},
      {"n", subset.n_registered},
      {"n_answered", row.n_answered},
      {"n_correct", row.n_correct},
      {"accuracy", number(row.accuracy)},
      {"low", number(row.low)},
      {"high", number(row.high)},
      {"accuracy_of_answered", number(row.answered_only)},
      {"baseline", number(row.baseline)},
      {"baseline_key", text_or_null(row.baseline_key)},
      {"no_evidence_of_skill", cell.accuracy && !row.partly_asked ? Json(row.no_skill()) : Json()}};
  add_calibration(json, cell.calibration);
  json["label_mass"] = number(row.label_mass);
  json["labels_returned_all"] = number(row.all_returned);
  json["n_one_label"] = row.n_one_label;
  json["n_tied"] = row.n_tied;
  json["n_failed"] = cell.n_failed;
  json["absent_labels"] = bounds_json(cell.bounds);
  json["n_unreadable"] = cell.n_unreadable;
  return json;
}

Json pooled_json(const ReportGroup& group, const ReportAccuracy& row) {
  return {{"dataset", group.id},
          {"scope", row.scope},
          {"kind", row.scope_kind},
          {"n_subsets", row.n_subsets},
          {"of_subsets", row.of_subsets},
          {"n_registered", row.n_registered},
          {"n_answered", row.n_answered},
          {"n_correct", row.n_correct},
          {"accuracy", interval_json(row)},
          {"baseline", number(row.baseline)}};
}

Json median_json(const std::optional<ReportMedian>& median) {
  if (!median) return Json();
  return {{"n_subsets", median->n_subsets},
          {"of_subsets", median->of_subsets},
          {"ece", number(median->ece)},
          {"ece_after_labels", number(median->ece_after_labels)},
          {"brier", number(median->brier)},
          {"nll", number(median->nll)},
          {"label_mass", number(median->label_mass)}};
}

/// The pooled row that stands for the arm; zeros and nulls when there is none.
ReportAccuracy headline_of(const ReportModel& model, std::size_t arm) {
  ReportAccuracy row;
  const ReportGroup* group = model.headline();
  if (group == nullptr) return row;
  if (!group->arms[arm].pooled.empty()) return group->arms[arm].pooled.front();
  for (const ReportSubset& subset : group->subsets) {
    ++row.of_subsets;
    if (subset.status != "ok") continue;
    ++row.n_subsets;
    row.n_registered += subset.n_registered;
  }
  return row;
}

Json arm_json(const ReportModel& model, std::size_t index) {
  const ReportArm& arm = model.arms[index];
  const ReportAccuracy headline = headline_of(model, index);
  Json json = {{"arm", arm.name},
               {"checkpoint", arm.checkpoint},
               {"backend", arm.backend},
               {"read", arm.read},
               {"kind", arm.kind},
               {"confirmatory", arm.confirmatory},
               {"source", arm.source},
               {"status", arm.status},
               {"reason", text_or_null(arm.reason)},
               {"n_registered", headline.n_registered},
               {"n_answered", headline.n_answered},
               {"n_subsets", headline.n_subsets},
               {"of_subsets", headline.of_subsets},
               {"accuracy", interval_json(headline)},
               {"baseline", number(headline.baseline)},
               {"subsets", Json::array()},
               {"pooled", Json::array()},
               {"medians", Json::object()}};
  for (const ReportGroup& group : model.groups) {
    const ReportGroupArm& results = group.arms[index];
    for (std::size_t s = 0; s < group.subsets.size(); ++s) {
      json["subsets"].push_back(subset_json(group, group.subsets[s], results.cells[s]));
    }
    for (const ReportAccuracy& row : results.pooled)
      json["pooled"].push_back(pooled_json(group, row));
    if (results.macro) json["pooled"].push_back(pooled_json(group, *results.macro));
    if (results.median) json["medians"][group.id] = median_json(results.median);
  }
  return json;
}

Json agreement_json(const ReportModel& model) {
  Json list = Json::array();
  for (const ReportGroup& group : model.groups) {
    for (const ReportAgreement& row : group.agreement) {
      list.push_back({{"arm_a", row.arm_a},
                      {"arm_b", row.arm_b},
                      {"subset", row.scope},
                      {"kind", row.scope_kind},
                      {"dataset", group.id},
                      {"same_checkpoint", row.same_checkpoint},
                      {"n", row.n},
                      {"same", row.same},
                      {"share", number(row.share)},
                      {"low", number(row.low)}});
    }
  }
  return list;
}

Json published_json(const ReportModel& model) {
  Json list = Json::array();
  for (const ReportGroup& group : model.groups) {
    for (const ReportPublished& row : group.published) {
      list.push_back({{"arm", row.arm},
                      {"subset", row.scope},
                      {"kind", row.scope_kind},
                      {"dataset", group.id},
                      {"model", model.published_model},
                      {"comparable", row.comparable},
                      {"why_not", text_or_null(row.why_not)},
                      {"n_subsets", row.n_subsets},
                      {"of_subsets", row.of_subsets},
                      {"published_n", row.published_n},
                      {"n", row.n},
                      {"published_accuracy", number(row.published_accuracy)},
                      {"accuracy", number(row.accuracy)},
                      {"difference", number(row.difference)},
                      {"low", number(row.low)},
                      {"high", number(row.high)},
                      {"published_ece", number(row.published_ece)},
                      {"ece", number(row.ece)}});
    }
  }
  return list;
}

Json stability_json(const ReportModel& model) {
  Json list = Json::array();
  for (const ReportStability& each : model.stability) {
    list.push_back({{"arm", each.arm},
                    {"subset", each.subset},
                    {"dataset", each.dataset},
                    {"variant", each.variant},
                    {"repeat", each.repeat},
                    {"n", each.n},
                    {"same", each.same},
                    {"largest_step", number(each.largest_step)}});
  }
  return list;
}

Json deviations_json(const ReportModel& model) {
  Json list = Json::array();
  for (const ReportDeviation& each : model.deviations) {
    list.push_back({{"number", each.number},
                    {"field", each.field},
                    {"from", Json::parse(each.registered)},
                    {"to", Json::parse(each.done)},
                    {"why", each.why},
                    {"at", each.at}});
  }
  return list;
}

Json provenance_json(const ReportModel& model) {
  Json checkpoints = Json::array(), runs = Json::array(), failures = Json::array(),
       drift = Json::array();
  for (const ReportArm& arm : model.arms) {
    checkpoints.push_back(
        {{"arm", arm.name},
         {"checkpoint", arm.checkpoint_name},
         {"revision", arm.revision},
         {"weights_dtype", arm.weights_dtype},
         {"configuration_sha256", text_or_null(arm.configuration_sha256)},
         {"answered_by", arm.identity.empty() ? Json() : Json::parse(arm.identity)}});
  }
  for (const ReportRun& run : model.runs) {
    runs.push_back({{"run", run.id},
                    {"started_at", run.started_at},
                    {"ended_at", text_or_null(run.ended_at)},
                    {"outcome", text_or_null(run.outcome)},
                    {"exploratory", run.exploratory},
                    {"limit", run.record_limit ? Json(*run.record_limit) : Json()},
                    {"shard", run.shard ? Json(run.shard->index) : Json()},
                    {"shards", run.shard ? Json(run.shard->of) : Json()},
                    {"command", run.command},
                    {"preval", run.tool_version},
                    {"git_commit", text_or_null(run.git_commit)},
                    {"machine", run.host}});
  }
  Json unconfirmed = Json::array();
  for (const ReportUnconfirmed& each : model.unconfirmed) {
    unconfirmed.push_back({{"arm", each.arm}, {"run", each.run}, {"answers", each.answers}});
  }
  Json impossible = Json::array();
  for (const ReportImpossible& each : model.impossible) {
    impossible.push_back({{"arm", each.arm}, {"answers", each.answers}, {"most", each.most}});
  }
  for (const ReportFailures& each : model.failures) {
    failures.push_back({{"arm", each.arm},
                        {"class", each.error_class},
                        {"attempts", each.attempts},
                        {"given_up", each.given_up}});
  }
  for (const ReportDrift& each : model.drift) {
    drift.push_back({{"kind", each.kind},
                     {"name", each.name},
                     {"detail", each.detail},
                     {"answers", each.predictions}});
  }
  Json native = Json::array();
  for (const ReportNative& each : model.native) {
    native.push_back({{"arm", each.arm},
                      {"answers", each.answers},
                      {"sum_is_off", each.sum_is_off},
                      {"choice_differs", each.choice_differs},
                      {"values", each.values}});
  }
  return {{"prompt_sha256", model.plan ? Json(model.plan->prompt_sha256) : Json()},
          {"published_source", text_or_null(model.published_source)},
          {"arms", checkpoints},
          {"runs", runs},
          {"failures", failures},
          {"unconfirmed", unconfirmed},
          {"impossible_mass", impossible},
          {"native", native},
          {"drift", drift}};
}

Json hypotheses_json(const ReportModel& model) {
  Json list = Json::array();
  for (std::size_t i = 0; i < model.hypotheses.size(); ++i) {
    const ReportHypothesis& each = model.hypotheses[i];
    list.push_back({{"id", each.id},
                    {"statement", each.statement},
                    {"metric", each.metric},
                    {"kind", each.kind},
                    {"arms", each.arms},
                    {"dataset", each.dataset},
                    {"subsets", each.subsets},
                    {"direction", text_or_null(each.direction)},
                    {"margin", number(each.margin)},
                    {"at_least", number(each.at_least)},
                    {"at_most", number(each.at_most)},
                    {"confirmatory", each.confirmatory},
                    {"deviations", model.deviations_of(i)}});
  }
  return list;
}

}  // namespace

std::string render_json(const ReportModel& model) {
  Json report = {{"schema_version", kSchemaVersion},     {"simulated", model.simulated},
                 {"exploratory", model.exploratory},     {"plan", plan_json(model)},
                 {"hypotheses", hypotheses_json(model)}, {"arms", Json::array()}};
  for (std::size_t i = 0; i < model.arms.size(); ++i) report["arms"].push_back(arm_json(model, i));
  report["agreement"] = agreement_json(model);
  report["stability"] = stability_json(model);
  report["published"] = published_json(model);
  report["deviations"] = deviations_json(model);
  report["provenance"] = provenance_json(model);
  return report.dump(2) + "\n";
}

}  // namespace preval
