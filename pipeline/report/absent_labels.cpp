// What the labels that did not come back could change: the floor in their place is a convention, so
// the figures that rest on it are given at both ends of what is known.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/document.h"
#include "report/wording.h"

namespace preval {

namespace {

std::string between(const ReportExtremes& figure) {
  return fmt::format("{} – {}", decimals(figure.low), decimals(figure.high));
}

/// Subsets where something is absent or could tie. Arms whose reads lack nothing have none.
Table bounds_table(const ReportGroup& group, const ReportGroupArm& arm) {
  Table table;
  table.columns = {{"subset"},    {"lacking", true},  {"ties", true},  {"confidence", true},
                   {"ECE", true}, {"Brier", true, 1}, {"NLL", true, 2}};
  for (std::size_t s = 0; s < group.subsets.size(); ++s) {
    const auto& bounds = arm.cells[s].bounds;
    if (!bounds || (bounds->n_incomplete == 0 && bounds->n_tied_at_bound == 0)) continue;
    table.rows.push_back({{group.subsets[s].name},
                          {of_total(bounds->n_incomplete, bounds->n)},
                          {grouped(bounds->n_tied_at_bound)},
                          {between(bounds->confidence)},
                          {between(bounds->ece)},
                          {between(bounds->brier)},
                          {between(bounds->nll)}});
  }
  return table;
}

bool has_bounds(const ReportGroupArm& arm) {
  return std::any_of(arm.cells.begin(), arm.cells.end(),
                     [](const ReportCell& cell) { return cell.bounds.has_value(); });
}

}  // namespace

std::vector<Block> absent_label_blocks(const ReportModel& model) {
  std::vector<Block> blocks;
  std::vector<std::string> complete;
  bool any_tables = false;
  for (const ReportGroup& group : model.groups) {
    for (std::size_t i = 0; i < model.arms.size(); ++i) {
      if (!has_bounds(group.arms[i])) continue;
      Table table = bounds_table(group, group.arms[i]);
      const std::string name = model.groups.size() == 1
                                   ? model.arms[i].name
                                   : fmt::format("{}, {}", model.arms[i].name, group.title);
      if (table.rows.empty()) {
        complete.push_back(name);
        continue;
      }
      any_tables = true;
      blocks.push_back(Heading{"What absent labels could change: " + name});
      blocks.push_back(std::move(table));
    }
  }
  if (any_tables) {
    blocks.push_back(Paragraph{
        "Lacking: answers without all of their labels. Ties: answers whose choice is not certain, "
        "because what is absent could be as likely as it. Confidence: mean probability of the "
        "chosen answer. These figures were computed twice, with every absent label at its bound "
        "(the most that the read leaves it) and at probability 0; the lesser one stands first. "
        "The choice is the same in both. In the NLL, a right answer of probability 0 counts as the "
        "least one that it takes a logarithm of. Subsets where nothing is absent are left out."});
  }
  if (!complete.empty()) {
    blocks.push_back(Bullets{
        {fmt::format("No answer lacks a label: nothing to bound on {}.", list_of(complete))}});
  }
  return blocks;
}

}  // namespace preval
