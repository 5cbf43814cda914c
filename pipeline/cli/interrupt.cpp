#include "cli/interrupt.h"

#include <csignal>

namespace preval {

namespace {

// A signal handler can reach nothing but a variable like this one.
volatile std::sig_atomic_t asked = 0;

void count(int) {
  const int before = asked;
  asked = before + 1;
}

void handle_with(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

SignalInterrupt::SignalInterrupt() {
  asked = 0;
  handle_with(count);
}

SignalInterrupt::~SignalInterrupt() { handle_with(SIG_DFL); }

int SignalInterrupt::level() const { return asked; }

}  // namespace preval
