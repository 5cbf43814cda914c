// Runs that are stopped at any moment, by anything, and gone on with: nothing is lost, nothing that
// was committed is asked again, and in the end the evidence is that of a run that nobody disturbed.
//
// PREVAL_KILLS says at how many points a run is killed (40 where it is not set; scripts/test.sh
// --full sets 200); the other ways to stop one are tried at a quarter as many.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "../run/study.h"
#include "../skip.h"
#include "base/sha256.h"
#include "catch.h"
#include "server/protocols.h"
#include "store/digest.h"

using namespace preval;
using namespace preval::test;

namespace {

using std::chrono::milliseconds;

constexpr int kRecords = 60;  // of each of the two subsets

int kills() {
  const char* wanted = std::getenv("PREVAL_KILLS");
  return wanted == nullptr ? 40 : std::atoi(wanted);
}
int others() { return kills() / 4; }

/// `preval run` as a process of its own, in a group of its own as a shell starts it.
class Process {
 public:
  Process(const std::filesystem::path& folder, const std::string& shell_command) {
    const std::string command = fmt::format("cd '{}' && exec >>out.log 2>&1 </dev/null && {}",
                                            folder.string(), shell_command);
    const char* arguments[] = {"sh", "-c", command.c_str(), nullptr};
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    REQUIRE(posix_spawn(&pid_, "/bin/sh", nullptr, &attributes, const_cast<char**>(arguments),
                        environ) == 0);
    posix_spawnattr_destroy(&attributes);
  }
  ~Process() {
    if (!ended()) {
      signal(SIGKILL);
      wait();
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  bool ended() {
    if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
    return ended_;
  }
  /// Its exit code, or 128 and the signal that ended it.
  int wait() {
    if (!ended_) waitpid(pid_, &status_, 0);
    ended_ = true;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

std::string word_of(const std::string& subset, int record) {
  return fmt::format("{}mark{} mark{}{}", subset, record, subset, record);
}

/// Which of the records a request is about, and how often each was asked for an answer.
class Asked {
 public:
  Asked() {
    test_server::Tokenizer tokenizer;
    for (const std::string subset : {"one", "two"}) {
      for (int i = 0; i < kRecords; ++i) {
        marks_[fmt::format("{},", fmt::join(tokenizer.tokens_of(word_of(subset, i)), ","))] =
            fmt::format("{}-{}", subset, i);
      }
    }
  }
  void see(const test_server::Request& request) {
    const std::lock_guard held(mutex_);
    if (request.path != "/v1/completions") return;
    for (const auto& [mark, record] : marks_) {
      if (request.body.find(mark) != std::string_view::npos) ++asked_[record];
    }
  }
  std::map<std::string, int> counts() {
    const std::lock_guard held(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> marks_;  // token ids → record
  std::map<std::string, int> asked_;
};

std::string records_of(const std::string& subset) {
  std::string text;
  for (int i = 0; i < kRecords; ++i) {
    text += fmt::format(
        R"({{"id": "{0}-{1}", "family": "f{2}", "input": {{"state": "{3}", "questions": {{"decision": )"
        R"({{"type": "noul", "instructions": "Is it?", "criteria": {{"false": "no", "true": "yes"}}}}}}}}, )"
        R"("reference": {{"target": {4}}}}})"
        "\n",
        subset, i, i / 4, word_of(subset, i), i % 2 == 0 ? "true" : "false");
  }
  return text;
}

/// How the server answers: slowly enough to be met in the middle of something.
const Json kSlowly{{"kind", "vllm"},
                   {"rules", {{{"path", "/v1/completions"}, {"do", {{"delay_s", 0.004}}}}}}};

/// A locked study of 120 records on one arm.
class KillStudy {
 public:
  explicit KillStudy(Json backend) {
    for (const std::string subset : {"one", "two"}) {
      study.put_records(subset, "noul", records_of(subset), kRecords, kRecords / 4);
    }
    backend["concurrency"] = 4;
    study.only(backend);
    study.write("script.json", kSlowly.dump());  // for plans that start their server
    study.lock();
  }
  std::string command(const std::string& before = {}) const {
    return fmt::format("{}exec '{}' run prereg/plan.json --db results.db --logs logs", before,
                       std::getenv("PREVAL_BINARY"));
  }
  Process start(const std::string& before = {}) { return {study.folder(), command(before)}; }

  /// Ids of the records whose answers are committed. A store that is not there yet has none.
  std::set<std::string> stored() {
    if (!std::filesystem::exists(study.db_path())) return {};
    std::set<std::string> ids;
    try {
      Db db = open_store(study.db_path(), Db::Mode::read_only);
      Stmt query(db,
                 "SELECT r.record_id FROM prediction p JOIN prompt q ON q.id = p.prompt_id JOIN "
                 "record r ON r.id = q.record_id");
      while (query.step()) ids.insert(query.text(0));
    } catch (const Error& error) {
      // Killed before the schema was committed: nothing was stored.
      if (error.kind() != ErrorKind::usage) throw;
    }
    return ids;
  }
  std::string digest() {
    Db db = open_store(study.db_path(), Db::Mode::read_only);
    std::size_t changed = 0;
    const LogicalDigest found = logical_digest(db, [&](const ChangedRow&) { ++changed; });
    CHECK(changed == 0);
    Stmt whole(db, "PRAGMA integrity_check");
    REQUIRE(whole.step());
    CHECK(whole.text(0) == "ok");
    return found.digest;
  }
  std::string talk() { return study.read("out.log"); }

  /// Runs it undisturbed: its evidence is then that of a run that never was disturbed.
  void check_ends_as(const std::string& undisturbed_digest) {
    Process last = start();
    const int code = last.wait();
    INFO(talk());
    CHECK(code == 0);
    CHECK(stored().size() == 2 * kRecords);
    CHECK(digest() == undisturbed_digest);
  }

  Study study;
};

/// Waits for a random part of what a run takes, or until the process has ended.
void let_it_run(Process& process, std::mt19937& random, milliseconds whole) {
  std::uniform_int_distribution<int> moment(0, static_cast<int>(whole.count()));
  const auto until = std::chrono::steady_clock::now() + milliseconds(moment(random));
  while (std::chrono::steady_clock::now() < until && !process.ended())
    std::this_thread::sleep_for(milliseconds(1));
}

/// A run that nobody disturbs: its digest, and how long it took.
struct Undisturbed {
  std::string digest;
  milliseconds took{0};
};
Undisturbed undisturbed(const Json& backend) {
  KillStudy study(backend);
  const auto begin = std::chrono::steady_clock::now();
  Process process = study.start();
  const int code = process.wait();
  INFO(study.talk());
  REQUIRE(code == 0);
  REQUIRE(study.stored().size() == 2 * kRecords);
  return {study.digest(),
          std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin)};
}

}  // namespace

TEST_CASE("E5: a run that is killed at any point goes on where it stopped", "[kill]") {
  if (std::getenv("PREVAL_BINARY") == nullptr) return skip_test("PREVAL_BINARY is not set");
  Asked asked;
  test_server::TestServer server(kSlowly, [&](const auto& request) { asked.see(request); });
  const Json backend = Study::served("exact", "vllm", server.url());
  const Undisturbed right = undisturbed(backend);
  std::mt19937 random(20260923);

  constexpr int kPerStudy = 5;
  int killed = 0, late = 0;
  while (killed < kills() && late < 100) {
    KillStudy study(backend);
    // What was committed before a kill is never asked again, whatever comes after it.
    std::map<std::string, int> settled;
    const auto check_settled = [&] {
      const std::map<std::string, int> now = asked.counts();
      for (const auto& [record, times] : settled) {
        INFO(record);
        CHECK(now.at(record) == times);
      }
    };
    for (int i = 0; i < kPerStudy; ++i) {
      Process process = study.start();
      let_it_run(process, random, right.took);
      if (process.ended()) {
        ++late;
        break;
      }
      process.signal(SIGKILL);
      process.wait();
      ++killed;
      check_settled();
      const std::map<std::string, int> now = asked.counts();
      // The first records are asked by preflight, too, of every run.
      for (const std::string& record : study.stored()) {
        if (!record.ends_with("-0") && !settled.contains(record)) settled[record] = now.at(record);
      }
    }
    study.check_ends_as(right.digest);
    check_settled();
  }
  CHECK(killed >= kills());
}

TEST_CASE("a run that is asked to stop at any point goes on where it stopped", "[kill]") {
  if (std::getenv("PREVAL_BINARY") == nullptr) return skip_test("PREVAL_BINARY is not set");
  const test_server::TestServer server(kSlowly);
  const Json backend = Study::served("exact", "vllm", server.url());
  const Undisturbed right = undisturbed(backend);
  std::mt19937 random(20260924);
  for (int i = 0; i < others(); ++i) {
    KillStudy study(backend);
    Process process = study.start();
    let_it_run(process, random, right.took);
    const int number = i % 2 == 0 ? SIGINT : SIGTERM;
    process.signal(number);
    if (i % 4 > 1) process.signal(number);
    const int code = process.wait();
    INFO(study.talk());
    // Before it listens, and after it has ended, a signal is what it always was.
    CHECK((code == 130 || code == 0 || code == 128 + number));
    study.check_ends_as(right.digest);
  }
}

TEST_CASE("a server that is killed at any point costs what was in flight", "[kill]") {
  if (std::getenv("PREVAL_BINARY") == nullptr) return skip_test("PREVAL_BINARY is not set");
  Json backend = Study::served("exact", "vllm", "");
  backend.erase("url");
  backend["server"] = {
      {"command",
       {"sh", "-c",
        fmt::format(
            "echo $$ > {{root}}/server.pid; exec {} --port {{port}} --script {{root}}/script.json",
            PREVAL_TEST_SERVER)}},
      {"version_command", {"echo", "engine 1"}}};
  std::mt19937 random(20260925);
  const Undisturbed right = undisturbed(backend);
  for (int i = 0; i < others(); ++i) {
    KillStudy study(backend);
    Process process = study.start();
    let_it_run(process, random, right.took);
    const std::filesystem::path pid_file = study.study.folder() / "server.pid";
    if (!process.ended() && std::filesystem::exists(pid_file)) {
      const int pid = std::atoi(study.study.read("server.pid").c_str());
      if (pid > 1) ::kill(pid, SIGKILL);
    }
    const int code = process.wait();
    {
      INFO(study.talk());
      CHECK((code == 0 || code == 4 || code == 5));
    }
    study.check_ends_as(right.digest);
  }
}

TEST_CASE("a run whose files cannot grow any more stops, and goes on with more room", "[kill]") {
  if (std::getenv("PREVAL_BINARY") == nullptr) return skip_test("PREVAL_BINARY is not set");
  const test_server::TestServer server(kSlowly);
  const Json backend = Study::served("exact", "vllm", server.url());
  const Undisturbed right = undisturbed(backend);
  std::mt19937 random(20260926);
  for (int i = 0; i < others(); ++i) {
    KillStudy study(backend);
    // In units of 512 bytes: from what the schema needs to what the whole store does.
    const int blocks = std::uniform_int_distribution<int>(300, 1200)(random);
    Process small = study.start(fmt::format("ulimit -f {}; ", blocks));
    const int code = small.wait();
    {
      INFO("ulimit -f " << blocks << "\n" << study.talk());
      CHECK((code == 0 || code == 1));
    }
    INFO("ulimit -f " << blocks);
    study.check_ends_as(right.digest);
  }
}

TEST_CASE("a run without a terminal outlives the session that began it", "[kill]") {
  if (std::getenv("PREVAL_BINARY") == nullptr) return skip_test("PREVAL_BINARY is not set");
  const test_server::TestServer server(kSlowly);
  KillStudy study(Study::served("exact", "vllm", server.url()));
  Process process = study.start();
  // Once it listens to signals: its store is there.
  while (!std::filesystem::exists(study.study.db_path()) && !process.ended())
    std::this_thread::sleep_for(milliseconds(1));
  process.signal(SIGHUP);
  const int code = process.wait();
  INFO(study.talk());
  CHECK(code == 0);
  CHECK(study.stored().size() == 2 * kRecords);
}
