#include "run/retry.h"

#include "base/clock.h"
#include "base/error.h"
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

namespace {

/// Answers from a list.
class Replies final : public Transport {
 public:
  explicit Replies(std::vector<HttpReply> replies) : replies_(std::move(replies)) {}
  void start(const Endpoint&, HttpRequest, Done done) override { done_ = std::move(done); }
  void wait(std::chrono::milliseconds) override { done_(replies_.at(asked++)); }
  std::size_t in_flight() const override { return 0; }

  std::size_t asked = 0;

 private:
  std::vector<HttpReply> replies_;
  Done done_;
};

HttpReply replied(long status, TransportStatus transport = TransportStatus::ok) {
  HttpReply reply;
  reply.status = status;
  reply.transport = transport;
  reply.body = "{}";
  return reply;
}

}  // namespace

TEST_CASE("a patient question is asked again while the server is busy, and no longer") {
  HttpReply hinted = replied(429);
  hinted.retry_after = "90";
  struct Case {
    std::vector<HttpReply> replies;
    long status;
    std::size_t asked;
    std::chrono::seconds waited;
  };
  const std::vector<Case> cases{
      {{replied(200)}, 200, 1, 0s},
      {{hinted, replied(200)}, 200, 2, 90s},
      {{replied(503), replied(0, TransportStatus::reset), replied(200)}, 200, 3, 0s},
      {{replied(503), replied(503), replied(503), replied(200)}, 503, 3, 0s},
      {{replied(500), replied(200)}, 200, 2, 0s},
      {{replied(500), replied(500), replied(200)}, 500, 2, 0s},  // "not supported", to a probe
      {{replied(404), replied(200)}, 404, 1, 0s},
      {{replied(0, TransportStatus::timeout), replied(200)}, 0, 1, 0s}};
  for (const Case& each : cases) {
    Replies transport(each.replies);
    ManualClock clock;
    const Endpoint endpoint;
    const Ask ask = patient_asker(transport, endpoint, clock, Backoff(100ms, 1000ms, 1), 3,
                                  [] { return false; });
    CHECK(ask({"GET", "/p", ""}).status == each.status);
    CHECK(transport.asked == each.asked);
    CHECK(clock.monotonic() >= each.waited);
  }
}

TEST_CASE("patience ends when the user asks for it") {
  Replies transport({replied(503), replied(200)});
  ManualClock clock;
  const Endpoint endpoint;
  const Ask ask =
      patient_asker(transport, endpoint, clock, Backoff(100ms, 1000ms, 1), 3, [] { return true; });
  CHECK_THROWS_AS(ask({"GET", "/p", ""}), Error);
  CHECK(transport.asked <= 1);
}
