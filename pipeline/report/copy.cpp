#include "report/copy.h"

#include <fmt/format.h>

namespace preval {

namespace {

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string shown(bool ended, std::string_view line) {
  return ended ? std::string("(the file ends)") : std::string(line);
}

}  // namespace

std::filesystem::path report_path(const std::filesystem::path& store, std::string_view ending) {
  const std::string stem = store.stem().string();
  return store.parent_path() / (stem == "results" ? fmt::format("report.{}", ending)
                                                  : fmt::format("{}.report.{}", stem, ending));
}

std::optional<CopyDifference> compare_copy(std::string_view copy, std::string_view report) {
  if (copy == report) return std::nullopt;
  std::string line_feeds_only(copy);
  std::erase(line_feeds_only, '\r');
  if (line_feeds_only == report) {
    return CopyDifference{0, "only line ends", ""};
  }
  for (std::size_t number = 1;; ++number) {
    const bool copy_ended = copy.empty(), report_ended = report.empty();
    if (copy_ended && report_ended) return CopyDifference{0, "only the last line feed", ""};
    const std::string_view in_copy = next_line(copy), in_report = next_line(report);
    if (in_copy == in_report && copy_ended == report_ended) continue;
    return CopyDifference{number, shown(copy_ended, in_copy), shown(report_ended, in_report)};
  }
}

}  // namespace preval
