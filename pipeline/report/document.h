#pragma once
// A report for readers, as headings, sentences and tables, before anybody decides how they look.
// Terminal and Markdown (and later HTML) render the same document, so they say the same words.
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "report/model.h"

namespace preval {

/// A share drawn as a bar over 0 … 1: filled to `value`, shaded to `high`, a line at `mark`.
struct Bar {
  double value = 0;
  std::optional<double> high, mark;
};

struct TableCell {
  std::string text = {};
  std::optional<Bar> bar = std::nullopt;  ///< drawn instead of the text
};

struct Column {
  std::string title;
  bool right = false;  ///< numbers stand right
  int spare = 0;       ///< left out on a narrow terminal; the largest first, 0 never
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<TableCell>> rows;
  std::vector<std::size_t> rules;  ///< a line before these rows
};

struct Heading {
  std::string text;
};
struct Paragraph {
  std::string text;
};
struct Bullets {
  std::vector<std::string> items;
};
using Block = std::variant<Heading, Paragraph, Bullets, Table>;

struct Section {
  std::string title;
  bool detail = false;  ///< left out of brief renderings
  std::vector<Block> blocks;
};

struct Document {
  std::string title;
  std::vector<std::string> banners;  ///< what must be read first: SIMULATED, EXPLORATORY, …
  std::string lead;
  std::vector<Section> sections;
};

/// The whole report, in the order of its sections.
Document build_document(const ReportModel& model);

// One function per section, in this order. Each gives a section even when there is little to say.
Section hypotheses_section(const ReportModel& model);
Section deviations_section(const ReportModel& model);
Section accuracy_section(const ReportModel& model);
Section published_section(const ReportModel& model);
Section agreement_section(const ReportModel& model);
Section calibration_section(const ReportModel& model);
Section coverage_section(const ReportModel& model);
/// Repeats and reversed options; without blocks when none were asked.
Section stability_section(const ReportModel& model);
Section completeness_section(const ReportModel& model);
Section caveats_section(const ReportModel& model);
Section provenance_section(const ReportModel& model);

/// What absent labels could change, per arm whose reads can lack some; empty without such answers.
/// A part of the section on coverage.
std::vector<Block> absent_label_blocks(const ReportModel& model);

}  // namespace preval
