// Servers are shell scripts here: what counts is that they are started, watched and ended.
#include "run/server.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <fstream>

#include "backend/socket_server.h"
#include "base/error.h"
#include "catch.h"
#include "run/listener.h"

using namespace preval;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "preval-server-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
};

std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Waits for something that another process does.
bool soon(const std::function<bool()>& condition, milliseconds limit = seconds(10)) {
  const auto until = steady_clock::now() + limit;
  while (steady_clock::now() < until) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return condition();
}

bool lives(int pid) {
  if (kill(pid, 0) != 0) return false;
  const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t state = stat.rfind(')');
  return state != std::string::npos && stat[state + 2] != 'Z';
}

int number_in(const fs::path& path) {
  const std::string text = text_of(path);
  return text.empty() || text.back() != '\n' ? -1 : std::atoi(text.c_str());
}

struct Problem {
  ErrorKind kind{};
  std::string message, hint;
};

Problem problem_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return {error.kind(), error.what(), error.hint()};
  }
  FAIL("no error");
  return {};
}

/// A transport that answers from a list, the last entry for ever.
class Replies final : public Transport {
 public:
  explicit Replies(std::deque<HttpReply> replies) : replies_(std::move(replies)) {}
  void start(const Endpoint&, HttpRequest request, Done done) override {
    CHECK(request.path == "/health");
    done_ = std::move(done);
  }
  void wait(milliseconds) override {
    const Done done = std::exchange(done_, nullptr);
    HttpReply reply = replies_.front();
    if (replies_.size() > 1) replies_.pop_front();
    if (done) done(std::move(reply));
  }
  std::size_t in_flight() const override { return done_ ? 1 : 0; }

 private:
  std::deque<HttpReply> replies_;
  Done done_;
};

HttpReply with_status(long status, std::string body = "{}") {
  HttpReply reply;
  reply.status = status;
  reply.body = std::move(body);
  return reply;
}

HttpReply refused() {
  HttpReply reply;
  reply.transport = TransportStatus::connect_failed;
  reply.transport_message = "Connection refused";
  return reply;
}

double wait_for(
    Server& server, Transport& transport, int port, Clock& clock, double limit = 60,
    const std::function<bool()>& interrupted = [] { return false; }) {
  Endpoint endpoint;
  endpoint.base_url = "http://127.0.0.1:" + std::to_string(port);
  return wait_until_ready(server, transport, endpoint, {"GET", "/health", ""}, clock,
                          std::chrono::duration<double>(limit), interrupted);
}

}  // namespace

TEST_CASE(
    "a server runs in a group of its own, without terminal and standard input, and is ended "
    "politely") {
  const Folder folder;
  Server server(shell("trap 'echo asked; exit 0' TERM; cat; echo ready; echo oops >&2; while :; do "
                      "sleep 0.01; done"),
                folder.path / "logs/server.log");
  CHECK(soon([&] { return text_of(server.log()).find("oops") != std::string::npos; }));
  CHECK(server.running());
  CHECK(server.how_it_ended().empty());
  CHECK(getpgid(server.group()) == server.group());
  CHECK(getpgid(server.group()) != getpgid(0));
  CHECK(getsid(server.group()) != getsid(0));
  server.stop();
  CHECK_FALSE(server.running());
  CHECK(server.how_it_ended() == "exit code 0");
  CHECK(text_of(server.log()).find("ready\noops\n") == 0);
  CHECK(text_of(server.log()).find("asked\n") != std::string::npos);
  CHECK_FALSE(lives(server.group()));
  server.stop();  // once more changes nothing
  CHECK(server.how_it_ended() == "exit code 0");
}

TEST_CASE("a server that ends by itself is noticed, with how it ended") {
  const Folder folder;
  const auto [script, words] = GENERATE(
      table<const char*, const char*>({{"exit 3", "exit code 3"},
                                       {"exit 0", "exit code 0"},
                                       {"kill -9 $$", "signal 9 (Killed)"},
                                       {"kill -SEGV $$", "signal 11 (Segmentation fault)"}}));
  Server server(shell(script), folder.path / "log");
  CHECK(soon([&] { return !server.running(); }));
  CHECK(server.how_it_ended() == words);
}

TEST_CASE("what a server leaves behind is ended with it") {
  const Folder folder;
  const fs::path child = folder.path / "child";
  Server server(shell("(sleep 1000 & echo $! >" + child.string() + "); exit 1"),
                folder.path / "log");
  CHECK(soon([&] { return !server.running() && number_in(child) > 0; }));
  CHECK(soon([&] { return !lives(number_in(child)); }));
  CHECK(server.how_it_ended() == "exit code 1");
}

TEST_CASE("what has left a server's group for a session of its own is ended, too") {
  const Folder folder;
  const fs::path child = folder.path / "child";
  Server server(
      shell("setsid sh -c 'sleep 1000 & echo $! >" + child.string() + "; sleep 1000' & sleep 1000"),
      folder.path / "log");
  REQUIRE(soon([&] { return number_in(child) > 0; }));
  server.stop();
  CHECK(soon([&] { return !lives(number_in(child)); }));
}

TEST_CASE("no such program, no program at all, no place for the log") {
  const Folder folder;
  const Problem missing = problem_of([&] { Server({"/no/such/program"}, folder.path / "log"); });
  CHECK(missing.kind == ErrorKind::backend);
  CHECK(missing.message == "cannot start /no/such/program: No such file or directory");
  const Problem folder_as_program =
      problem_of([&] { Server({folder.path.string()}, folder.path / "log"); });
  CHECK(folder_as_program.message.find("Permission denied") != std::string::npos);
  CHECK(problem_of([&] { Server({}, folder.path / "log"); }).kind == ErrorKind::usage);
  std::ofstream(folder.path / "file") << "x";
  CHECK(problem_of([&] { Server(shell("exit"), folder.path / "file/log"); }).kind == ErrorKind::io);
}

TEST_CASE("SIGKILL of the parent ends the server and its children") {
  const Folder folder;
  const fs::path self = folder.path / "self", child = folder.path / "child";
  const pid_t parent = fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    Server server(shell("trap '' INT HUP; echo $$ >" + self.string() + "; sleep 1000 & echo $! >" +
                        child.string() + "; while :; do sleep 1; done"),
                  folder.path / "log");
    pause();
    _exit(0);
  }
  REQUIRE(soon([&] { return number_in(self) > 0 && number_in(child) > 0; }));
  CHECK(lives(number_in(self)));
  CHECK(lives(number_in(child)));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  CHECK(soon([&] { return !lives(number_in(self)) && !lives(number_in(child)); }));
}

TEST_CASE("a server that does not listen to SIGTERM is killed") {
  const Folder folder;
  Server server(shell("trap '' TERM; echo ready; while :; do sleep 0.1; done"),
                folder.path / "log");
  REQUIRE(soon([&] { return text_of(server.log()) == "ready\n"; }));
  const auto start = steady_clock::now();
  server.stop();
  CHECK(server.how_it_ended() == "signal 9 (Killed)");
  CHECK(steady_clock::now() - start >= seconds(4));
  CHECK(steady_clock::now() - start < seconds(9));
}

TEST_CASE("signals to the group of preval do not reach the server") {
  const Folder folder;
  const fs::path child = folder.path / "child";
  const pid_t parent = fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    setpgid(0, 0);
    signal(SIGINT, SIG_IGN);
    Server server(shell("echo $$ >" + child.string() + "; while :; do sleep 0.05; done"),
                  folder.path / "log");
    kill(0, SIGINT);  // as a terminal does it on Ctrl-C
    std::this_thread::sleep_for(milliseconds(200));
    _exit(server.running() ? 0 : 1);
  }
  int status = 0;
  waitpid(parent, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(soon([&] { return !lives(number_in(child)); }));
}

TEST_CASE("last lines of a log") {
  const Folder folder;
  Server server(shell("for i in 1 2 3 4 5 6 7 8 9 10; do echo line $i; done"), folder.path / "log");
  CHECK(soon([&] { return !server.running(); }));
  CHECK(server.last_lines(2) == "line 9\nline 10");
  CHECK(server.last_lines(1) == "line 10");
  CHECK(server.last_lines().find("line 3\n") == 0);
  CHECK(server.last_lines(100).find("line 1\n") == 0);
  Server silent(shell("exit"), folder.path / "silent");
  CHECK(silent.last_lines().empty());
}

TEST_CASE("ready: polled until health is answered with 200") {
  const Folder folder;
  Server server(shell("sleep 1000"), folder.path / "log");
  ManualClock clock;
  Replies transport(
      {refused(), with_status(503, R"({"error":{"message":"Loading model"}})"), with_status(200)});
  const double waited = wait_for(server, transport, free_port(), clock);
  CHECK(waited > 0.1);
  CHECK(waited < 0.2);
}

TEST_CASE("not ready in time: the message has the server's last answer and its last lines") {
  const Folder folder;
  Server server(shell("echo loading tensors; exec sleep 1000"), folder.path / "log");
  REQUIRE(soon([&] { return !server.last_lines().empty(); }));
  ManualClock clock;
  Replies transport({with_status(503, R"({"error":{"message":"Loading model"}})")});
  const Problem problem = problem_of([&] { wait_for(server, transport, free_port(), clock, 20); });
  CHECK(problem.kind == ErrorKind::backend);
  CHECK(problem.message.find("the server is not ready after ") == 0);
  CHECK(problem.message.find("(HTTP 503: Loading model); its last lines:\nloading tensors") !=
        std::string::npos);
  CHECK(problem.hint.find(server.log().string()) != std::string::npos);
}

TEST_CASE("the server ends before it is ready") {
  const Folder folder;
  Server server(shell("echo cannot load the model >&2; exit 7"), folder.path / "log");
  ManualClock clock;
  Replies transport({refused()});
  REQUIRE(soon([&] { return !server.running(); }));
  const Problem problem = problem_of([&] { wait_for(server, transport, free_port(), clock); });
  CHECK(problem.kind == ErrorKind::backend);
  CHECK(
      problem.message ==
      "the server ended before it was ready (exit code 7); its last lines:\ncannot load the model");
}

TEST_CASE("D5: a health check that hangs is given up") {
  const Folder folder;
  test::SocketServer hanging([](test::Connection& connection, int) { connection.hang(); });
  Server server(shell("exec sleep 1000"), folder.path / "log");
  SystemClock clock;
  const auto transport = make_curl_transport();
  const Problem problem =
      problem_of([&] { wait_for(server, *transport, hanging.port(), clock, 0.5); });
  CHECK(problem.message.find("no answer within 2 s") != std::string::npos);
}

TEST_CASE("somebody else answers on the port") {
  const Folder folder;
  test::SocketServer other(test::always(test::http("{\"status\":\"ok\"}")));
  Server server(shell("exec sleep 1000"), folder.path / "log");
  SystemClock clock;
  const auto transport = make_curl_transport();
  const Problem problem = problem_of([&] { wait_for(server, *transport, other.port(), clock); });
  CHECK(problem.kind == ErrorKind::backend);
  CHECK(problem.message.find(
            "is answered by a process that preval did not start: the port is in use") !=
        std::string::npos);
}

TEST_CASE("an interrupt ends the wait") {
  const Folder folder;
  Server server(shell("exec sleep 1000"), folder.path / "log");
  ManualClock clock;
  Replies transport({refused()});
  int polls = 0;
  const Problem problem = problem_of(
      [&] { wait_for(server, transport, free_port(), clock, 60, [&] { return ++polls > 3; }); });
  CHECK(problem.kind == ErrorKind::interrupted);
}

TEST_CASE("who listens on a port") {
  const test::SocketServer server(test::always(test::http("{}")));
  CHECK(who_listens(server.port(), getpgid(0)) == Listener::of_group);
  CHECK(who_listens(server.port(), getpgid(0) + 1'000'000) == Listener::somebody_else);
  CHECK(who_listens(free_port(), getpgid(0)) == Listener::cannot_tell);
}

TEST_CASE("commands are filled in, and a misspelt placeholder names the known ones") {
  CHECK(
      fill_command({"{root}/serve", "--port", "{port}", "{{}}"}, {{"root", "/r"}, {"port", "1"}}) ==
      std::vector<std::string>{"/r/serve", "--port", "1", "{}"});
  const Problem problem = problem_of([] {
    fill_command({"{prot}"}, {{"root", "/r"}, {"port", "1"}});
  });
  CHECK(problem.kind == ErrorKind::usage);
  CHECK(problem.message == "server command: unknown placeholder {prot}: did you mean port?");
  CHECK(problem.hint == "known here: {port}, {root}");
}

TEST_CASE("the first line of a short command") {
  CHECK(first_line_of(shell("echo xllamacpp 1.2; echo more; echo talk >&2")) == "xllamacpp 1.2");
  CHECK(first_line_of(shell("printf 'no line end'")) == "no line end");
  CHECK(first_line_of(shell("printf 'dos\\r\\n'")) == "dos");
  const Problem failed =
      problem_of([] { first_line_of(shell("echo first >&2; echo no engine here >&2; exit 2")); });
  CHECK(failed.kind == ErrorKind::backend);
  CHECK(failed.message.find(": exit code 2: no engine here") != std::string::npos);
  CHECK(problem_of([] { first_line_of(shell("true")); }).message.find("prints nothing") !=
        std::string::npos);
  CHECK(problem_of([] {
          first_line_of({"/no/such/program"});
        }).message.find("cannot start /no/such/program") == 0);
  CHECK(problem_of([] { first_line_of({}); }).kind == ErrorKind::usage);
}

TEST_CASE("a short command is bounded in what is kept of it") {
  const std::string long_line = "head -c 3000000 /dev/zero | tr '\\0' x";
  CHECK(first_line_of(shell(long_line)) == std::string(64 * 1024, 'x'));
  const Problem failed = problem_of([&] { first_line_of(shell(long_line + " >&2; exit 3")); });
  CHECK(failed.message.find(": exit code 3: xxx") != std::string::npos);
  CHECK(failed.message.size() < 66 * 1024);
  // All of a short text arrives, however quickly the command ends.
  for (int i = 0; i < 20; ++i) CHECK(first_line_of(shell("echo v1; echo talk >&2")) == "v1");
}

TEST_CASE("a short command is bounded in time, whatever it does") {
  const Folder folder;
  const auto start = steady_clock::now();
  const auto passed = [&] { return steady_clock::now() - start; };
  SECTION("it prints for ever, or is silent, or closes its pipes and stays") {
    for (const std::string script :
         {"exec yes", "exec yes >&2", "exec sleep 60", "exec sleep 60 >&- 2>&-",
          "exec >&- 2>&-; trap '' TERM INT HUP; while :; do sleep 1; done"}) {
      INFO(script);
      const auto pid = folder.path / "pid";
      const Problem problem = problem_of([&] {
        first_line_of(shell("echo $$ >" + pid.string() + "; " + script), {}, milliseconds(300));
      });
      CHECK(problem.kind == ErrorKind::backend);
      CHECK(problem.message.find("does not end within 0.3 s") != std::string::npos);
      CHECK_FALSE(lives(number_in(pid)));
    }
    CHECK(passed() < seconds(8));
  }
  SECTION("it ends, and what it started holds its pipes: the command's own end counts") {
    const auto pid = folder.path / "pid";
    CHECK(first_line_of(shell("echo v1; sleep 60 & echo $! >" + pid.string())) == "v1");
    CHECK(soon([&] { return !lives(number_in(pid)); }));
    CHECK(first_line_of(shell("echo v2; yes &")) == "v2");
    // In a session of its own it is out of reach, and not waited for.
    CHECK(first_line_of(shell("echo v3; setsid sleep 3 &")) == "v3");
    CHECK(first_line_of(shell("echo v4; setsid timeout 3 yes >&2 & sleep 0.2")) == "v4");
    CHECK(passed() < seconds(8));
  }
}

TEST_CASE("free ports are free, and differ from one that is taken") {
  const test::SocketServer taken(test::always(test::http("{}")));
  const int port = free_port();
  CHECK(port > 0);
  CHECK(port < 65536);
  CHECK(port != taken.port());
}
