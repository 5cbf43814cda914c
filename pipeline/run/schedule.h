#pragma once
// N reads in flight per server, on one thread. The schedule takes jobs one by one, walks each
// through its two dialogues (tokenise, read), waits before it asks again, and hands over every
// answer and every failure as it comes. A job whose failure asks to be alone (Failure::alone) is
// tried once more when nothing else is in flight, and nothing is begun beside it. It knows nothing
// of stores, subsets or plans.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/clock.h"
#include "run/retry.h"

namespace preval {

/// One read to make. Record and prompt are shared with nobody, so memory follows the reads in
/// flight.
struct Job {
  std::shared_ptr<const Record> record;
  std::shared_ptr<const Prompt> prompt;
  std::string variant = "none";
  std::int64_t prompt_key = 0;  ///< the caller's name for the prompt
  int repeat = 0;
  std::size_t position = 0;  ///< the caller's name for the record

  Item item() const { return {record.get(), prompt.get(), variant, repeat}; }
};

struct ScheduleLimits {
  int concurrency = 1;  ///< per server
  int attempts = 4;     ///< tries per job
  /// Server failures in a row after which the schedule stops. Those of attempts that were in flight
  /// together count once, and nothing new is begun before the back-off of the first of them is
  /// over.
  int breaker = 8;
};

struct ScheduleHooks {
  std::function<std::optional<Job>()> next;  ///< nothing: no more jobs
  /// Why no attempt may be begun any more (money, time), or nothing. Asked before each; what is in
  /// flight is finished.
  std::function<std::optional<std::string>(const Job&)> withheld;
  /// The tokens of a job's prompt where they are known already: it is not tokenised then.
  std::function<std::optional<TokenPrompt>(const Job&)> known_tokens;
  std::function<void(const Job&, const TokenPrompt&)> tokenised;
  /// What is wrong with an answer that the protocol accepted; nothing (or no function): it counts.
  std::function<std::optional<Failure>(const Answer&)> refusal;
  std::function<void(const Job&, const Answer&)> answered;
  std::function<void(const Job&, const Failure&, int attempt, bool final)> failed;
  /// A server has asked for a pause of so long, which holds everything that is not in flight.
  std::function<void(std::chrono::milliseconds)> asked_to_wait;
  std::function<int()> stop;   ///< Interrupt::level()
  std::function<void()> idle;  ///< called between waits
  /// Whether the server is still there; a text says how it ended.
  std::function<std::optional<std::string>()> server_ended;
};

/// Why a schedule ended before its jobs did; empty reason: all jobs are done. `refused`: no other
/// read of this arm can succeed (stops_arm). `withheld`: as the hook says. `failure`: the last
/// straw of refused and breaker.
struct ScheduleEnd {
  enum class Kind { done, interrupted, breaker, refused, server_ended, withheld } kind = Kind::done;
  std::string reason;
  std::optional<Failure> failure;
};

/// `endpoints`: one per server, all of which answer alike; each job goes to the one that has least
/// to do, with all of its exchanges. Hooks that may be left out: refusal, withheld, known_tokens,
/// tokenised, asked_to_wait.
ScheduleEnd run_schedule(const Backend& backend, Transport& transport,
                         const std::vector<Endpoint>& endpoints, Clock& clock, Backoff& backoff,
                         const ScheduleLimits& limits, const ScheduleHooks& hooks);

}  // namespace preval
