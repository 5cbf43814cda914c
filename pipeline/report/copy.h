#pragma once
// Copies of a report: where a run leaves them, and whether one still says what the store says.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace preval {

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
