#pragma once
// A server that preval starts, watches, logs and stops: a child in a process group of its own, with
// a guardian between that ends the whole group on every way out, a SIGKILL of preval included.
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/clock.h"

namespace preval {

/// A port that nobody listens on now, on 127.0.0.1.
int free_port();

/// Replaces {name} by its value; an unknown placeholder is a usage error that names it and the
/// known ones. "{{" and "}}" stand for braces.
std::vector<std::string> fill_command(const std::vector<std::string>& command,
                                      const std::map<std::string, std::string>& values);

/// Standard output of a short command, first line, cut at 64 KiB. The command does not see the
/// environment variables `hidden`. When it has ended, and after `limit` in any case, its process
/// group is killed; what has left that group is not waited for. Throws backend errors.
std::string first_line_of(const std::vector<std::string>& command,
                          const std::vector<std::string>& hidden = {},
                          std::chrono::milliseconds limit = std::chrono::seconds(10));

class Server {
 public:
  /// Starts the command with stdout and stderr in `log`. Throws a backend error when it cannot be
  /// executed at all (no such program). The server does not see the environment variables `hidden`.
  Server(const std::vector<std::string>& command, const std::filesystem::path& log,
         const std::vector<std::string>& hidden = {});
  /// SIGTERM to the group, SIGKILL after 5 s.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  bool running();
  void stop();
  /// "exit code 1", "signal 9 (Killed)"; empty while it runs.
  std::string how_it_ended();
  /// The process group of the server.
  int group() const { return group_; }
  /// The last lines of the log, for messages.
  std::string last_lines(int count = 8) const;
  /// "; its last lines: …", or that there are none.
  std::string parting_words() const;
  const std::filesystem::path& log() const { return log_; }

 private:
  void listen();

  std::filesystem::path log_;
  int guardian_ = -1;  // process id of the guardian
  int group_ = -1;
  int lifeline_ = -1;  // write end of a pipe: when it closes, the guardian ends the group
  int reports_ = -1;   // read end of a pipe: what the guardian has to say
  bool ended_ = false;
  std::string how_;
};

/// Waits until `health` is answered with 200. Throws a backend error with the last log lines when
/// the server ends first, when somebody else listens on the port, or after `limit`; returns
/// seconds.
double wait_until_ready(Server& server, Transport& transport, const Endpoint& endpoint,
                        const HttpRequest& health, Clock& clock,
                        std::chrono::duration<double> limit,
                        const std::function<bool()>& interrupted);

/// For a server that somebody else runs: waits while nobody listens (at most 30 s, and never longer
/// than `limit`) and while the server says that it is not ready yet (at most `limit`). Any other
/// answer ends the wait: whether it is a good one, identity and probe will say. Returns seconds;
/// throws backend when the time is over.
double wait_until_reachable(Transport& transport, const Endpoint& endpoint,
                            const HttpRequest& health, Clock& clock,
                            std::chrono::duration<double> limit,
                            const std::function<bool()>& interrupted);

}  // namespace preval
