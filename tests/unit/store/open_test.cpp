#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "../base/temporary_folder.h"
#include "../base/thrown.h"
#include "catch.h"
#include "skip.h"
#include "store/store.h"

using namespace preval;
using namespace preval::test;

namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The error of opening, after checking that the file is still what it was.
Error refused(const std::filesystem::path& path, Db::Mode mode) {
  const std::string before = bytes_of(path);
  Error error = thrown([&] { open_store(path, mode); });
  CHECK(bytes_of(path) == before);
  return error;
}

}  // namespace

TEST_CASE("a new store is one file that says what it is", "[store]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "results.db";
  open_store(path, Db::Mode::create);
  CHECK(bytes_of(path).substr(68, 4) == "Prev");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder.path()))
    ++files;
  CHECK(files == 1);

  Db plain(path, Db::Mode::read_only);  // what any SQLite tool sees
  CHECK(query_integer(plain, "PRAGMA user_version") == kSchemaVersion);
  {
    Stmt check(plain, "PRAGMA integrity_check");
    REQUIRE(check.step());
    CHECK(check.text(0) == "ok");
  }
  CHECK(query_integer(plain,
                      "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE "
                      "'%STRICT%' AND name NOT LIKE 'sqlite_%'") == 0);

  CHECK_NOTHROW(open_store(path, Db::Mode::create));
  CHECK_NOTHROW(open_store(path, Db::Mode::read_write));
  CHECK_NOTHROW(open_store(path, Db::Mode::read_only));
}

TEST_CASE("an empty file is filled, but only by who may create", "[store]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "empty.db";
  write(path, "");
  CHECK(contains(refused(path, Db::Mode::read_only).what(), "empty.db is empty"));
  open_store(path, Db::Mode::create);
  CHECK_NOTHROW(open_store(path, Db::Mode::read_only));
}

TEST_CASE("files that are no store of this schema are refused and left alone", "[store]") {
  const TemporaryFolder folder;

  const auto missing = folder.path() / "missing.db";
  for (const Db::Mode mode : {Db::Mode::read_only, Db::Mode::read_write}) {
    const Error error = thrown([&] { open_store(missing, mode); });
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(contains(error.what(), "there is no store at"));
    CHECK(contains(error.hint(), "preval run"));
  }
  CHECK_FALSE(std::filesystem::exists(missing));
  CHECK(
      contains(thrown([&] { open_store(folder.path(), Db::Mode::create); }).what(), "is a folder"));

  const auto text = folder.path() / "notes.txt";
  write(text, std::string(200, 'x'));
  Error error = refused(text, Db::Mode::create);
  CHECK(error.kind() == ErrorKind::usage);
  CHECK(contains(error.what(), "notes.txt is no SQLite file"));
  write(text, "short");
  CHECK(contains(refused(text, Db::Mode::create).what(), "is no SQLite file"));

  const auto foreign = folder.path() / "foreign.db";
  Db(foreign, Db::Mode::create).exec("CREATE TABLE t (i INTEGER)");
  error = refused(foreign, Db::Mode::create);
  CHECK(error.kind() == ErrorKind::usage);
  CHECK(contains(error.what(), "SQLite file of another program"));

  const auto newer = folder.path() / "newer.db";
  open_store(newer, Db::Mode::create);
  Db(newer, Db::Mode::read_write).exec("PRAGMA user_version = 99");
  error = refused(newer, Db::Mode::read_write);
  CHECK(error.kind() == ErrorKind::usage);
  CHECK(contains(error.what(),
                 "has schema version 99, this preval knows " + std::to_string(kSchemaVersion)));
  CHECK(contains(error.hint(), "newer preval"));
  Db(newer, Db::Mode::read_write).exec("PRAGMA user_version = 0");
  CHECK(contains(refused(newer, Db::Mode::read_write).what(), "has schema version 0"));

  const auto torn = folder.path() / "torn.db";
  open_store(torn, Db::Mode::create);
  write(torn, bytes_of(torn).substr(0, 9000));
  error = refused(torn, Db::Mode::read_only);
  CHECK(error.kind() == ErrorKind::drift);
  CHECK(contains(error.what(), "is torn: 9000 bytes"));
}

TEST_CASE("a kill between first page and tables leaves a file that the next run fills", "[store]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.db";
  Db(path, Db::Mode::create).exec("PRAGMA journal_mode = WAL");
  CHECK(std::filesystem::file_size(path) > 0);
  Db db = open_store(path, Db::Mode::create);
  CHECK(query_integer(db, "SELECT count(*) FROM plan") == 0);
}

TEST_CASE("an unwritable store is an io error with a hint", "[store]") {
  if (geteuid() == 0) {
    return test::skip_test("root may write everything, a read-only store included");
  }
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.db";
  open_store(path, Db::Mode::create);
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  const Error error = thrown([&] { open_store(path, Db::Mode::read_write); });
  CHECK(error.kind() == ErrorKind::io);
  CHECK(contains(error.hint(), "must be writable"));
}

TEST_CASE("a store has one lock, by whatever link it is opened", "[store]") {
  const TemporaryFolder folder;
  open_store(folder.path() / "real.db", Db::Mode::create);
  std::filesystem::create_symlink(folder.path() / "real.db", folder.path() / "alias.db");
  const StoreLock held(folder.path() / "real.db");
  // fcntl locks are per process: what matters is that both names lead to one lock file.
  const StoreLock again(folder.path() / "alias.db");
  CHECK(std::filesystem::exists(folder.path() / "real.db.lock"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "alias.db.lock"));
}

TEST_CASE("one writer per store, named to those who come later", "[store]") {
  const TemporaryFolder folder;
  const auto store = folder.path() / "results.db";
  const auto lock_file = folder.path() / "results.db.lock";
  // The lock belongs to the process, so a second one is needed to see it.
  const auto in_a_child = [&] {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      int outcome = 0;
      try {
        const StoreLock lock(store);
      } catch (const Error& error) {
        const std::string holder = "pid " + std::to_string(getppid()) + " on ";
        outcome = error.kind() == ErrorKind::usage && contains(error.what(), holder) &&
                          contains(error.hint(), "--db")
                      ? 1
                      : 2;
      }
      _exit(outcome);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
  };
  {
    const StoreLock lock(store);
    CHECK(in_a_child() == 1);
    CHECK(in_a_child() == 1);
  }
  CHECK_FALSE(std::filesystem::exists(lock_file));
  CHECK(in_a_child() == 0);

  write(lock_file, "pid 1 on elsewhere\n");  // its holder was killed
  CHECK(in_a_child() == 0);

  const Error error = thrown([&] { StoreLock(folder.path() / "no" / "x.db"); });
  CHECK(error.kind() == ErrorKind::usage);
  CHECK(contains(error.what(), "No such file or directory"));
}

TEST_CASE("a store that a killed run left is read by whoever opens it next", "[store]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.db";
  const bool in_log = GENERATE(true, false);
  open_store(path, Db::Mode::create);
  // A child that dies in the middle: with committed rows in the log, or with half a transaction in
  // the file and its journal beside it.
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Db db(path, Db::Mode::read_write);
    const std::string put =
        "INSERT INTO event (run_id, at, kind, detail) SELECT 1, 'x', 'y', hex(zeroblob(2000)) FROM "
        "generated";
    db.exec("PRAGMA foreign_keys = OFF; PRAGMA cache_size = 1");
    db.exec(
        "CREATE TEMP TABLE generated AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + "
        "1 FROM n WHERE i < 300) SELECT i FROM n");
    if (in_log) db.log_ahead();
    db.exec("BEGIN IMMEDIATE");
    db.exec(put);
    if (in_log) db.exec("COMMIT");
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(std::filesystem::exists(path.string() + (in_log ? "-wal" : "-journal")));
  Db db = open_store(path, Db::Mode::read_only);
  CHECK(query_integer(db, "SELECT count(*) FROM event") == (in_log ? 300 : 0));
  CHECK_FALSE(std::filesystem::exists(path.string() + "-journal"));
}

TEST_CASE("a store of two names is locked under neither", "[store]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.db", other = folder.path() / "y.db";
  open_store(path, Db::Mode::create);
  std::filesystem::create_hard_link(path, other);
  for (const auto& name : {path, other}) {
    const Error error = thrown([&] { StoreLock{name}; });
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(contains(error.what(), "has 2 names (hard links)"));
  }
  std::filesystem::remove(other);
  CHECK_NOTHROW(StoreLock(path));
}

TEST_CASE("a store that was killed before its tables were there says so", "[store]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.db";
  {
    Db db(path, Db::Mode::create);
    db.exec("CREATE TABLE t (i); DROP TABLE t");
  }
  CHECK(contains(thrown([&] { open_store(path, Db::Mode::read_only); }).what(), "holds nothing"));
  open_store(path, Db::Mode::create);
  CHECK_NOTHROW(open_store(path, Db::Mode::read_only));
}
