#include "run/progress.h"

#include <sstream>

#include "catch.h"

using namespace preval;

namespace {

Progress at(std::int64_t done, std::int64_t total, double seconds) {
  Progress progress;
  progress.arm = "arm";
  progress.subset = "boolq";
  progress.done = done;
  progress.total = total;
  progress.asked = done;
  progress.seconds = seconds;
  progress.median_ms = 31;
  return progress;
}

}  // namespace

TEST_CASE("progress says what is done, how fast, and how long it will take") {
  Progress progress = at(812, 3880, 5.76);
  progress.retries = 3;
  CHECK(progress_text(progress) == "812/3,880 · 141.0/s · p50 31 ms · retries 3 · ETA 0:21");
  progress.failed = 2;
  CHECK(progress_text(progress) ==
        "812/3,880 · 141.0/s · p50 31 ms · retries 3 · failed 2 · ETA 0:21");
}

TEST_CASE("nothing asked yet is no division by zero") {
  CHECK(progress_text(at(0, 100, 0)) == "0/100 · 0.0/s · p50 31 ms · retries 0");
}

TEST_CASE("away from a terminal there is one line per tenth") {
  std::ostringstream out;
  ManualClock clock;
  ProgressPrinter printer(out, clock, {});
  printer.stage_started("arm", "reads");
  for (int i = 1; i <= 1000; ++i) {
    clock.sleep(std::chrono::milliseconds(11));
    printer.progressed(at(i, 1000, i));
  }
  const std::string text = out.str();
  CHECK(std::count(text.begin(), text.end(), '\n') == 10);
  CHECK(text.find('\r') == std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("details are for those who asked for more") {
  const auto printed = [](ProgressPrinter::Look look) {
    std::ostringstream out;
    ManualClock clock;
    ProgressPrinter(out, clock, look).detail("record 1\x1b[0m");
    return out.str();
  };
  CHECK(printed({}).empty());
  ProgressPrinter::Look more;
  more.verbose = true;
  CHECK(printed(more).find("  record 1") == 0);
  CHECK(printed(more).find('\x1b') == std::string::npos);
}

TEST_CASE("away from a terminal a few quick records are not worth a line each") {
  std::ostringstream out;
  ManualClock clock;
  ProgressPrinter printer(out, clock, {});
  printer.stage_started("arm", "reads");
  for (int i = 1; i <= 13; ++i) {
    clock.sleep(std::chrono::milliseconds(5));
    printer.progressed(at(i, 13, i));
  }
  CHECK(out.str().empty());
}

TEST_CASE("away from a terminal a slow arm still says something every half minute") {
  std::ostringstream out;
  ManualClock clock;
  ProgressPrinter printer(out, clock, {});
  printer.stage_started("arm", "reads");
  for (int i = 1; i <= 5; ++i) {
    clock.sleep(std::chrono::seconds(31));
    printer.progressed(at(i, 1000, i));
  }
  const std::string text = out.str();
  CHECK(std::count(text.begin(), text.end(), '\n') == 5);
}

TEST_CASE("a live line never wraps, and a finished stage replaces it") {
  std::ostringstream out;
  ManualClock clock;
  ProgressPrinter::Look look;
  look.terminal = true;
  look.width = 30;
  ProgressPrinter printer(out, clock, look);
  clock.sleep(std::chrono::seconds(1));
  printer.progressed(at(500, 1000, 10));
  CHECK(out.str() == "\r\x1b[2Karm boolq 500/1,000 · 50.0/s ");
  out.str("");
  printer.stage_ended("arm", "reads", "ok", 12.3, "1000 answered");
  CHECK(out.str().starts_with("\r\x1b[2Karm "));
  CHECK(out.str().ends_with("1000 answered\n"));
}

TEST_CASE("quiet hides everything but notices; simulated runs say so on every line") {
  std::ostringstream out;
  ManualClock clock;
  ProgressPrinter::Look look;
  look.quiet = true;
  look.simulated = true;
  ProgressPrinter printer(out, clock, look);
  printer.stage_started("arm", "reads");
  printer.progressed(at(5, 10, 1));
  printer.stage_ended("arm", "reads", "ok", 1, "");
  printer.notice("subset paws is missing");
  CHECK(out.str() == "SIMULATED subset paws is missing\n");
}
