#include "run/schedule.h"

#include <deque>

#include "base/error.h"
#include "catch.h"

using namespace preval;
using namespace std::chrono_literals;

namespace {

/// A protocol of one exchange per dialogue: "t" tokenises, "r" reads; 200 answers, 500 may be asked
/// again, 401 refuses.
class OneExchange final : public Backend {
 public:
  template <class Result>
  class Ask final : public Dialogue<Result> {
   public:
    explicit Ask(std::string path) : path_(std::move(path)) {}
    Step<Result> begin() override { return HttpRequest{"POST", path_, ""}; }
    Step<Result> reply(const HttpReply& reply) override {
      if (reply.status == 200) return Result{};
      return Failure{"http_error",        "status " + std::to_string(reply.status),
                     reply.status,        "",
                     reply.status >= 500, reply.status >= 500};
    }

   private:
    std::string path_;
  };
  std::unique_ptr<Dialogue<Identity>> identify() const override { return nullptr; }
  std::unique_ptr<Dialogue<std::vector<Finding>>> preflight(const Item&) const override {
    return nullptr;
  }
  std::unique_ptr<Dialogue<TokenPrompt>> tokenise(const Item&) const override {
    return std::make_unique<Ask<TokenPrompt>>("t");
  }
  std::unique_ptr<Dialogue<Answer>> read(const Item&, const TokenPrompt&) const override {
    return std::make_unique<Ask<Answer>>("r");
  }
  HttpRequest health() const override { return {}; }
};

/// Answers reads from a list of statuses, then 200; tokenises always work.
class ListTransport final : public Transport {
 public:
  explicit ListTransport(std::deque<long> statuses) : statuses_(std::move(statuses)) {}
  void start(const Endpoint&, HttpRequest request, Done done) override {
    HttpReply reply;
    reply.status = 200;
    if (request.path == "r") {
      ++reads;
      if (!statuses_.empty()) {
        reply.status = statuses_.front();
        statuses_.pop_front();
      }
    }
    open_.push_back([reply, done] { done(reply); });
    most_in_flight = std::max(most_in_flight, open_.size());
  }
  void wait(std::chrono::milliseconds) override {
    if (open_.empty()) return;
    const auto first = std::move(open_.front());
    open_.pop_front();
    first();
  }
  std::size_t in_flight() const override { return open_.size(); }

  int reads = 0;
  std::size_t most_in_flight = 0;

 private:
  std::deque<long> statuses_;
  std::deque<std::function<void()>> open_;
};

struct Outcome {
  ScheduleEnd end;
  int answered = 0, final_failures = 0, retried = 0;
  int reads = 0;
  std::size_t most_in_flight = 0;
};

Outcome schedule(int jobs, std::deque<long> statuses, ScheduleLimits limits,
                 const std::function<int(const Outcome&)>& stop = {},
                 const std::function<std::optional<std::string>(const Outcome&)>& ended = {}) {
  Outcome outcome;
  ListTransport transport(std::move(statuses));
  ManualClock clock;
  Backoff backoff(100ms, 1000ms, 1);
  int given = 0;
  ScheduleHooks hooks;
  hooks.next = [&]() -> std::optional<Job> {
    if (given == jobs) return std::nullopt;
    Job job;
    job.record = std::make_shared<Record>();
    job.prompt = std::make_shared<Prompt>();
    job.prompt_key = given++;
    return job;
  };
  hooks.answered = [&](const Job&, const Answer&) { ++outcome.answered; };
  hooks.failed = [&](const Job&, const Failure&, int, bool final) {
    ++(final ? outcome.final_failures : outcome.retried);
  };
  hooks.stop = [&] { return stop ? stop(outcome) : 0; };
  hooks.idle = [] {};
  hooks.server_ended = [&]() -> std::optional<std::string> {
    return ended ? ended(outcome) : std::nullopt;
  };
  outcome.end = run_schedule(OneExchange(), transport, Endpoint(), clock, backoff, limits, hooks);
  outcome.reads = transport.reads;
  outcome.most_in_flight = transport.most_in_flight;
  return outcome;
}

}  // namespace

TEST_CASE("every job is answered, and never more are in flight than allowed") {
  for (const int concurrency : {1, 3, 8}) {
    const Outcome outcome = schedule(20, {}, {concurrency, 4, 8});
    CHECK(outcome.end.kind == ScheduleEnd::Kind::done);
    CHECK(outcome.answered == 20);
    CHECK(outcome.reads == 20);
    CHECK(outcome.most_in_flight == static_cast<std::size_t>(concurrency));
  }
}

TEST_CASE("no jobs end at once") { CHECK(schedule(0, {}, {}).end.kind == ScheduleEnd::Kind::done); }

TEST_CASE("a failure that is worth it is asked again, up to the limit") {
  const Outcome recovered = schedule(3, {200, 500, 500, 200}, {1, 4, 8});
  CHECK(recovered.answered == 3);
  CHECK(recovered.retried == 2);
  CHECK(recovered.final_failures == 0);

  const Outcome given_up = schedule(1, {500, 500, 500}, {1, 3, 8});
  CHECK(given_up.answered == 0);
  CHECK(given_up.retried == 2);
  CHECK(given_up.final_failures == 1);
  CHECK(given_up.end.kind == ScheduleEnd::Kind::done);
}

TEST_CASE("a failure that is not worth it is final at once") {
  const Outcome outcome = schedule(2, {400, 200}, {1, 4, 8});
  CHECK(outcome.answered == 1);
  CHECK(outcome.final_failures == 1);
  CHECK(outcome.retried == 0);
}

TEST_CASE("a refused key stops the schedule") {
  const Outcome outcome = schedule(50, {200, 401}, {1, 4, 8});
  CHECK(outcome.end.kind == ScheduleEnd::Kind::refused);
  CHECK(outcome.end.reason == "status 401");
  CHECK(outcome.reads == 2);
}

TEST_CASE("server failures in a row open the breaker; an answer between them closes it") {
  const Outcome broken = schedule(50, std::deque<long>(50, 500), {1, 1, 5});
  CHECK(broken.end.kind == ScheduleEnd::Kind::breaker);
  CHECK(broken.end.reason == "5 server failures in a row, the last one: status 500");
  CHECK(broken.reads == 5);

  std::deque<long> alternating;
  for (int i = 0; i < 20; ++i) {
    alternating.push_back(500);
    alternating.push_back(200);
  }
  const Outcome patient = schedule(40, alternating, {1, 1, 5});
  CHECK(patient.end.kind == ScheduleEnd::Kind::done);
  CHECK(patient.answered == 20);
  CHECK(patient.final_failures == 20);
}

TEST_CASE("asked to stop, it finishes what is in flight; asked twice, it drops it") {
  const Outcome once = schedule(
      50, {}, {4, 4, 8}, [](const Outcome& outcome) { return outcome.answered >= 6 ? 1 : 0; });
  CHECK(once.end.kind == ScheduleEnd::Kind::interrupted);
  CHECK(once.answered == once.reads);
  CHECK(once.answered < 12);

  const Outcome twice = schedule(
      50, {}, {4, 4, 8}, [](const Outcome& outcome) { return outcome.answered >= 6 ? 2 : 0; });
  CHECK(twice.end.kind == ScheduleEnd::Kind::interrupted);
  CHECK(twice.answered < 10);
}

TEST_CASE("one by one: what is worth it is asked again, up to the limit, with pauses") {
  ManualClock clock;
  const Endpoint endpoint;
  const auto outcome = [&](std::deque<long> statuses, int attempts) {
    ListTransport transport(std::move(statuses));
    Exchanges exchanges(transport, endpoint, clock, attempts, [] { return 0; });
    const HttpReply reply = exchanges({"POST", "r", ""});
    return std::pair(reply.status, transport.reads);
  };
  CHECK(outcome({503, 429}, 4) == std::pair(200L, 3));
  CHECK(outcome({503, 503, 503}, 3) == std::pair(503L, 3));
  CHECK(outcome({400}, 4) == std::pair(400L, 1));
}

TEST_CASE("one by one: the user's word stops it, waiting or not") {
  ManualClock clock;
  const Endpoint endpoint;
  ListTransport transport({503, 503});
  int calls = 0;
  Exchanges exchanges(transport, endpoint, clock, 4, [&] { return ++calls > 3 ? 1 : 0; });
  CHECK_THROWS_AS(exchanges({"POST", "r", ""}), Error);
  Exchanges stopped(transport, endpoint, clock, 4, [] { return 1; });
  CHECK_THROWS_AS(stopped({"POST", "r", ""}), Error);
}

TEST_CASE("a server that ends is not asked again, and its words are the reason") {
  const Outcome outcome =
      schedule(50, {}, {2, 4, 8}, {}, [](const Outcome& seen) -> std::optional<std::string> {
        if (seen.answered < 3) return std::nullopt;
        return "signal 9";
      });
  CHECK(outcome.end.kind == ScheduleEnd::Kind::server_ended);
  CHECK(outcome.end.reason == "signal 9");
  CHECK(outcome.answered < 8);
}
