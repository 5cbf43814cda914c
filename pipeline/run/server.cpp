#include "run/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "backend/errors.h"
#include "base/error.h"
#include "base/placeholders.h"
#include "base/text.h"
#include "run/guardian.h"
#include "run/listener.h"
#include "run/retry.h"

namespace preval {

namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstPoll{50}, kLongestPoll{1000};
constexpr double kHealthPatience = 2;  // seconds for one health check
// A server that is being started opens its port late; a mistyped address never does.
constexpr duration<double> kLongestRefusal{30};
constexpr milliseconds kShortStep{10};  // between two looks at a short command
constexpr milliseconds kReaping{1000};  // for the kernel to end what was killed
constexpr std::size_t kMostKept = 64 * 1024, kBlock = 16 * 1024;
// A pipe holds 1 MiB at most: after so many blocks all that an ended command wrote has been taken.
constexpr int kBlocksOfPipe = 64;
constexpr std::streamoff kLogTail = 64 * 1024;

[[noreturn]] void system_error(const std::string& what) {
  throw Error(ErrorKind::io, fmt::format("{}: {}", what, std::strerror(errno)));
}

/// An open descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void reset() {
    if (number_ >= 0) close(release());
  }

 private:
  int number_;
};

struct Pipe {
  Descriptor read_end, write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) system_error("cannot make a pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::vector<char*> argument_pointers(const std::vector<std::string>& command) {
  std::vector<char*> pointers;
  for (const std::string& argument : command)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// The environment without some variables: keys are for preval alone. Points into `environ`.
std::vector<char*> environment_without(const std::vector<std::string>& hidden) {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (std::find(hidden.begin(), hidden.end(), name) == hidden.end()) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

std::string words_for(int status) {
  if (WIFEXITED(status)) return fmt::format("exit code {}", WEXITSTATUS(status));
  const char* name = sigdescr_np(WTERMSIG(status));
  return fmt::format("signal {} ({})", WTERMSIG(status), name == nullptr ? "unknown" : name);
}

void check_not_empty(const std::vector<std::string>& command) {
  if (command.empty()) throw Error(ErrorKind::usage, "the server command is empty");
}

Error cannot_start(const std::string& program, int reason) {
  return Error(ErrorKind::backend,
               fmt::format("cannot start {}: {}", program, std::strerror(reason)),
               "the command stands in the plan, under /backends/…/server");
}

int port_of(const std::string& url) {
  const std::size_t colon = url.rfind(':');
  const auto port = to_integer(std::string_view(url).substr(colon + 1));
  return port ? static_cast<int>(*port) : 80;
}

/// What one stream of a short command said: the first 64 KiB of it.
struct Heard {
  Descriptor end;
  std::string text;
};

/// Takes what has come on either stream after at most `patience`; says whether anything had. More
/// than is kept is read and forgotten, so that the command does not stand still.
bool take_what_comes(std::array<Heard, 2>& streams, milliseconds patience) {
  std::array<pollfd, 2> waiting{pollfd{streams[0].end.get(), POLLIN, 0},
                                pollfd{streams[1].end.get(), POLLIN, 0}};
  if (poll(waiting.data(), waiting.size(), static_cast<int>(patience.count())) <= 0) return false;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (waiting[i].revents == 0) continue;
    std::array<char, kBlock> block;
    const ssize_t got = read(streams[i].end.get(), block.data(), block.size());
    if (got > 0) {
      const std::size_t room = kMostKept - streams[i].text.size();
      streams[i].text.append(block.data(), std::min(static_cast<std::size_t>(got), room));
    }
    if (got == 0 || (got < 0 && errno != EINTR)) streams[i].end.reset();
  }
  return true;
}

/// Whether a child has ended. It stays a zombie, so that its number still means its group.
bool has_ended(pid_t pid) {
  siginfo_t facts = {};
  const int found = waitid(P_PID, static_cast<id_t>(pid), &facts, WEXITED | WNOHANG | WNOWAIT);
  return found == 0 ? facts.si_pid == pid : errno == ECHILD;
}

/// The status of a child that has ended or was killed.
int reap(pid_t pid) {
  int status = 0;
  for (milliseconds waited{0}; waited < kReaping; waited += kShortStep) {
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid || (got < 0 && errno != EINTR)) break;
    poll(nullptr, 0, static_cast<int>(kShortStep.count()));
  }
  return status;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

int free_port() {
  const Descriptor socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (socket_.get() < 0 ||
      bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    system_error("cannot find a free port on 127.0.0.1");
  }
  return ntohs(address.sin_port);
}

std::vector<std::string> fill_command(const std::vector<std::string>& command,
                                      const std::map<std::string, std::string>& values) {
  Placeholders known;
  for (const auto& [name, value] : values) known.emplace_back(name, value);
  std::vector<std::string> filled;
  for (const std::string& part : command) {
    filled.push_back(fill_placeholders(part, known, "server command"));
  }
  return filled;
}

std::string first_line_of(const std::vector<std::string>& command,
                          const std::vector<std::string>& hidden, milliseconds limit) {
  check_not_empty(command);
  Pipe out = make_pipe(), err = make_pipe();
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out.write_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.write_end.get(), STDERR_FILENO);
  posix_spawnattr_t settings;
  posix_spawnattr_init(&settings);
  posix_spawnattr_setflags(&settings, POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int reason =
      posix_spawnp(&pid, command[0].c_str(), &files, &settings, argument_pointers(command).data(),
                   environment_without(hidden).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&settings);
  if (reason != 0) throw cannot_start(command[0], reason);
  out.write_end.reset();
  err.write_end.reset();
  std::array<Heard, 2> said{Heard{std::move(out.read_end), {}}, Heard{std::move(err.read_end), {}}};
  const auto until = steady_clock::now() + limit;
  bool ended = false;
  while (!(ended = has_ended(pid)) && steady_clock::now() < until) {
    take_what_comes(said, kShortStep);
  }
  // A child that it left behind may hold the pipes for ever: what counts is that the command ended.
  kill(-pid, SIGKILL);
  for (int block = 0; ended && block < kBlocksOfPipe; ++block) {
    if (!take_what_comes(said, milliseconds(0))) break;
  }
  const int status = reap(pid);
  const std::string called = join(command, " ");
  if (!ended) {
    throw Error(ErrorKind::backend, fmt::format("{} does not end within {} s", called,
                                                std::chrono::duration<double>(limit).count()));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string words = last_line(std::move(said[1].text));
    throw Error(ErrorKind::backend, fmt::format("{}: {}{}{}", called, words_for(status),
                                                words.empty() ? "" : ": ", words));
  }
  std::string line = said[0].text.substr(0, said[0].text.find('\n'));
  if (!line.empty() && line.back() == '\r') line.pop_back();
  line = printable(line);
  if (line.empty()) throw Error(ErrorKind::backend, fmt::format("{} prints nothing", called));
  return line;
}

Server::Server(const std::vector<std::string>& command, const std::filesystem::path& log,
               const std::vector<std::string>& hidden)
    : log_(log) {
  check_not_empty(command);
  if (!log.parent_path().empty()) {
    std::error_code failed;
    std::filesystem::create_directories(log.parent_path(), failed);
    if (failed) {
      throw Error(ErrorKind::io, fmt::format("cannot make the folder {}: {}",
                                             log.parent_path().string(), failed.message()));
    }
  }
  const Descriptor log_file(
      open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (log_file.get() < 0)
    system_error(fmt::format("cannot write the server's log {}", log.string()));
  Pipe lifeline = make_pipe(), reports = make_pipe();
  std::vector<char*> arguments = argument_pointers(command);
  std::vector<char*> environment = environment_without(hidden);
  guardian_ = fork();
  if (guardian_ < 0) system_error("cannot start a process");
  if (guardian_ == 0) {
    guard({lifeline.read_end.get(), reports.write_end.get(), log_file.get()}, arguments.data(),
          environment.data());
  }
  reports.write_end.reset();
  lifeline_ = lifeline.write_end.release();
  reports_ = reports.read_end.release();
  while (group_ < 0 && !ended_) listen();
  if (group_ < 0) {
    const std::string reason = how_;
    stop();
    throw Error(ErrorKind::backend, fmt::format("cannot start {}: {}", command[0], reason),
                "the command stands in the plan, under /backends/…/server");
  }
  fcntl(reports_, F_SETFL, O_NONBLOCK);
}

Server::~Server() { stop(); }

/// Takes the guardian's next report, if there is one.
void Server::listen() {
  if (reports_ < 0 || ended_) return;
  GuardianReport report{};
  ssize_t got = -1;
  do {
    got = read(reports_, &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return;
  if (got != sizeof report) {
    ended_ = true;
    how_ = "its guardian process was killed, and the server with it";
  } else if (report.kind == GuardianReport::started) {
    group_ = report.value;
  } else {
    ended_ = true;
    how_ = report.kind == GuardianReport::ended ? words_for(report.value)
                                                : std::strerror(report.value);
  }
}

bool Server::running() {
  listen();
  return !ended_;
}

void Server::stop() {
  if (guardian_ < 0) return;
  close(std::exchange(lifeline_, -1));
  while (waitpid(guardian_, nullptr, 0) < 0 && errno == EINTR) {
  }
  guardian_ = -1;
  listen();
  close(std::exchange(reports_, -1));
}

std::string Server::how_it_ended() { return running() ? std::string() : how_; }

std::string Server::last_lines(int count) const {
  std::ifstream file(log_, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  const std::streamoff from = std::max<std::streamoff>(0, size - kLogTail);
  std::string text(static_cast<std::size_t>(size - from), '\0');
  file.seekg(from);
  file.read(text.data(), size - from);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t start = text.size();
  for (int line = 0; line < count && start != std::string::npos && start > 0; ++line) {
    start = text.rfind('\n', start - 1);
  }
  return printable(start == std::string::npos || start == 0 ? text : text.substr(start + 1));
}

std::string Server::parting_words() const {
  const std::string lines = last_lines();
  return lines.empty() ? "; it wrote nothing" : "; its last lines:\n" + lines;
}

double wait_until_ready(Server& server, Transport& transport, const Endpoint& endpoint,
                        const HttpRequest& health, Clock& clock, duration<double> limit,
                        const std::function<bool()>& interrupted) {
  const auto start = clock.monotonic();
  const auto elapsed = [&] { return duration<double>(clock.monotonic() - start); };
  const std::string log_hint = fmt::format("the whole log: {}", server.log().string());
  Endpoint impatient = endpoint;
  impatient.timeouts = {kHealthPatience, kHealthPatience, 2 * kHealthPatience};
  milliseconds pause = kFirstPoll;
  while (true) {
    if (interrupted()) throw Error(ErrorKind::interrupted, "stopped while the server was starting");
    if (!server.running()) {
      throw Error(ErrorKind::backend,
                  fmt::format("the server ended before it was ready ({}){}", server.how_it_ended(),
                              server.parting_words()),
                  log_hint);
    }
    const HttpReply reply = exchange_unless(transport, impatient, health, interrupted);
    const bool answered = reply.transport == TransportStatus::ok && reply.status == 200;
    if (answered &&
        who_listens(port_of(endpoint.base_url), server.group()) == Listener::somebody_else) {
      throw Error(
          ErrorKind::backend,
          fmt::format("{} is answered by a process that preval did not start: the port is in use",
                      endpoint.base_url),
          "stop that process, or let preval choose the port with {port}");
    }
    if (answered && server.running()) return elapsed().count();
    if (elapsed() >= limit) {
      const auto failure = transport_failure(reply);
      throw Error(
          ErrorKind::backend,
          fmt::format("the server is not ready after {} ({}){}", human_duration(elapsed().count()),
                      failure ? failure->message : "it ended", server.parting_words()),
          log_hint);
    }
    clock.sleep(pause);
    pause = std::min(kLongestPoll, pause + pause / 4);
  }
}

double wait_until_reachable(Transport& transport, const Endpoint& endpoint,
                            const HttpRequest& health, Clock& clock, duration<double> limit,
                            const std::function<bool()>& interrupted) {
  const auto start = clock.monotonic();
  const auto elapsed = [&] { return duration<double>(clock.monotonic() - start); };
  milliseconds pause = kFirstPoll;
  while (true) {
    Endpoint impatient = endpoint;
    const double left = std::max((limit - elapsed()).count(), kHealthPatience);
    impatient.timeouts.first_byte_s = std::min(endpoint.timeouts.first_byte_s, left);
    impatient.timeouts.total_s = std::min(endpoint.timeouts.total_s, left);
    const HttpReply reply = exchange_unless(transport, impatient, health, interrupted);
    const std::optional<Failure> failure = transport_failure(reply);
    if (!failure || !failure->retry) return elapsed().count();
    const bool answers = reply.transport == TransportStatus::ok;
    const duration<double> most = answers ? limit : std::min(limit, kLongestRefusal);
    if (elapsed() >= most) {
      throw Error(ErrorKind::backend,
                  fmt::format("{} is not ready after {}: {}", endpoint.base_url,
                              human_duration(elapsed().count()), failure->message),
                  answers ? "the plan's boot_limit_s says how long it may take"
                          : "start the server first, or correct the plan's url");
    }
    // What the server asks for is kept, as far as it may still take.
    const std::chrono::nanoseconds asked = wait_hint(reply, clock).value_or(milliseconds(0));
    const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(most - elapsed());
    sleep_unless(clock, std::max<std::chrono::nanoseconds>(pause, std::min(asked, rest)),
                 interrupted);
    pause = std::min(kLongestPoll, pause + pause / 4);
  }
}

}  // namespace preval
