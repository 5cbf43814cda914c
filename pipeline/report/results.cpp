// The sections that answer the study's questions: accuracy, published figures, agreement.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/document.h"
#include "report/wording.h"

namespace preval {

namespace {

constexpr std::string_view kNoSkillMark = "†";

std::string marked(const ReportAccuracy& row) {
  return fmt::format("{}{}", percent_interval(row.low, row.high), row.no_skill() ? " †" : "  ");
}

const ReportAccuracy* pooled_all(const ReportGroupArm& arm) {
  return arm.pooled.empty() ? nullptr : &arm.pooled.front();
}

Table overview(const ReportModel& model, const ReportGroup& group) {
  Table table;
  table.columns = {{"arm"},
                   {"answered", true},
                   {"accuracy", true},
                   {"95 % interval", true},
                   {"baseline", true},
                   {"mean of subsets", true, 2},
                   {"", false, 1}};
  // A picture may go where there is no room; the reason why an arm was not run may not.
  if (std::any_of(group.arms.begin(), group.arms.end(),
                  [](const ReportGroupArm& arm) { return pooled_all(arm) == nullptr; })) {
    table.columns.back().spare = 0;
  }
  for (std::size_t i = 0; i < model.arms.size(); ++i) {
    const ReportArm& arm = model.arms[i];
    const ReportAccuracy* all = pooled_all(group.arms[i]);
    if (all == nullptr) {
      table.rows.push_back({{arm.name}, {}, {"not run"}, {}, {}, {}, {arm.reason}});
      continue;
    }
    const auto& macro = group.arms[i].macro;
    table.rows.push_back({{arm.name},
                          {of_total(all->n_answered, all->n_registered)},
                          {percent(all->accuracy)},
                          {marked(*all)},
                          {percent(all->baseline)},
                          {percent(macro ? macro->accuracy : std::nullopt)},
                          {{}, Bar{all->accuracy.value_or(0), all->high, all->baseline}}});
  }
  return table;
}

std::vector<TableCell> accuracy_row(const std::string& title, const ReportAccuracy& row,
                                    bool partial) {
  std::vector<TableCell> cells = {{title},
                                  {of_total(row.n_answered, row.n_registered)},
                                  {percent(row.accuracy)},
                                  {marked(row)},
                                  {percent(row.baseline)}};
  if (partial)
    cells.push_back(
        {row.scope_kind == "macro" ? std::string(kNothing) : percent(row.answered_only)});
  cells.push_back(
      {{},
       row.accuracy ? std::optional(Bar{*row.accuracy, row.high, row.baseline}) : std::nullopt});
  return cells;
}

/// One arm on all subsets of a group.
Table arm_table(const ReportGroup& group, const ReportGroupArm& arm) {
  const bool partial = std::any_of(arm.cells.begin(), arm.cells.end(), [](const ReportCell& cell) {
    return cell.accuracy && cell.accuracy->n_answered < cell.accuracy->n_registered;
  });
  Table table;
  table.columns = {{"subset"},
                   {"answered", true},
                   {"accuracy", true},
                   {"95 % interval", true},
                   {"baseline", true}};
  if (partial) table.columns.push_back({"of answered", true});
  table.columns.push_back({"", false, 1});
  for (std::size_t s = 0; s < group.subsets.size(); ++s) {
    const ReportCell& cell = arm.cells[s];
    if (cell.accuracy) {
      table.rows.push_back(accuracy_row(group.subsets[s].name, *cell.accuracy, partial));
    } else {
      std::vector<TableCell> row(table.columns.size());
      row[0].text = group.subsets[s].name;
      row[2].text = group.subsets[s].status == "mismatch" ? "dropped" : group.subsets[s].status;
      table.rows.push_back(std::move(row));
    }
  }
  if (group.subsets.size() == 1) return table;  // its pooled figures would be the same ones
  table.rules.push_back(table.rows.size());
  for (const ReportAccuracy& row : arm.pooled)
    table.rows.push_back(accuracy_row(scope_title(row), row, partial));
  if (arm.macro) table.rows.push_back(accuracy_row(scope_title(*arm.macro), *arm.macro, partial));
  return table;
}

/// Where an arm shows no skill, in words; empty when nowhere.
std::string where_no_skill(const ReportGroupArm& results) {
  std::int64_t marked_subsets = 0, subsets = 0;
  for (const ReportCell& cell : results.cells) {
    if (!cell.accuracy) continue;
    ++subsets;
    if (cell.accuracy->no_skill()) ++marked_subsets;
  }
  const ReportAccuracy* all = pooled_all(results);
  const bool pooled = all != nullptr && all->no_skill();
  if (marked_subsets == 0 && !pooled) return {};
  if (marked_subsets == 0) return "over all records together";
  return fmt::format("on {} of {}{}", marked_subsets, counted(subsets, "subset"),
                     pooled ? ", and over all records together" : "");
}

/// One sentence per pattern, naming the arms that share it.
std::vector<std::string> no_skill_sentences(const ReportModel& model, const ReportGroup& group) {
  std::vector<std::pair<std::string, std::vector<std::string>>> patterns;
  for (std::size_t i = 0; i < model.arms.size(); ++i) {
    const std::string where = where_no_skill(group.arms[i]);
    if (where.empty()) continue;
    const auto known = std::find_if(patterns.begin(), patterns.end(),
                                    [&](const auto& each) { return each.first == where; });
    if (known == patterns.end()) {
      patterns.push_back({where, {model.arms[i].name}});
    } else {
      known->second.push_back(model.arms[i].name);
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [where, arms] : patterns) {
    sentences.push_back(fmt::format(
        "{}: {}, the interval contains the majority baseline or lies below it: this is no "
        "evidence of skill.",
        list_of(arms), where));
  }
  return sentences;
}

bool any_marks(const ReportGroup& group) {
  for (const ReportGroupArm& arm : group.arms) {
    for (const ReportCell& cell : arm.cells) {
      if (cell.accuracy && cell.accuracy->no_skill()) return true;
    }
    if (const ReportAccuracy* all = pooled_all(arm); all != nullptr && all->no_skill()) return true;
  }
  return false;
}

void add_group(const ReportModel& model, const ReportGroup& group, Section& section) {
  section.blocks.push_back(Heading{group.title});
  section.blocks.push_back(overview(model, group));
  if (auto sentences = no_skill_sentences(model, group); !sentences.empty()) {
    section.blocks.push_back(Bullets{std::move(sentences)});
  }
  for (std::size_t i = 0; i < model.arms.size(); ++i) {
    if (!model.arms[i].started || group.arms[i].pooled.empty()) continue;
    section.blocks.push_back(
        Heading{fmt::format("{}: {}", model.arms[i].name, arm_title(model.arms[i]))});
    section.blocks.push_back(arm_table(group, group.arms[i]));
  }
}

std::string published_scope(const ReportPublished& row) {
  if (row.scope_kind == "subset") return row.scope;
  return fmt::format("{}, {}", type_title(row.scope), subsets_of(row.n_subsets, row.of_subsets));
}

Table published_table(const ReportGroup& group, const std::string& arm) {
  Table table;
  table.columns = {{"subset"},           {"published", true},     {"ours", true},
                   {"difference", true}, {"95 % interval", true}, {"ECE published", true, 1},
                   {"ECE ours", true, 1}};
  for (const ReportPublished& row : group.published) {
    if (row.arm != arm || !row.comparable) continue;
    if (row.scope_kind == "pooled" && table.rules.empty()) table.rules.push_back(table.rows.size());
    table.rows.push_back({{published_scope(row)},
                          {percent(row.published_accuracy)},
                          {percent(row.accuracy)},
                          {points(row.difference)},
                          {points_interval(row.low, row.high)},
                          {decimals(row.published_ece)},
                          {decimals(row.ece)}});
  }
  return table;
}

/// "different records: not compared: boolq and paws", one line per reason.
std::vector<std::string> not_compared(const ReportGroup& group, const std::string& arm) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const ReportPublished& row : group.published) {
    if (row.arm != arm || row.comparable || row.scope_kind != "subset") continue;
    const auto known = std::find_if(reasons.begin(), reasons.end(),
                                    [&](const auto& each) { return each.first == row.why_not; });
    if (known == reasons.end()) {
      reasons.push_back({row.why_not, {row.scope}});
    } else {
      known->second.push_back(row.scope);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [reason, subsets] : reasons) {
    lines.push_back(fmt::format("{}: not compared: {}", reason, list_of(subsets)));
  }
  return lines;
}

/// A group's agreement table: one row per pair, one column per pooled scope.
Table agreement_table(const ReportGroup& group) {
  std::vector<std::string> scopes;
  for (const ReportAgreement& row : group.agreement) {
    if (row.scope_kind == "pooled" &&
        std::find(scopes.begin(), scopes.end(), row.scope) == scopes.end()) {
      scopes.push_back(row.scope);
    }
  }
  Table table;
  table.columns = {{"arms"}};
  for (const std::string& scope : scopes) table.columns.push_back({type_title(scope), true});
  table.columns.push_back({"same answers", true});
  table.columns.push_back({""});
  for (std::size_t i = 0; i < group.agreement.size();) {
    const ReportAgreement& first = group.agreement[i];
    std::vector<TableCell> row = {{first.arm_a + " and " + first.arm_b}};
    row.resize(table.columns.size());
    row.back().text = first.same_checkpoint ? "one checkpoint" : "different checkpoint";
    for (; i < group.agreement.size() && group.agreement[i].arm_a == first.arm_a &&
           group.agreement[i].arm_b == first.arm_b;
         ++i) {
      const ReportAgreement& each = group.agreement[i];
      if (each.scope_kind != "pooled") continue;
      const auto scope = static_cast<std::size_t>(
          std::find(scopes.begin(), scopes.end(), each.scope) - scopes.begin());
      row[1 + scope].text = percent(each.share);
      if (each.scope == "all") row[1 + scopes.size()].text = of_total(each.same, each.n);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// The same per subset: rows are subsets, columns pairs.
Table agreement_by_subset(const ReportGroup& group) {
  Table table;
  table.columns = {{"subset"}};
  for (const ReportSubset& subset : group.subsets) table.rows.push_back({{subset.name}});
  std::string pair;
  for (const ReportAgreement& each : group.agreement) {
    const std::string title = each.arm_a + " and " + each.arm_b;
    if (title != pair) {
      pair = title;
      table.columns.push_back({title, true, each.same_checkpoint ? 1 : 2});
      for (auto& row : table.rows) row.push_back({std::string(kNothing)});
    }
    if (each.scope_kind != "subset") continue;
    for (auto& row : table.rows) {
      if (row[0].text == each.scope) row.back().text = of_total(each.same, each.n);
    }
  }
  return table;
}

}  // namespace

Section accuracy_section(const ReportModel& model) {
  Section section{"Accuracy", false, {}};
  if (model.headline() == nullptr || !model.scored) {
    section.blocks.push_back(Paragraph{model.headline() == nullptr
                                           ? "Nothing was registered, so nothing was scored."
                                           : "Nothing was scored yet: preval score does it."});
    return section;
  }
  for (const ReportGroup& group : model.groups) add_group(model, group, section);
  std::string how =
      "Accuracy is over the registered records of verified subsets: a record without an answer "
      "counts as wrong. "
      "Intervals are Wilson's at 95 %. The baseline always gives the most frequent right answer of "
      "its subset. "
      "Records of one family are not independent, which these intervals do not allow for.";
  if (std::any_of(model.groups.begin(), model.groups.end(), any_marks)) {
    how += fmt::format(
        " {} The interval contains the baseline or lies below it: this is no evidence of skill.",
        kNoSkillMark);
  }
  section.blocks.push_back(Paragraph{how});
  return section;
}

Section published_section(const ReportModel& model) {
  Section section{"Published figures", false, {}};
  if (model.published_model.empty()) {
    section.blocks.push_back(Paragraph{"The plan names no published figures."});
    return section;
  }
  section.blocks.push_back(
      Paragraph{fmt::format("{}, from {}. Published figures were taken over, not measured again.",
                            model.published_model, model.published_source)});
  bool compared = false;
  for (const ReportGroup& group : model.groups) {
    // Arms share most reasons: each set of lines is said once. Why arms were not run stands
    // elsewhere.
    std::vector<std::string> said;
    const bool none_started = std::none_of(model.arms.begin(), model.arms.end(),
                                           [](const ReportArm& arm) { return arm.started; });
    for (const ReportArm& arm : model.arms) {
      if (!arm.started && !(none_started && &arm == &model.arms.front())) continue;
      Table table = published_table(group, arm.name);
      const std::vector<std::string> lines = not_compared(group, arm.name);
      if (!table.rows.empty()) {
        section.blocks.push_back(Heading{arm.name});
        section.blocks.push_back(std::move(table));
        compared = true;
      }
      if (!lines.empty() && lines != said) {
        section.blocks.push_back(Bullets{lines});
        said = lines;
      }
    }
  }
  if (compared) {
    section.blocks.push_back(
        Paragraph{"Differences are published minus ours, in points. Only subsets with "
                  "byte-identical records are compared. The "
                  "comparison is unpaired: of the published answers only their share is known, so "
                  "that the intervals are wider "
                  "than paired ones would be."});
  }
  return section;
}

Section agreement_section(const ReportModel& model) {
  Section section{"Agreement between arms", false, {}};
  bool any = false;
  for (const ReportGroup& group : model.groups) {
    if (group.agreement.empty()) continue;
    any = true;
    if (model.groups.size() > 1) section.blocks.push_back(Heading{group.title});
    section.blocks.push_back(agreement_table(group));
    section.blocks.push_back(agreement_by_subset(group));
  }
  section.blocks.push_back(Paragraph{
      any ? "Share of the records answered on both arms that got the same answer, right or wrong. "
            "Pairs of a different "
            "checkpoint are different models: their agreement says nothing about the backends."
          : "There are no two arms with answers to compare."});
  return section;
}

}  // namespace preval
