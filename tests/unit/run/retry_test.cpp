#include "run/retry.h"

#include "base/clock.h"
#include "catch.h"

using namespace preval;
using namespace std::chrono_literals;

TEST_CASE("back-off draws from a ceiling that doubles and is capped") {
  ManualClock clock;
  Backoff backoff(500ms, 4000ms, 7);
  const HttpReply silent;
  const std::vector<std::chrono::milliseconds> ceilings{500ms,  1000ms, 2000ms,
                                                        4000ms, 4000ms, 4000ms};
  for (int draw = 0; draw < 200; ++draw) {
    for (std::size_t i = 0; i < ceilings.size(); ++i) {
      const auto delay = backoff.delay(static_cast<int>(i) + 1, silent, clock);
      CHECK(delay >= 0ms);
      CHECK(delay < ceilings[i]);
    }
  }
}

TEST_CASE("jitter is full: early and late delays both come up") {
  ManualClock clock;
  Backoff backoff(1000ms, 1000ms, 3);
  int early = 0, late = 0;
  for (int draw = 0; draw < 200; ++draw) {
    const auto delay = backoff.delay(1, {}, clock);
    early += delay < 250ms ? 1 : 0;
    late += delay > 750ms ? 1 : 0;
  }
  CHECK(early > 20);
  CHECK(late > 20);
}

TEST_CASE("what the server asks for is honoured, and bounded") {
  ManualClock clock;
  struct Row {
    std::string ms, seconds;
    std::optional<std::chrono::milliseconds> expected;
  };
  const std::vector<Row> rows{
      {"", "", std::nullopt},
      {"1500", "", 1500ms},
      {"", "3", 3000ms},
      {"250", "9", 250ms},  // milliseconds come first
      {"", "0.5", 500ms},
      {"", "86400", 300'000ms},
      {"", "-4", std::nullopt},
      {"nonsense", "", std::nullopt},
      {"", "nonsense", std::nullopt},
      {"", "nan", std::nullopt},
      // The manual clock stands at 2023-11-14T22:13:20Z.
      {"", "Tue, 14 Nov 2023 22:13:50 GMT", 30'000ms},
      {"", "Tue, 14 Nov 2023 22:13:00 GMT", std::nullopt},
  };
  for (const Row& row : rows) {
    INFO(row.ms << "|" << row.seconds);
    HttpReply reply;
    reply.retry_after_ms = row.ms;
    reply.retry_after = row.seconds;
    CHECK(wait_hint(reply, clock) == row.expected);
    if (row.expected) CHECK(Backoff(1ms, 1ms, 1).delay(1, reply, clock) >= *row.expected);
  }
}

TEST_CASE("a wrong key or a missing model ends the arm, anything else does not") {
  for (const long status : {401L, 403L, 404L})
    CHECK(stops_arm({"http_error", "", status, "", false, false}));
  for (const long status : {0L, 200L, 400L, 429L, 500L, 503L}) {
    CHECK_FALSE(stops_arm({"http_error", "", status, "", false, false}));
  }
}
