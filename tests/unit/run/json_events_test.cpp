#include "run/json_events.h"

#include "../plan/memory_files.h"
#include "base/text.h"
#include "catch.h"
#include "study.h"

using namespace preval;
using namespace preval::test;

namespace {

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("every event is a line of JSON, whatever is in it", "[run]") {
  MemoryFiles files;
  ManualClock clock;
  JsonEvents events(files, clock, "events.jsonl");
  events.stage_started("", "verify");
  events.stage_ended("a", "boot", "failed", 1.5, "it said: \xFF\n\"no\"");
  Progress progress;
  progress.arm = "a";
  progress.subset = "boolq";
  progress.done = 3;
  progress.total = 8;
  events.progressed(progress);
  events.progressed(progress);  // within the same second
  clock.sleep(std::chrono::seconds(2));
  events.progressed(progress);
  events.subset_done(progress, 3, 4);
  events.notice("look");
  events.detail("closer");
  events.ended("incomplete", 4, 5);
  const std::vector<Json> lines = lines_of(files.content["events.jsonl"]);
  REQUIRE(lines.size() == 8);
  for (const Json& line : lines) CHECK(is_utc_text(line["at"].get<std::string>()));
  CHECK(lines[0]["event"] == "stage_started");
  CHECK(lines[0]["arm"].is_null());
  CHECK(lines[1]["detail"] == "it said: \xEF\xBF\xBD\n\"no\"");
  CHECK(lines[2]["event"] == "progress");
  CHECK(lines[2]["done"] == 3);
  CHECK(lines[4].dump() == Json{{"at", lines[4]["at"]},
                                {"event", "subset_done"},
                                {"arm", "a"},
                                {"subset", "boolq"},
                                {"done", 3},
                                {"total", 4}}
                               .dump());
  CHECK(lines[5]["text"] == "look");
  CHECK(lines[6]["event"] == "detail");
  CHECK(lines[6]["text"] == "closer");
  CHECK(lines[7]["exit_code"] == 4);
  CHECK(lines[7]["missing_reads"] == 5);
}

TEST_CASE("no file, no events", "[run]") {
  MemoryFiles files;
  ManualClock clock;
  JsonEvents(files, clock, {}).notice("x");
  CHECK(files.content.empty());
}
