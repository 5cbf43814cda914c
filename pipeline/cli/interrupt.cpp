#include "cli/interrupt.h"

#include <unistd.h>

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

/// Whether the terminal that hangs up is one that this run talks to.
bool has_terminal() {
  return isatty(STDIN_FILENO) == 1 || isatty(STDOUT_FILENO) == 1 || isatty(STDERR_FILENO) == 1;
}

/// A run that was left alone on purpose goes on when the session around it ends. One on a terminal
/// that was closed stops like one that was asked to.
void handle_hangup(void (*handler)(int)) {
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;  // nohup
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(SIGHUP, &action, nullptr);
}

}  // namespace

SignalInterrupt::SignalInterrupt() {
  asked = 0;
  handle_with(count);
  handle_hangup(has_terminal() ? count : SIG_IGN);
}

SignalInterrupt::~SignalInterrupt() {
  handle_with(SIG_DFL);
  handle_hangup(SIG_DFL);
}

int SignalInterrupt::level() const { return asked; }

}  // namespace preval
