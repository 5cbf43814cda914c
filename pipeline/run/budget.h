#pragma once
// What reading costs, and whether there is enough left for one more read. Money is what tokens cost
// and what the servers' time costs; hours are those in which servers were up for this study. Caps
// come from the call (--max-cost: of this run) and from the plan (budget: of all runs of its
// store).
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "read/prompt.h"
#include "store/store.h"

namespace preval {

/// Whether a plan says what an arm's reads cost. Answers that no server gives cost nothing.
bool has_price(const BackendSpec& backend);

/// More tokens than any server makes of a text: one per byte, and what templates add.
std::int64_t most_tokens(const Prompt& prompt);

class Budget {
 public:
  struct Caps {
    std::optional<double> usd;       ///< of this run
    std::optional<double> plan_usd;  ///< of the study
    std::optional<double> plan_hours;
  };
  /// `before`: what earlier runs of this store used.
  Budget(Clock& clock, Caps caps, const Usage& before)
      : clock_(clock), caps_(caps), before_(before) {}

  /// From now on an arm's servers are up, and cost what its plan says.
  void begin_arm(const BackendSpec& backend);
  void end_arm();

  /// Takes a read of at most so many tokens into account. Why it must not be begun, because with it
  /// a cap could be passed; nothing: it may.
  std::optional<std::string> reserve(std::int64_t tokens_at_most);
  /// A reserved read has ended, after `calls` requests for `tokens` tokens each.
  void settle(std::int64_t reserved, int calls, std::int64_t tokens, double ms);

  /// Of the arm that is being read.
  Usage arm() const;
  /// Of this run, all arms together; nothing where a price is not known.
  std::optional<double> usd() const;
  std::optional<double> cap_usd() const { return caps_.usd; }
  bool reached() const { return reached_; }

 private:
  double usd_known() const;  // what is known of it, prices that are not left out
  double usd_of_arm() const;
  double usd_of_tokens(std::int64_t tokens) const;
  double arm_seconds() const;

  Clock& clock_;
  Caps caps_;
  Usage before_;                  // other runs
  double seconds_ = 0, usd_ = 0;  // arms of this run that have ended
  bool all_known_ = true;         // whether all of those have a price
  const BackendSpec* backend_ = nullptr;
  std::chrono::nanoseconds up_since_{0};
  std::int64_t calls_ = 0, tokens_ = 0, reserved_ = 0;
  double slowest_s_ = 1;  // of the reads so far: what is in flight may take as long
  bool reached_ = false;
};

}  // namespace preval
