#pragma once
// The process between preval and a server. A server that outlives a killed preval would hold the
// port and gigabytes; preval cannot clean up after a SIGKILL, so somebody else has to.
#include <cstdint>

namespace preval {

/// What the guardian tells through its pipe, in this order: started or not_started, then ended.
struct GuardianReport {
  enum Kind : std::int32_t { started, not_started, ended } kind;
  /// started: process id of the server, which leads its own group; not_started: errno of exec;
  /// ended: wait status.
  std::int32_t value;
};

/// The descriptors that a guardian works with; all others it closes.
struct GuardianPipes {
  int lifeline;  ///< read end; nothing is ever written: its end of file means that preval is gone
  int reports;   ///< write end
  int log;       ///< stdout and stderr of the server
};

/// Runs in a forked child of preval and never returns: starts `arguments` with the environment
/// `environment` (both ended by a null pointer) in a session without terminal and in a group of its
/// own, and ends that group (SIGTERM, SIGKILL 5 s later) when the lifeline ends or the server
/// itself has ended. Signals that a terminal sends do not reach it. Uses nothing that is unsafe
/// behind a fork.
[[noreturn]] void guard(const GuardianPipes& pipes, char* const* arguments,
                        char* const* environment);

}  // namespace preval
