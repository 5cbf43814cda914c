#pragma once
// When to ask again. Which failures are worth it is the protocol's word (Failure::retry, after the
// table in backend/transport.h); how long to wait, and when to stop believing in a server, is here.
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/python_random.h"

namespace preval {

/// Capped exponential back-off with full jitter: before try n + 1 a uniform draw from
/// [0, min(cap, base * 2^(n-1))], but never less than what the server asked for.
class Backoff {
 public:
  /// That of all requests: half a second, doubled up to half a minute. Its draws are its own:
  /// runs that were broken off together must not come back together.
  Backoff();
  Backoff(std::chrono::milliseconds base, std::chrono::milliseconds cap, std::uint64_t seed)
      : base_(base), cap_(cap), random_(seed) {}

  /// `attempt` tries have failed (1, 2, …).
  std::chrono::milliseconds delay(int attempt, const HttpReply& last, Clock& clock);

 private:
  std::chrono::milliseconds base_, cap_;
  PythonRandom random_;
};

/// What the server asked for: `retry-after-ms`, then `retry-after` in seconds or as an HTTP date.
/// Nothing when it said nothing that can be read; at most five minutes.
std::optional<std::chrono::milliseconds> wait_hint(const HttpReply& reply, Clock& clock);

/// Whether a failure says that no other read of this arm can succeed: wrong key (401, 403), no such
/// model or path (404), or another model answers than the one that was asked (identity_changed).
bool stops_arm(const Failure& failure);

/// One exchange, given up when the user says so (throws interrupted): nothing of it is worth
/// finishing.
HttpReply exchange_unless(Transport& transport, const Endpoint& endpoint,
                          const HttpRequest& request, const std::function<bool()>& interrupted);

/// Sleeps, and throws interrupted as soon as the user says so.
void sleep_unless(Clock& clock, std::chrono::nanoseconds length,
                  const std::function<bool()>& interrupted);

/// Makes one exchange after the other and asks again, `attempts` times in all, where a reply says
/// that this server is busy or cannot be reached now. Not after a timeout, and after a 500
/// only once: to a probe, these may be answers. `asked_again` hears of every failure that is not
/// the last word. Throws interrupted. Everything that is passed by reference must outlive it.
Ask patient_asker(Transport& transport, const Endpoint& endpoint, Clock& clock, Backoff backoff,
                  int attempts, std::function<bool()> interrupted,
                  std::function<void(const Failure&, int attempt)> asked_again = {});

}  // namespace preval
