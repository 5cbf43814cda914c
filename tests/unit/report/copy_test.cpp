#include "report/copy.h"

#include "catch.h"

using namespace preval;

TEST_CASE("the first difference between a copy of a report and the report", "[report]") {
  const auto line = [](const char* copy, const char* report) {
    const auto different = compare_copy(copy, report);
    return different ? std::to_string(different->line) + ": " + different->copy + " | " +
                           different->report
                     : std::string("none");
  };
  CHECK(line("a\nb\n", "a\nb\n") == "none");
  CHECK(line("", "") == "none");
  CHECK(line("a\nx\n", "a\nb\n") == "2: x | b");
  CHECK(line("a\n", "a\nb\n") == "2: (the file ends) | b");
  CHECK(line("a\nb\nc\n", "a\nb\n") == "3: c | (the file ends)");
  CHECK(line("a\n\n", "a\n") == "2:  | (the file ends)");
  CHECK(line("a\r\nb\r\n", "a\nb\n") == "0: only line ends | ");
  CHECK(line("a\nb", "a\nb\n") == "0: only the last line feed | ");
}

TEST_CASE("where a run leaves its report", "[report]") {
  CHECK(report_path("results.db", "md") == "report.md");
  CHECK(report_path("out/results.db", "json") == "out/report.json");
  CHECK(report_path("out/mine.db", "md") == "out/mine.report.md");
}
