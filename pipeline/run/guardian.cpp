#include "run/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string>

namespace preval {

namespace {

constexpr int kPatienceMs = 5000;  // between SIGTERM and SIGKILL
constexpr int kStepMs = 20;
constexpr std::array kTerminalSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP};

void set_signals(void (*action)(int)) {
  struct sigaction setting = {};
  setting.sa_handler = action;
  for (const int signal : kTerminalSignals) sigaction(signal, &setting, nullptr);
}

/// Closes everything from 3 on that is not one of the three.
void close_others(const GuardianPipes& pipes) {
  std::array<int, 3> kept{pipes.lifeline, pipes.reports, pipes.log};
  std::sort(kept.begin(), kept.end());
  unsigned first = 3;
  for (const int descriptor : kept) {
    const auto next = static_cast<unsigned>(descriptor);
    if (next > first) close_range(first, next - 1, 0);
    first = std::max(first, next + 1);
  }
  close_range(first, ~0U, 0);
}

[[noreturn]] void become_server(char* const* arguments, char* const* environment, int problem) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // should somebody kill even the guardian
  set_signals(SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(arguments[0], arguments, environment);
  const std::int32_t reason = errno;
  // If even this cannot be written, the guardian sees the exit code.
  [[maybe_unused]] const auto written = write(problem, &reason, sizeof reason);
  _exit(127);
}

class Guardian {
 public:
  Guardian(const GuardianPipes& pipes, int child_signals)
      : pipes_(pipes), signals_(child_signals) {}

  /// errno of exec, or 0.
  std::int32_t start(char* const* arguments, char* const* environment) {
    int problem[2];
    if (pipe2(problem, O_CLOEXEC) != 0) return errno;
    server_ = fork();
    if (server_ < 0) return errno;
    if (server_ == 0) become_server(arguments, environment, problem[1]);
    setpgid(server_, server_);  // both sides do it, so that no one is early
    close(problem[1]);
    std::int32_t reason = 0;
    const bool failed = read(problem[0], &reason, sizeof reason) == sizeof reason;
    close(problem[0]);
    return failed ? reason : 0;
  }

  void report(GuardianReport::Kind kind, std::int32_t value) const {
    const GuardianReport words{kind, value};
    [[maybe_unused]] const auto written = write(pipes_.reports, &words, sizeof words);
  }

  void watch() {
    while (!ended_) {
      std::array<pollfd, 2> waiting{pollfd{pipes_.lifeline, POLLIN, 0},
                                    pollfd{signals_, POLLIN, 0}};
      if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) break;
      if (waiting[1].revents != 0) reap();
      if (waiting[0].revents != 0) break;
    }
    end_group();
    end_orphans();
  }

  std::int32_t server() const { return server_; }

 private:
  void reap() {
    signalfd_siginfo told;
    while (read(signals_, &told, sizeof told) == sizeof told) {
    }
    int status = 0;
    for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
      if (pid != server_) continue;
      ended_ = true;
      report(GuardianReport::ended, status);
    }
  }

  bool group_is_gone() {
    reap();
    return kill(-server_, 0) != 0 && errno == ESRCH;
  }

  bool gone_within(int milliseconds) {
    for (int waited = 0; waited < milliseconds; waited += kStepMs) {
      if (group_is_gone()) return true;
      pollfd waiting{signals_, POLLIN, 0};
      poll(&waiting, 1, kStepMs);
    }
    return group_is_gone();
  }

  void end_group() {
    if (group_is_gone()) return;
    kill(-server_, SIGTERM);
    kill(-server_, SIGCONT);  // a stopped process hears nothing but this
    if (gone_within(kPatienceMs)) return;
    kill(-server_, SIGKILL);
    gone_within(kPatienceMs);
  }

  /// What has left the group, for a session of its own, comes to the guardian when its parent ends;
  /// so do its children in turn.
  void end_orphans() {
    for (int waited = 0; waited < kPatienceMs; waited += kStepMs) {
      reap();
      const std::string left = children();
      if (left.empty()) return;
      std::size_t at = 0;
      while (at < left.size()) {
        const std::size_t end = std::min(left.find(' ', at), left.size());
        pid_t pid = 0;
        for (std::size_t i = at; i < end; ++i) pid = pid * 10 + (left[i] - '0');
        if (pid > 1) kill(pid, SIGKILL);
        at = end + 1;
      }
      poll(nullptr, 0, kStepMs);
    }
  }

  /// Process ids with spaces between them, as the kernel lists them; empty when it does not.
  static std::string children() {
    const int list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (list < 0) return {};
    std::string text;
    std::array<char, 512> block;
    for (ssize_t got = 0; (got = read(list, block.data(), block.size())) > 0;)
      text.append(block.data(), static_cast<std::size_t>(got));
    close(list);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.pop_back();
    return text;
  }

  GuardianPipes pipes_;
  int signals_;
  pid_t server_ = -1;
  bool ended_ = false;
};

}  // namespace

void guard(const GuardianPipes& pipes, char* const* arguments, char* const* environment) {
  setsid();
  prctl(PR_SET_NAME, "preval-guardian");
  set_signals(SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // whoever started preval may have ignored it
  close_others(pipes);
  if (const int nothing = open("/dev/null", O_RDONLY); nothing >= 0) {
    dup2(nothing, STDIN_FILENO);
    close(nothing);
  }
  dup2(pipes.log, STDOUT_FILENO);
  dup2(pipes.log, STDERR_FILENO);
  prctl(PR_SET_CHILD_SUBREAPER,
        1);  // so that orphans of the group are reaped and the group can end
  sigset_t child_ends;
  sigemptyset(&child_ends);
  sigaddset(&child_ends, SIGCHLD);
  sigprocmask(SIG_SETMASK, &child_ends, nullptr);
  Guardian guardian(pipes, signalfd(-1, &child_ends, SFD_CLOEXEC | SFD_NONBLOCK));
  if (const std::int32_t reason = guardian.start(arguments, environment); reason != 0) {
    guardian.report(GuardianReport::not_started, reason);
    _exit(1);
  }
  guardian.report(GuardianReport::started, guardian.server());
  guardian.watch();
  _exit(0);
}

}  // namespace preval
