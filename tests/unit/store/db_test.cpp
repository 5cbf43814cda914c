#include "store/db.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "../base/temporary_folder.h"
#include "../base/thrown.h"
#include "catch.h"

using namespace preval;
using namespace preval::test;

TEST_CASE("values come back as they were bound", "[store]") {
  const TemporaryFolder folder;
  Db db(folder.path() / "x.db", Db::Mode::create);
  db.exec("CREATE TABLE t (i INTEGER, r REAL, t TEXT, b BLOB, n INTEGER) STRICT");
  Stmt put(db, "INSERT INTO t VALUES (?, ?, ?, ?, ?)");
  put.bind(1, std::int64_t{1} << 62).bind(2, 0.1).bind(3, std::string("a\0b", 3));
  put.bind_blob(4, std::string("\0\xff", 2)).bind(5, std::optional<int>()).run();
  CHECK(db.changes() == 1);
  CHECK(db.last_insert_rowid() == 1);
  put.bind(1, true).bind(2, std::optional(2.5)).bind(3, "").bind_blob(4, {}).bind(5, 7).run();

  Stmt get(db, "SELECT i, r, t, b, n FROM t ORDER BY rowid");
  REQUIRE(get.step());
  CHECK(get.columns() == 5);
  CHECK(get.column_name(2) == "t");
  CHECK(get.integer(0) == std::int64_t{1} << 62);
  CHECK(get.real(1) == 0.1);
  CHECK(get.text(2) == std::string("a\0b", 3));
  CHECK(get.blob(3) == std::string("\0\xff", 2));
  CHECK(get.is_null(4));
  CHECK_FALSE(get.integer_or_null(4).has_value());
  CHECK_FALSE(get.real_or_null(4).has_value());
  REQUIRE(get.step());
  CHECK(get.integer(0) == 1);
  CHECK(get.real_or_null(1) == 2.5);
  CHECK(get.text_or_null(2) == std::string());
  CHECK_FALSE(get.is_null(3));
  CHECK(get.integer_or_null(4) == 7);
  CHECK_FALSE(get.step());
}

TEST_CASE("a transaction that is not committed never happened", "[store]") {
  const TemporaryFolder folder;
  Db db(folder.path() / "x.db", Db::Mode::create);
  db.exec("CREATE TABLE t (i INTEGER PRIMARY KEY) STRICT");
  {
    Tx tx(db);
    db.exec("INSERT INTO t VALUES (1)");
  }
  CHECK(query_integer(db, "SELECT count(*) FROM t") == 0);
  {
    Tx tx(db);
    db.exec("INSERT INTO t VALUES (1)");
    tx.commit();
  }
  CHECK(query_integer(db, "SELECT count(*) FROM t") == 1);
}

TEST_CASE("what SQLite refuses becomes an error with its words", "[store]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.db";
  Db db(path, Db::Mode::create);
  db.exec(
      "CREATE TABLE parent (i INTEGER PRIMARY KEY) STRICT;"
      "CREATE TABLE t (i INTEGER NOT NULL REFERENCES parent) STRICT");

  Error error = thrown([&] { Stmt(db, "SELEC 1"); });
  CHECK(error.kind() == ErrorKind::check);
  CHECK(contains(error.what(), "x.db: near \"SELEC\": syntax error"));

  error = thrown([&] { db.exec("INSERT INTO t VALUES (NULL)"); });
  CHECK(contains(error.what(), "NOT NULL constraint failed: t.i"));
  error = thrown([&] { db.exec("INSERT INTO t VALUES (5)"); });
  CHECK(contains(error.what(), "FOREIGN KEY constraint failed"));

  // A failed statement can be used again, and does not keep its transaction open.
  Stmt put(db, "INSERT INTO parent VALUES (?)");
  put.bind(1, 1).run();
  CHECK(
      contains(thrown([&] { put.bind(1, 1).run(); }).what(), "UNIQUE constraint failed: parent.i"));
  put.bind(1, 2).run();

  Db reader(path, Db::Mode::read_only);
  error = thrown([&] { reader.exec("DELETE FROM parent"); });
  CHECK(error.kind() == ErrorKind::io);
  CHECK(contains(error.what(), "attempt to write a readonly database"));

  error = thrown([&] { Db(folder.path() / "no" / "x.db", Db::Mode::create); });
  CHECK(error.kind() == ErrorKind::io);
  CHECK(contains(error.what(), "unable to open database file"));
  CHECK(contains(error.hint(), "does the folder of"));
}

TEST_CASE("a full disk is an error of its own kind, and nothing of the transaction stays",
          "[store]") {
  const TemporaryFolder folder;
  Db db(folder.path() / "x.db", Db::Mode::create);
  db.exec("CREATE TABLE t (b BLOB) STRICT");
  db.exec("PRAGMA max_page_count = 10");  // SQLite's own way of running out of space
  const Error error = thrown([&] {
    Tx tx(db);
    db.exec("INSERT INTO t VALUES (zeroblob(1000000))");
    tx.commit();
  });
  CHECK(error.kind() == ErrorKind::io);
  CHECK(contains(error.what(), "database or disk is full"));
  CHECK(contains(error.hint(), "what was committed stays"));
  CHECK(query_integer(db, "SELECT count(*) FROM t") == 0);
}

TEST_CASE("the log is folded into one file when its writer closes", "[store]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.db";
  {
    Db db(path, Db::Mode::create);
    db.log_ahead();
    db.exec("CREATE TABLE t (i INTEGER) STRICT; INSERT INTO t VALUES (1)");
    CHECK(std::filesystem::exists(path.string() + "-wal"));
    Db reader(path, Db::Mode::read_only);
    CHECK(query_integer(reader, "SELECT i FROM t") == 1);
    Tx tx(db);
    db.exec("UPDATE t SET i = 2");
    CHECK(query_integer(reader, "SELECT i FROM t") == 1);  // readers are not blocked by a writer
    tx.commit();
    CHECK(query_integer(reader, "SELECT i FROM t") == 2);
  }
  CHECK_FALSE(std::filesystem::exists(path.string() + "-wal"));
  CHECK_FALSE(std::filesystem::exists(path.string() + "-shm"));
  Db db(path, Db::Mode::read_only);
  CHECK(query_integer(db, "SELECT i FROM t") == 2);
}

TEST_CASE("F1: four processes with 200 writes each leave 800 rows", "[store]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.db";
  Db first(path, Db::Mode::create);
  first.log_ahead();
  first.exec("CREATE TABLE t (who INTEGER, i INTEGER) STRICT");
  std::vector<pid_t> children;
  for (int who = 0; who < 4; ++who) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      int code = 0;
      try {
        Db db(path, Db::Mode::read_write);
        db.exec("PRAGMA synchronous = NORMAL");
        for (int i = 0; i < 200; ++i) {
          Tx tx(db);
          Stmt(db, "INSERT INTO t VALUES (?, ?)").bind(1, who).bind(2, i).run();
          tx.commit();
        }
      } catch (const std::exception&) {
        code = 1;
      }
      _exit(code);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  Db db(path, Db::Mode::read_only);
  CHECK(query_integer(db, "SELECT count(*) FROM t") == 800);
  CHECK(query_integer(db, "SELECT count(DISTINCT who * 1000 + i) FROM t") == 800);
}
