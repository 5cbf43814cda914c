// A merge that is killed at any moment leaves no store with the name of the new one, and the same
// command makes it.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "../run/study.h"
#include "../skip.h"
#include "catch.h"
#include "score/score.h"
#include "store/digest.h"
#include "store/seal.h"

using namespace preval;
using namespace preval::test;

namespace {

using std::chrono::microseconds;

constexpr int kRecords = 400;

std::string digest_of(const std::filesystem::path& path) {
  Db db = open_store(path, Db::Mode::read_only);
  std::size_t changed = 0;
  const LogicalDigest digest = logical_digest(db, [&](const ChangedRow&) { ++changed; });
  CHECK(changed == 0);
  return digest.digest;
}

/// `preval merge` in a folder, as a process of its own.
pid_t start_merge(const std::filesystem::path& folder) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::string binary = std::filesystem::absolute(std::getenv("PREVAL_BINARY")).string();
    if (chdir(folder.c_str()) != 0 || freopen("table.txt", "w", stdout) == nullptr) _exit(127);
    execlp(binary.c_str(), "preval", "-q", "merge", "out.db", "s1.db", "s2.db", nullptr);
    _exit(127);
  }
  return child;
}

int status_of(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("a merge that is killed at any point leaves nothing half-written", "[merge][kill]") {
  if (std::getenv("PREVAL_BINARY") == nullptr) return skip_test("PREVAL_BINARY is not set");
  Study study;
  for (const std::string subset : {"one", "two"}) {
    study.put_records(subset, "noul", Study::records(subset, kRecords), kRecords, kRecords / 2);
  }
  study.lock();
  study.run();
  const std::string whole = digest_of(study.db_path());
  RunOptions options;
  for (const int index : {1, 2}) {
    study.db_name = fmt::format("s{}.db", index);
    options.shard = Shard{index, 2};
    REQUIRE(study.run(options).exit_code() == 0);
  }
  const std::filesystem::path out = study.folder() / "out.db";
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(WEXITSTATUS(status_of(start_merge(study.folder()))) == 0);
  const auto took =
      std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - begin);
  CHECK(digest_of(out) == whole);

  std::mt19937 random(20260927);
  std::uniform_int_distribution<std::int64_t> moment(0, took.count());
  const auto clear = [&] {
    for (const char* name : {"out.db", "out.seal.json", "out.report.md", "out.report.json"})
      std::filesystem::remove(study.folder() / name);
  };
  clear();
  int killed = 0, unfinished = 0;
  for (int i = 0; i < 200 && killed < 25; ++i) {
    const pid_t child = start_merge(study.folder());
    std::this_thread::sleep_for(microseconds(moment(random)));
    ::kill(child, SIGKILL);
    if (WIFSIGNALED(status_of(child))) ++killed;
    // Either there is no store of that name, or it is the whole one.
    if (std::filesystem::exists(out)) {
      CHECK(digest_of(out) == whole);
      clear();
    } else {
      ++unfinished;
    }
  }
  CHECK(killed == 25);
  CHECK(unfinished > 0);
  REQUIRE(WEXITSTATUS(status_of(start_merge(study.folder()))) == 0);
  CHECK(digest_of(out) == whole);
  for (const char* rest : {"out.db.part", "out.db.part-wal", "out.db.lock", "out.db-wal"})
    CHECK_FALSE(std::filesystem::exists(study.folder() / rest));
}
