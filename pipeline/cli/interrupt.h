#pragma once
// Ctrl-C, once: finish what is in flight; twice: stop. SIGTERM counts as one Ctrl-C.
#include "run/events.h"

namespace preval {

/// Installs the handlers for its lifetime and counts.
class SignalInterrupt final : public Interrupt {
 public:
  SignalInterrupt();
  ~SignalInterrupt() override;
  SignalInterrupt(const SignalInterrupt&) = delete;
  SignalInterrupt& operator=(const SignalInterrupt&) = delete;

  int level() const override;
};

}  // namespace preval
