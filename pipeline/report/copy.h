#pragma once
// Copies of a report: where a run leaves them, and whether one still says what the store says.
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "report/model.h"

namespace preval {

/// In which formats a run leaves its report, with the endings of their files.
inline constexpr std::array<std::pair<ReportFormat, std::string_view>, 2> kReportCopies{
    {{ReportFormat::markdown, "md"}, {ReportFormat::json, "json"}}};

/// Where a run into this store leaves its report: results.db → report.md; other.db →
/// other.report.md.
std::filesystem::path report_path(const std::filesystem::path& store, std::string_view ending);

/// The first difference between a copy and the report.
struct CopyDifference {
  std::size_t line = 0;  ///< from 1; 0: the lines are the same
  /// The line there, "(the file ends)" where there is none. For line 0 `copy` says what differs.
  std::string copy, report;
};

/// Nothing when they are the same bytes.
std::optional<CopyDifference> compare_copy(std::string_view copy, std::string_view report);

}  // namespace preval
