#include "run/schedule.h"

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "catch.h"

using namespace preval;
using namespace std::chrono_literals;

namespace {

/// A protocol of one exchange per dialogue: "t" tokenises, "r" reads; 200 answers, 500 may be asked
/// again, 401 refuses; 299 stands for a 200 with sentinels in it, which is worth one more try
/// alone.
class OneExchange final : public Backend {
 public:
  template <class Result>
  class Ask final : public Dialogue<Result> {
   public:
    explicit Ask(std::string path) : path_(std::move(path)) {}
    Step<Result> begin() override { return HttpRequest{"POST", path_, ""}; }
    Step<Result> reply(const HttpReply& reply) override {
      if (reply.status == 200) return Result{};
      const bool sentinel = reply.status == 299;
      return Failure{sentinel ? "logprob_sentinel" : "http_error",
                     "status " + std::to_string(reply.status),
                     reply.status,
                     "",
                     reply.status >= 500 || sentinel,
                     reply.status >= 500,
                     sentinel};
    }

   private:
    std::string path_;
  };
  std::unique_ptr<Dialogue<Identity>> identify() const override { return nullptr; }
  std::unique_ptr<Dialogue<TokenPrompt>> tokenise(const Item&) const override {
    return std::make_unique<Ask<TokenPrompt>>("t");
  }
  std::unique_ptr<Dialogue<Answer>> read(const Item&, const TokenPrompt&,
                                         const Sampling&) const override {
    return std::make_unique<Ask<Answer>>("r");
  }
  HttpRequest health() const override { return {}; }
  HttpRequest nonsense() const override { return {}; }
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
        reply.retry_after = retry_after;
      }
    }
    open_.push_back([reply, done] { done(reply); });
    if (request.path == "r") beside.push_back(open_.size() - 1);
    most_in_flight = std::max(most_in_flight, open_.size());
  }
  void wait(std::chrono::milliseconds) override {
    if (open_.empty()) return;
    const auto first = std::move(open_.front());
    open_.pop_front();
    first();
  }
  std::size_t in_flight() const override { return open_.size(); }

  std::string retry_after;  // of the replies whose statuses were given
  int reads = 0;
  std::size_t most_in_flight = 0;
  std::vector<std::size_t> beside;  // by read: how many requests were in flight when it started

 private:
  std::deque<long> statuses_;
  std::deque<std::function<void()>> open_;
};

struct Outcome {
  ScheduleEnd end;
  int answered = 0, final_failures = 0, retried = 0;
  int reads = 0;
  std::size_t most_in_flight = 0;
  std::vector<std::size_t> beside;
  std::vector<int> begun_when_failed;  // reads begun, at each failure
  std::vector<std::string> failures;   // "job class attempt", "final" behind the last one of a job
};

Outcome schedule(int jobs, std::deque<long> statuses, ScheduleLimits limits,
                 const std::function<int(const Outcome&)>& stop = {},
                 const std::function<std::optional<std::string>(const Outcome&)>& ended = {},
                 int refused_read = 0) {
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
  hooks.failed = [&](const Job& job, const Failure& failure, int attempt, bool final) {
    ++(final ? outcome.final_failures : outcome.retried);
    outcome.failures.push_back(std::to_string(job.prompt_key) + " " + failure.error_class + " " +
                               std::to_string(attempt) + (final ? " final" : ""));
    outcome.begun_when_failed.push_back(transport.reads);
  };
  hooks.refusal = [&](const Answer&) -> std::optional<Failure> {
    if (transport.reads != refused_read) return std::nullopt;
    return Failure{"identity_changed", "another model"};
  };
  hooks.stop = [&] { return stop ? stop(outcome) : 0; };
  hooks.idle = [] {};
  hooks.server_ended = [&]() -> std::optional<std::string> {
    return ended ? ended(outcome) : std::nullopt;
  };
  outcome.end = run_schedule(OneExchange(), transport, std::vector<Endpoint>(1), clock, backoff, limits, hooks);
  outcome.reads = transport.reads;
  outcome.most_in_flight = transport.most_in_flight;
  outcome.beside = transport.beside;
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

TEST_CASE(
    "A1: a sentinel gets one more try, with nothing else in flight and nothing begun beside it") {
  // The second of eight jobs, four of them in flight, comes back with sentinels.
  const Outcome recovered = schedule(8, {200, 299}, {4, 4, 8});
  CHECK(recovered.end.kind == ScheduleEnd::Kind::done);
  CHECK(recovered.answered == 8);
  CHECK(recovered.failures == std::vector<std::string>{"1 logprob_sentinel 1"});
  CHECK(recovered.reads == 9);
  CHECK(std::count(recovered.beside.begin(), recovered.beside.end(), 0U) >= 1);

  // Twice is once too often, whatever the budget.
  const Outcome given_up = schedule(1, {299, 299, 200}, {4, 10, 8});
  CHECK(given_up.answered == 0);
  CHECK(given_up.failures ==
        std::vector<std::string>{"0 logprob_sentinel 1", "0 logprob_sentinel 2 final"});
  CHECK(given_up.reads == 2);
}

TEST_CASE("the try alone is alone even when other jobs wait for another try") {
  // Jobs 0 and 1 must be alone, job 2 may be asked again beside others.
  const Outcome outcome = schedule(3, {299, 299, 500}, {3, 4, 8});
  CHECK(outcome.answered == 3);
  CHECK(outcome.retried == 3);
  REQUIRE(outcome.beside.size() == 6);
  // The last three reads are the retries. However they are ordered, two of them began with nothing
  // in flight, and none began beside one that must be alone: with three jobs that leaves no
  // overlap.
  for (std::size_t i = 3; i < 6; ++i) CHECK(outcome.beside[i] == 0);
}

TEST_CASE("what goes wrong on the try alone is retried alone; another sentinel is final") {
  const Outcome outcome = schedule(1, {299, 500, 299}, {4, 4, 8});
  CHECK(outcome.failures == std::vector<std::string>{"0 logprob_sentinel 1", "0 http_error 2",
                                                     "0 logprob_sentinel 3 final"});
}

TEST_CASE("a failure that is not worth it is final at once") {
  const Outcome outcome = schedule(2, {400, 200}, {1, 4, 8});
  CHECK(outcome.answered == 1);
  CHECK(outcome.final_failures == 1);
  CHECK(outcome.retried == 0);
}

TEST_CASE("a refused key and an unknown model stop the schedule at once") {
  for (const long status : {401L, 403L, 404L}) {
    const Outcome outcome = schedule(50, {200, status}, {1, 4, 8});
    CHECK(outcome.end.kind == ScheduleEnd::Kind::refused);
    CHECK(outcome.end.reason == "status " + std::to_string(status));
    CHECK(outcome.reads == 2);
    CHECK(outcome.final_failures == 1);
  }
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

TEST_CASE("what fails together counts once: the breaker opens only after new tries failed") {
  // Eight in flight meet one blip; a breaker of two would have opened four times.
  const Outcome blip = schedule(40, std::deque<long>(8, 503), {8, 4, 2});
  CHECK(blip.end.kind == ScheduleEnd::Kind::done);
  CHECK(blip.answered == 40);
  CHECK(blip.retried == 8);
  CHECK(blip.final_failures == 0);

  // A server that stays away is tried `breaker` times, and never by more than may be in flight.
  const Outcome away = schedule(40, std::deque<long>(400, 503), {8, 4, 3});
  CHECK(away.end.kind == ScheduleEnd::Kind::breaker);
  CHECK(away.end.reason == "3 server failures in a row, the last one: status 503");
  REQUIRE(away.end.failure);
  CHECK(away.end.failure->http_status == 503);
  CHECK(away.answered == 0);
  CHECK(away.reads >= 3);
  CHECK(away.reads <= 24);
}

TEST_CASE("nothing is begun while a server recovers") {
  const Outcome outcome = schedule(12, std::deque<long>(6, 503), {6, 4, 8});
  REQUIRE(outcome.begun_when_failed.size() == 6);
  for (const int begun : outcome.begun_when_failed) CHECK(begun == 6);
  CHECK(outcome.answered == 12);
}

TEST_CASE("a pause that a server asks for is told, once for all that it holds") {
  std::vector<std::chrono::milliseconds> told;
  ListTransport transport({503, 503, 503});
  transport.retry_after = "60";
  ManualClock clock;
  Backoff backoff(100ms, 1000ms, 1);
  int given = 0;
  ScheduleHooks hooks;
  hooks.next = [&]() -> std::optional<Job> {
    if (given++ == 3) return std::nullopt;
    Job job;
    job.record = std::make_shared<Record>();
    job.prompt = std::make_shared<Prompt>();
    return job;
  };
  hooks.answered = [](const Job&, const Answer&) {};
  hooks.failed = [](const Job&, const Failure&, int, bool) {};
  hooks.asked_to_wait = [&](std::chrono::milliseconds pause) { told.push_back(pause); };
  hooks.stop = [] { return 0; };
  hooks.idle = [] {};
  hooks.server_ended = []() -> std::optional<std::string> { return std::nullopt; };
  const auto end =
      run_schedule(OneExchange(), transport, std::vector<Endpoint>(1), clock, backoff, {3, 4, 8}, hooks);
  CHECK(end.kind == ScheduleEnd::Kind::done);
  // The clock stands still while the three fail: they ask for the same minute.
  CHECK(told == std::vector<std::chrono::milliseconds>{60s});
}

TEST_CASE("jobs are left when every one under way has failed for good: they are asked, too") {
  const Outcome outcome = schedule(6, {500, 500, 200}, {2, 1, 8});
  CHECK(outcome.end.kind == ScheduleEnd::Kind::done);
  CHECK(outcome.final_failures == 2);
  CHECK(outcome.answered == 4);
}

TEST_CASE("an answer that somebody else gave is a failure that stops the schedule") {
  const Outcome outcome = schedule(20, {}, {1, 4, 8}, {}, {}, 3);
  CHECK(outcome.end.kind == ScheduleEnd::Kind::refused);
  CHECK(outcome.end.reason == "another model");
  CHECK(outcome.answered == 2);
  CHECK(outcome.failures == std::vector<std::string>{"2 identity_changed 1 final"});
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
