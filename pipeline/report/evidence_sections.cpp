// The sections on how far the answers can be trusted: calibration, coverage of reads, completeness.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/document.h"
#include "report/wording.h"

namespace preval {

namespace {

std::vector<TableCell> calibration_row(const std::string& subset, const ReportCalibration& row) {
  return {{subset},
          {grouped(row.n)},
          {decimals(row.ece)},
          {decimals(row.ece_after_labels)},
          {decimals(row.brier)},
          {decimals(row.nll)}};
}

/// Subsets with answers that fulfil a condition, by name; empty when there are none.
template <class Condition>
std::string subsets_where(const ReportGroup& group, const ReportGroupArm& arm, Condition holds) {
  std::vector<std::string> names;
  std::size_t scored = 0;
  for (std::size_t s = 0; s < group.subsets.size(); ++s) {
    const auto& calibration = arm.cells[s].calibration;
    if (!calibration || calibration->n == 0) continue;
    ++scored;
    if (holds(*calibration)) names.push_back(group.subsets[s].name);
  }
  return names.size() > 2 && names.size() == scored ? "all subsets" : list_of(names);
}

const ReportCalibration* first_calibration(const ReportGroupArm& arm) {
  for (const ReportCell& cell : arm.cells) {
    if (cell.calibration && cell.calibration->n > 0) return &*cell.calibration;
  }
  return nullptr;
}

Table calibration_table(const ReportGroup& group, const ReportGroupArm& arm,
                        const ReportCalibration& any) {
  Table table;
  table.columns = {{"subset"},
                   {"answers", true},
                   {fmt::format("ECE, {} bins", any.n_bins), true},
                   {fmt::format("after {} labels", any.labels), true},
                   {"Brier", true},
                   {"NLL", true}};
  for (std::size_t s = 0; s < group.subsets.size(); ++s) {
    if (arm.cells[s].calibration) {
      table.rows.push_back(calibration_row(group.subsets[s].name, *arm.cells[s].calibration));
    }
  }
  if (arm.median) {
    table.rules.push_back(table.rows.size());
    const ReportMedian& median = *arm.median;
    table.rows.push_back({{"median of " + subsets_of(median.n_subsets, median.of_subsets)},
                          {},
                          {decimals(median.ece)},
                          {decimals(median.ece_after_labels)},
                          {decimals(median.brier)},
                          {decimals(median.nll)}});
  }
  return table;
}

std::vector<std::string> calibration_notes(const ReportGroup& group, const ReportGroupArm& arm,
                                           const ReportCalibration& any) {
  std::vector<std::string> notes;
  const auto without =
      subsets_where(group, arm, [](const ReportCalibration& row) { return !row.ece_after_labels; });
  if (!without.empty()) {
    notes.push_back(
        fmt::format("ECE after {} labels needs at least {} answered records, half of them to fit "
                    "on and half to judge on: not "
                    "computed for {}.",
                    any.labels, 2 * any.labels, without));
  }
  const auto at_edge = subsets_where(
      group, arm, [](const ReportCalibration& row) { return row.at_edge.value_or(0) > 0; });
  if (!at_edge.empty()) {
    notes.push_back(
        fmt::format("A fitted temperature lay at an end of its grid in at least one split, so the "
                    "best one may lie beyond: {}.",
                    at_edge));
  }
  return notes;
}

/// The bins of all subsets of an arm together, for a look at the shape; the ECE is one per subset.
std::vector<ReportBin> summed_bins(const ReportGroupArm& arm) {
  std::vector<ReportBin> sums;
  for (const ReportCell& cell : arm.cells) {
    if (!cell.calibration) continue;
    const std::vector<ReportBin>& bins = cell.calibration->bins;
    if (sums.empty()) {
      for (const ReportBin& bin : bins) sums.push_back({bin.low, bin.high, 0, {}, {}});
    }
    for (std::size_t i = 0; i < bins.size(); ++i) {
      const auto n = static_cast<double>(bins[i].n);
      if (bins[i].n == 0) continue;
      sums[i].n += bins[i].n;
      sums[i].confidence = sums[i].confidence.value_or(0) + n * bins[i].confidence.value_or(0);
      sums[i].accuracy = sums[i].accuracy.value_or(0) + n * bins[i].accuracy.value_or(0);
    }
  }
  for (ReportBin& bin : sums) {
    if (bin.n == 0) continue;
    bin.confidence = *bin.confidence / static_cast<double>(bin.n);
    bin.accuracy = *bin.accuracy / static_cast<double>(bin.n);
  }
  return sums;
}

Table bin_table(const std::vector<ReportBin>& bins) {
  Table table;
  table.columns = {{"confidence"},
                   {"answers", true},
                   {"mean confidence", true},
                   {"right", true},
                   {"", false, 1}};
  for (const ReportBin& bin : bins) {
    table.rows.push_back(
        {{fmt::format("{:.2f} – {:.2f}", bin.low, bin.high)},
         {grouped(bin.n)},
         {percent(bin.confidence)},
         {percent(bin.accuracy)},
         {{},
          bin.accuracy ? std::optional(Bar{*bin.accuracy, {}, bin.confidence}) : std::nullopt}});
  }
  return table;
}

/// The subset with the least median label mass of an arm, over all groups.
std::string least_label_mass(const ReportModel& model, std::size_t arm) {
  std::optional<double> least;
  std::string where;
  for (const ReportGroup& group : model.groups) {
    for (std::size_t s = 0; s < group.subsets.size(); ++s) {
      const auto& accuracy = group.arms[arm].cells[s].accuracy;
      if (!accuracy || !accuracy->label_mass || (least && *accuracy->label_mass >= *least))
        continue;
      least = accuracy->label_mass;
      where = group.subsets[s].name;
    }
  }
  return least ? fmt::format("{} ({})", decimals(least), where) : std::string(kNothing);
}

struct ArmTotals {
  std::int64_t registered = 0, answered = 0, failed = 0, not_asked = 0, unreadable = 0, absent = 0,
               tied = 0, one_label = 0;
  std::optional<double> all_returned = 0;  ///< a count until divided; nothing: unknown
};

ArmTotals totals_of(const ReportModel& model, std::size_t arm) {
  ArmTotals totals;
  for (const ReportGroup& group : model.groups) {
    for (std::size_t s = 0; s < group.subsets.size(); ++s) {
      const ReportCell& cell = group.arms[arm].cells[s];
      totals.registered += group.subsets[s].n_registered;
      if (group.subsets[s].status != "ok") totals.absent += group.subsets[s].n_registered;
      totals.unreadable += cell.n_unreadable;
      if (!cell.accuracy) continue;
      totals.answered += cell.accuracy->n_answered;
      totals.failed += cell.n_failed;
      totals.not_asked += cell.n_not_asked();
      totals.tied += cell.accuracy->n_tied;
      totals.one_label += cell.accuracy->n_one_label;
      if (cell.accuracy->n_answered == 0) continue;
      if (totals.all_returned && cell.accuracy->all_returned) {
        *totals.all_returned +=
            *cell.accuracy->all_returned * static_cast<double>(cell.accuracy->n_answered);
      } else {
        totals.all_returned.reset();
      }
    }
  }
  if (totals.answered == 0) {
    totals.all_returned.reset();
  } else if (totals.all_returned) {
    *totals.all_returned /= static_cast<double>(totals.answered);
  }
  return totals;
}

/// Whether some started arm has such records: a column for what never occurs says nothing.
bool any_arm_has(const ReportModel& model, std::int64_t ArmTotals::*count) {
  for (std::size_t i = 0; i < model.arms.size(); ++i) {
    if (model.arms[i].started && totals_of(model, i).*count > 0) return true;
  }
  return false;
}

Table native_table(const ReportModel& model) {
  Table table;
  table.columns = {{"arm"},
                   {"answers", true},
                   {"printed sum off by > 0.05", true},
                   {"choice is not the largest", true},
                   {"expected levels", true}};
  for (const ReportNative& each : model.native) {
    table.rows.push_back({{each.arm},
                          {grouped(each.answers)},
                          {grouped(each.sum_is_off)},
                          {grouped(each.choice_differs)},
                          {grouped(each.values)}});
  }
  return table;
}

Table failure_table(const ReportModel& model) {
  Table table;
  table.columns = {{"arm"}, {"failure"}, {"attempts", true}, {"given up", true}};
  for (const ReportFailures& each : model.failures) {
    table.rows.push_back(
        {{each.arm}, {each.error_class}, {grouped(each.attempts)}, {grouped(each.given_up)}});
  }
  return table;
}

std::vector<std::string> absent_things(const ReportModel& model) {
  std::vector<std::string> lines;
  for (const ReportGroup& group : model.groups) {
    const auto verified =
        std::count_if(group.subsets.begin(), group.subsets.end(),
                      [](const ReportSubset& each) { return each.status == "ok"; });
    const auto all = static_cast<std::int64_t>(group.subsets.size());
    if (verified == all) continue;
    lines.push_back(fmt::format("{}: {} verified.", group.title, subsets_of(verified, all)));
    for (const ReportSubset& subset : group.subsets) {
      if (subset.status == "missing")
        lines.push_back(fmt::format("subset {}: missing, not run", subset.name));
      if (subset.status == "mismatch") {
        lines.push_back(fmt::format("subset {}: dropped, not what was registered{}", subset.name,
                                    subset.problem.empty() ? "" : " (" + subset.problem + ")"));
      }
    }
  }
  for (const ReportArm& arm : model.arms) {
    if (!arm.started) lines.push_back(fmt::format("arm {}: {}", arm.name, arm_state(arm)));
  }
  for (const ReportGroup& group : model.groups) {
    for (std::size_t i = 0; i < model.arms.size(); ++i) {
      for (std::size_t s = 0; s < group.subsets.size(); ++s) {
        const ReportCell& cell = group.arms[i].cells[s];
        if (cell.n_unreadable == 0) continue;
        const bool wholly = cell.n_unreadable >= group.subsets[s].n_registered;
        lines.push_back(fmt::format(
            "arm {}, subset {}: {}: {}", model.arms[i].name, group.subsets[s].name,
            wholly ? "not readable, no accuracy" : "in part not readable, which counts as wrong",
            cell.unreadable));
      }
    }
  }
  return lines;
}

}  // namespace

Section calibration_section(const ReportModel& model) {
  Section section{"Calibration", true, {}};
  bool any = false;
  for (const ReportGroup& group : model.groups) {
    for (std::size_t i = 0; i < model.arms.size(); ++i) {
      const ReportCalibration* first = first_calibration(group.arms[i]);
      if (first == nullptr) continue;
      any = true;
      section.blocks.push_back(Heading{model.arms[i].name});
      section.blocks.push_back(calibration_table(group, group.arms[i], *first));
      if (auto notes = calibration_notes(group, group.arms[i], *first); !notes.empty()) {
        section.blocks.push_back(Bullets{std::move(notes)});
      }
      section.blocks.push_back(bin_table(summed_bins(group.arms[i])));
    }
  }
  section.blocks.push_back(
      Paragraph{any ? "Over answered records. ECE: expected calibration error of the chosen "
                      "answer; on few records even a "
                      "perfectly calibrated model has a large one, so small subsets say little. "
                      "Brier: 0 to 2. NLL: nats. In the "
                      "bins, the bar is the share of right answers and the line the mean "
                      "confidence: calibrated where both "
                      "meet. Bins are summed over the subsets; the ECE of each subset has its own."
                    : "No answers, so no calibration."});
  return section;
}

Section coverage_section(const ReportModel& model) {
  Section section{"What the reads returned", true, {}};
  Table table;
  table.columns = {{"arm"},
                   {"read"},
                   {"answers", true},
                   {"all labels returned", true},
                   {"one label only", true},
                   {"ties", true},
                   {"least median label mass"}};
  for (std::size_t i = 0; i < model.arms.size(); ++i) {
    if (!model.arms[i].started) continue;
    const ArmTotals totals = totals_of(model, i);
    table.rows.push_back(
        {{model.arms[i].name},
         {model.arms[i].read},
         {grouped(totals.answered)},
         {totals.answered > 0 && !totals.all_returned ? "unknown" : percent(totals.all_returned)},
         {grouped(totals.one_label)},
         {grouped(totals.tied)},
         {least_label_mass(model, i)}});
  }
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  for (Block& block : absent_label_blocks(model)) section.blocks.push_back(std::move(block));
  if (!model.native.empty()) {
    section.blocks.push_back(Heading{"Native answers"});
    section.blocks.push_back(native_table(model));
    section.blocks.push_back(Paragraph{
        "A server's own decision is taken as it prints it, rounding included; nothing is rescaled. "
        "A score that comes as an expected level has no probabilities and so no part in the "
        "calibration."});
  }
  section.blocks.push_back(Paragraph{
      "A read that lacks labels is scored with a floor in their place, which is a "
      "convention and no bound. Its choice stands, except where an absent label could tie "
      "with it. Label "
      "mass is the probability that the model gave to all labels together before they "
      "were rescaled to 1; where it "
      "is small, the rescaled answer looks surer than the model was. Of tied labels the "
      "first one counts."});
  return section;
}

Section stability_section(const ReportModel& model) {
  Section section{"The same question again", true, {}};
  Table table;
  table.columns = {{"arm"},         {"asked again"},       {"answers", true}, {"same choice", true},
                   {"share", true}, {"largest step", true}};
  for (const ReportArm& arm : model.arms) {
    std::map<std::pair<std::string, std::int64_t>, ReportStability> sums;  // over the subsets
    for (const ReportStability& each : model.stability) {
      if (each.arm != arm.name) continue;
      ReportStability& sum = sums[{each.variant, each.repeat}];
      sum.n += each.n;
      sum.same += each.same;
      if (each.largest_step)
        sum.largest_step = std::max(*each.largest_step, sum.largest_step.value_or(0));
    }
    for (const auto& [what, sum] : sums) {
      const auto& [variant, repeat] = what;
      const std::string order = variant == "none" ? "" : ", options reversed";
      table.rows.push_back(
          {{arm.name},
           {repeat > 0 ? fmt::format("repeat {}{}", repeat, order) : "options reversed"},
           {grouped(sum.n)},
           {grouped(sum.same)},
           {percent(static_cast<double>(sum.same) / static_cast<double>(sum.n))},
           {sum.largest_step ? fmt::format("{:.2g}", *sum.largest_step) : std::string(kNothing)}});
    }
  }
  if (table.rows.empty()) return section;
  section.blocks.push_back(std::move(table));
  section.blocks.push_back(
      Paragraph{"A repeat is compared with the first answer to the same question, reversed options "
                "with the order of the record. Largest step: how far the probability of one option "
                "moved at most. Arms that differ by less than repeats do cannot be told apart."});
  return section;
}

Section completeness_section(const ReportModel& model) {
  Section section{"Completeness", false, {}};
  Table table;
  table.columns = {
      {"arm"}, {"registered", true}, {"answered", true}, {"given up", true}, {"not asked", true}};
  const bool any_unreadable = any_arm_has(model, &ArmTotals::unreadable);
  const bool any_absent = any_arm_has(model, &ArmTotals::absent);
  if (any_unreadable) table.columns.push_back({"not readable", true});
  if (any_absent) table.columns.push_back({"of subsets not here", true});
  for (std::size_t i = 0; i < model.arms.size(); ++i) {
    if (!model.arms[i].started) continue;
    const ArmTotals totals = totals_of(model, i);
    table.rows.push_back({{model.arms[i].name},
                          {grouped(totals.registered)},
                          {grouped(totals.answered)},
                          {grouped(totals.failed)},
                          {grouped(totals.not_asked)}});
    if (any_unreadable) table.rows.back().push_back({grouped(totals.unreadable)});
    if (any_absent) table.rows.back().push_back({grouped(totals.absent)});
  }
  // Without scores the counts are not known here, which is not the same as 0.
  if (!table.rows.empty() && model.scored) section.blocks.push_back(std::move(table));
  std::vector<std::string> lines = absent_things(model);
  if (!model.scored && !model.arms.empty())
    lines.emplace_back("answers are counted by preval score, which has not run yet");
  for (const ReportRun& run : model.runs) {
    if (run.record_limit) {
      lines.push_back(fmt::format("run {} asked only the first {} of each subset (--limit)", run.id,
                                  counted(*run.record_limit, "record")));
    }
  }
  for (std::size_t i = 0; i < model.arms.size(); ++i) {
    const std::int64_t failed = totals_of(model, i).failed;
    if (model.simulated || failed == 0) continue;
    lines.push_back(fmt::format("arm {}: {} {} given up; the same command asks again",
                                model.arms[i].name, counted(failed, "read"),
                                failed == 1 ? "was" : "were"));
  }
  for (const ReportImpossible& each : model.impossible) {
    lines.push_back(
        fmt::format("{} of arm {} have labels with more probability together than there "
                    "is (up to {:.3f}): its server's log-probabilities cannot be right",
                    counted(each.answers, "answer"), each.arm, each.most));
  }
  for (const ReportUnconfirmed& each : model.unconfirmed) {
    lines.push_back(
        fmt::format("{} of arm {} come from run {}, which ended before the server had "
                    "said once more who it is",
                    counted(each.answers, "answer"), each.arm, each.run));
  }
  if (!lines.empty()) section.blocks.push_back(Bullets{std::move(lines)});
  if (!model.failures.empty()) {
    section.blocks.push_back(Heading{"Attempts that gave no answer"});
    section.blocks.push_back(failure_table(model));
  }
  if (section.blocks.empty())
    section.blocks.push_back(Paragraph{"Nothing was registered and nothing was run."});
  return section;
}

}  // namespace preval
