#include "run/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <list>

namespace preval {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr milliseconds kWait{50};

/// A job under way. Callbacks of the transport hold its address, so it stays put in a list.
struct Active {
  Job job;
  int attempt = 1;
  bool alone = false;      // nothing else may be in flight
  std::size_t server = 0;  // which of the endpoints
  std::unique_ptr<Dialogue<TokenPrompt>> tokenising;
  TokenPrompt tokens;
  std::unique_ptr<Dialogue<Answer>> reading;
  HttpReply last;            // without its body: for wait hints
  std::int64_t started = 0;  // which of all attempts it is, in the order they were begun
};

struct Waiting {
  Job job;
  int attempt = 1;
  bool alone = false;
  nanoseconds due{0};
};

class Schedule {
 public:
  Schedule(const Backend& backend, Transport& transport, const std::vector<Endpoint>& endpoints,
           Clock& clock, Backoff& backoff, const ScheduleLimits& limits, const ScheduleHooks& hooks)
      : backend_(backend),
        transport_(transport),
        endpoints_(endpoints),
        busy_(endpoints.size()),
        clock_(clock),
        backoff_(backoff),
        limits_(limits),
        hooks_(hooks) {}

  ScheduleEnd run() {
    while (true) {
      if (hooks_.stop() > 0) end(ScheduleEnd::Kind::interrupted, "stopped by the user");
      if (const auto how = hooks_.server_ended()) end(ScheduleEnd::Kind::server_ended, *how);
      if (!ended()) fill();
      if (active_.empty()) {
        if (ended() || (waiting_.empty() && exhausted_)) break;
        pause();
      } else if (hooks_.stop() > 1) {
        break;  // what is in flight is dropped with the transport
      } else {
        transport_.wait(kWait);
      }
      hooks_.idle();
    }
    return end_;
  }

 private:
  bool ended() const { return end_.kind != ScheduleEnd::Kind::done; }
  void end(ScheduleEnd::Kind kind, const std::string& reason,
           const std::optional<Failure>& failure = {}) {
    if (!ended()) end_ = {kind, reason, failure};
  }

  /// The waiting job whose time has come; one that must be alone goes first, since nothing new is
  /// begun until it had its turn.
  std::list<Waiting>::iterator due_job() {
    const auto is_due = [now = clock_.monotonic()](const Waiting& waiting) {
      return waiting.due <= now;
    };
    const auto alone = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
      return waiting.alone && is_due(waiting);
    });
    return alone != waiting_.end() ? alone : std::find_if(waiting_.begin(), waiting_.end(), is_due);
  }

  /// Nothing is begun before: a server in trouble is given the time that the failed try waits, and
  /// one that asked for a pause gets it from all reads, not from the refused one alone.
  nanoseconds held_until() const { return std::max(recovery_, pause_asked_for_); }

  void fill() {
    const std::size_t most = static_cast<std::size_t>(limits_.concurrency) * endpoints_.size();
    while (!ended() && active_.size() < most) {
      if (clock_.monotonic() < held_until()) return;
      if (!active_.empty() && active_.front().alone) return;
      const auto due = due_job();
      if (due != waiting_.end()) {
        if (due->alone && !active_.empty()) return;
        const Waiting waiting = std::move(*due);
        waiting_.erase(due);
        start(waiting.job, waiting.attempt, waiting.alone);
      } else if (!exhausted_) {
        std::optional<Job> job = hooks_.next();
        if (job) {
          start(std::move(*job), 1, false);
        } else {
          exhausted_ = true;
        }
      } else {
        return;
      }
      // A backend without a server answers at once: the store must get its turn all the same.
      if (active_.empty()) hooks_.idle();
      if (hooks_.stop() > 0) return;
    }
  }

  void pause() {
    nanoseconds until = held_until();
    if (exhausted_ && !waiting_.empty()) {
      const auto first =
          std::min_element(waiting_.begin(), waiting_.end(),
                           [](const auto& a, const auto& b) { return a.due < b.due; });
      until = std::max(until, first->due);
    }
    clock_.sleep(std::clamp<nanoseconds>(until - clock_.monotonic(), milliseconds(1), kWait));
  }

  void start(Job job, int attempt, bool alone) {
    if (hooks_.withheld) {
      if (const auto why = hooks_.withheld(job)) return end(ScheduleEnd::Kind::withheld, *why);
    }
    active_.emplace_back();
    const auto at = std::prev(active_.end());
    at->job = std::move(job);
    at->attempt = attempt;
    at->alone = alone;
    at->started = ++attempts_begun_;
    const auto idlest = std::min_element(busy_.begin(), busy_.end());
    at->server = static_cast<std::size_t>(idlest - busy_.begin());
    ++*idlest;
    if (hooks_.known_tokens) {
      if (auto known = hooks_.known_tokens(at->job)) {
        at->tokens = std::move(*known);
        return begin_reading(at);
      }
    }
    at->tokenising = backend_.tokenise(at->job.item());
    tokenised(at, at->tokenising->begin());
  }

  using Place = std::list<Active>::iterator;

  void tokenised(Place at, Step<TokenPrompt> step) {
    if (auto* request = std::get_if<HttpRequest>(&step)) {
      request->repeat = at->job.repeat;
      transport_.start(endpoints_[at->server], std::move(*request), [this, at](HttpReply reply) {
        remember(at, reply);
        tokenised(at, at->tokenising->reply(reply));
      });
    } else if (auto* failure = std::get_if<Failure>(&step)) {
      failed(at, *failure);
    } else {
      at->tokens = std::get<TokenPrompt>(std::move(step));
      if (hooks_.tokenised) hooks_.tokenised(at->job, at->tokens);
      begin_reading(at);
    }
  }

  void begin_reading(Place at) {
    at->reading = backend_.read(at->job.item(), at->tokens, {});
    read(at, at->reading->begin());
  }

  void finish(Place at) {
    --busy_[at->server];
    active_.erase(at);
  }

  /// What a read makes its server read: the tokens where they are known, else what the prompt's
  /// bytes have come to at most so far.
  std::int64_t tokens_of(const Active& active) const {
    if (!active.tokens.tokens.empty()) return std::ssize(active.tokens.tokens);
    const auto bytes = static_cast<double>(active.job.prompt->bytes());
    return static_cast<std::int64_t>(std::ceil(bytes * tokens_per_byte_));
  }

  void learn_density(const Active& active, const Answer& answer) {
    const auto bytes = static_cast<double>(active.job.prompt->bytes());
    if (answer.prompt_tokens <= 0 || bytes == 0) return;
    const double density = answer.prompt_tokens / bytes;
    tokens_per_byte_ = density_known_ ? std::max(tokens_per_byte_, density) : density;
    density_known_ = true;
  }

  void read(Place at, Step<Answer> step) {
    if (auto* request = std::get_if<HttpRequest>(&step)) {
      request->repeat = at->job.repeat;
      request->tokens = tokens_of(*at);
      transport_.start(endpoints_[at->server], std::move(*request), [this, at](HttpReply reply) {
        remember(at, reply);
        read(at, at->reading->reply(reply));
      });
    } else if (auto* failure = std::get_if<Failure>(&step)) {
      failed(at, *failure);
    } else {
      const Answer& answer = std::get<Answer>(step);
      if (hooks_.refusal) {
        if (const auto refusal = hooks_.refusal(answer)) return failed(at, *refusal);
      }
      server_failures_ = 0;
      recovery_ = nanoseconds(0);
      learn_density(*at, answer);
      hooks_.answered(at->job, answer);
      finish(at);
    }
  }

  void remember(Place at, const HttpReply& reply) {
    at->last.status = reply.status;
    at->last.retry_after = reply.retry_after;
    at->last.retry_after_ms = reply.retry_after_ms;
  }

  /// Attempts that were under way when a failure was counted saw the same trouble, and are not
  /// counted again: however many are in flight, the breaker opens only after new tries failed.
  void count(const Active& attempt, const Failure& failure, nanoseconds next_try) {
    if (!failure.server) {
      server_failures_ = 0;
      recovery_ = nanoseconds(0);
    } else if (attempt.started > counted_until_) {
      ++server_failures_;
      counted_until_ = attempts_begun_;
      recovery_ = next_try;
    }
  }

  void failed(Place at, const Failure& failure) {
    const nanoseconds now = clock_.monotonic();
    const nanoseconds due = now + backoff_.delay(at->attempt, at->last, clock_);
    if (const auto hint = wait_hint(at->last, clock_)) {
      const bool longer = now + *hint > pause_asked_for_;
      pause_asked_for_ = std::max<nanoseconds>(pause_asked_for_, now + *hint);
      if (longer && hooks_.asked_to_wait) hooks_.asked_to_wait(*hint);
    }
    count(*at, failure, due);
    const bool tried_alone = failure.alone && at->alone;
    const bool final = !failure.retry || tried_alone || at->attempt >= limits_.attempts;
    hooks_.failed(at->job, failure, at->attempt, final);
    if (!final) {
      waiting_.push_back({std::move(at->job), at->attempt + 1, failure.alone || at->alone, due});
    }
    finish(at);
    if (stops_arm(failure)) {
      end(ScheduleEnd::Kind::refused, failure.message, failure);
    } else if (server_failures_ >= limits_.breaker) {
      end(ScheduleEnd::Kind::breaker,
          fmt::format("{} server failures in a row, the last one: {}", server_failures_,
                      failure.message),
          failure);
    }
  }

  const Backend& backend_;
  Transport& transport_;
  const std::vector<Endpoint>& endpoints_;
  std::vector<std::size_t> busy_;  // in flight, per endpoint
  double tokens_per_byte_ = 1;     // the most that an answer has shown; before the first, a guess
  bool density_known_ = false;
  Clock& clock_;
  Backoff& backoff_;
  const ScheduleLimits& limits_;
  const ScheduleHooks& hooks_;

  std::list<Active> active_;
  std::list<Waiting> waiting_;
  int server_failures_ = 0;
  std::int64_t attempts_begun_ = 0, counted_until_ = 0;
  nanoseconds recovery_{0}, pause_asked_for_{0};
  bool exhausted_ = false;
  ScheduleEnd end_;
};

}  // namespace

ScheduleEnd run_schedule(const Backend& backend, Transport& transport,
                         const std::vector<Endpoint>& endpoints, Clock& clock, Backoff& backoff,
                         const ScheduleLimits& limits, const ScheduleHooks& hooks) {
  return Schedule(backend, transport, endpoints, clock, backoff, limits, hooks).run();
}

}  // namespace preval
