#include "base/clock.h"

#include "catch.h"

namespace preval {

using namespace std::chrono_literals;

TEST_CASE("time stamps are UTC and whole seconds") {
  const auto at = [](std::chrono::milliseconds since_1970) {
    return utc_text(std::chrono::system_clock::time_point(since_1970));
  };
  CHECK(at(0ms) == "1970-01-01T00:00:00Z");
  CHECK(at(1'790'253'296'000ms) == "2026-09-24T12:34:56Z");
  CHECK(at(1'790'253'296'999ms) == "2026-09-24T12:34:56Z");
  CHECK(at(1'709'164'799'000ms) == "2024-02-28T23:59:59Z");
  CHECK(at(1'709'164'800'000ms) == "2024-02-29T00:00:00Z");
  CHECK(at(-1ms) == "1969-12-31T23:59:59Z");
}

TEST_CASE("what is no time stamp is told from what is one") {
  for (const char* text : {"1970-01-01T00:00:00Z", "2024-02-29T23:59:59Z"})
    CHECK(is_utc_text(text));
  for (const char* text :
       {"", "yesterday", "2024-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z",
        "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01 00:00:00Z",
        "2024-01-01T00:00:00z", "2024-01-01T00:00:0aZ"}) {
    INFO(text);
    CHECK_FALSE(is_utc_text(text));
  }
}

TEST_CASE("a manual clock moves only when it sleeps") {
  ManualClock clock;
  CHECK(utc_text(clock.now()) == "2023-11-14T22:13:20Z");
  CHECK(clock.monotonic() == 0ns);
  clock.sleep(90s);
  CHECK(clock.monotonic() == 90s);
  CHECK(utc_text(clock.now()) == "2023-11-14T22:14:50Z");
}

TEST_CASE("the system clock waits at least as long as it was asked to") {
  SystemClock clock;
  const auto before = clock.monotonic();
  clock.sleep(2ms);
  CHECK(clock.monotonic() - before >= 2ms);
  CHECK(clock.now() > std::chrono::system_clock::time_point(1'700'000'000s));
}

}  // namespace preval
