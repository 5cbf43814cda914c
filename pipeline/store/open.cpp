#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdint>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "dictionary_sql.h"
#include "schema_sql.h"
#include "store/store.h"
#include "views_sql.h"

namespace preval {

namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr std::size_t kHeaderBytes = 100;

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

enum class FileState { absent, empty, database };

/// Looks at the file's own first bytes before SQLite does, so that a stranger's file is never
/// written.
FileState look_at(const std::filesystem::path& path) {
  std::error_code problem;
  const std::filesystem::file_status status = std::filesystem::status(path, problem);
  if (!std::filesystem::exists(status)) return FileState::absent;
  if (std::filesystem::is_directory(status)) {
    throw Error(ErrorKind::usage, fmt::format("{} is a folder, no store", path.string()));
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw Error(ErrorKind::usage, fmt::format("{} is no regular file, and no store", path.string()),
                "--db names another store");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ErrorKind::io, fmt::format("{} cannot be opened", path.string()),
                "may you read it?");
  }
  std::string header(kHeaderBytes, '\0');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  header.resize(static_cast<std::size_t>(file.gcount()));
  if (header.empty()) return FileState::empty;
  if (header.size() < kHeaderBytes || !header.starts_with(kMagic)) {
    throw Error(ErrorKind::usage, fmt::format("{} is no SQLite file: left as it is", path.string()),
                "--db names another store");
  }
  // Without a log beside it a file has exactly the pages that its header counts.
  const std::uint64_t page_size = big_endian(std::string_view(header).substr(16, 2));
  const std::uint64_t pages = big_endian(std::string_view(header).substr(28, 4));
  const std::uint64_t expected = pages * (page_size == 1 ? 65536 : page_size);
  const std::uint64_t size = std::filesystem::file_size(path, problem);
  const bool has_log = std::filesystem::exists(path.string() + "-wal", problem) ||
                       std::filesystem::exists(path.string() + "-journal", problem);
  if (!has_log && size < expected) {
    throw Error(
        ErrorKind::drift,
        fmt::format("{} is torn: {} bytes, its header counts {}", path.string(), size, expected),
        "restore a copy of it; what it lacks cannot be read back");
  }
  return FileState::database;
}

bool holds_nothing(Db& db) { return query_integer(db, "SELECT count(*) FROM sqlite_master") == 0; }

void create_schema(Db& db) {
  Tx tx(db);
  db.exec(embedded::schema_sql);
  db.exec(embedded::views_sql);
  db.exec(embedded::dictionary_sql);
  db.exec(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId,
                      kSchemaVersion));
  tx.commit();
}

/// Tables, indices, triggers and views, each as "type name" and its SQL.
std::map<std::string, std::string> schema_of(Db& db) {
  std::map<std::string, std::string> schema;
  Stmt query(db,
             "SELECT type || ' ' || name, coalesce(sql, '') FROM main.sqlite_master WHERE name NOT "
             "LIKE 'sqlite@_%' ESCAPE '@'");
  while (query.step()) schema[query.text(0)] = query.text(1);
  return schema;
}

void check_is_ours(Db& db) {
  const std::string name = db.path().string();
  if (query_integer(db, "PRAGMA application_id") != kApplicationId) {
    throw Error(ErrorKind::usage,
                fmt::format("{} is an SQLite file of another program: left as it is", name),
                "--db names another store");
  }
  const std::int64_t version = query_integer(db, "PRAGMA user_version");
  if (version > kSchemaVersion) {
    throw Error(ErrorKind::usage,
                fmt::format("{} has schema version {}, this preval knows {}", name, version,
                            kSchemaVersion),
                "a newer preval wrote it: use that one");
  }
  if (version < kSchemaVersion) {
    throw Error(ErrorKind::usage,
                fmt::format("{} has schema version {}, this preval writes {}", name, version,
                            kSchemaVersion),
                "start a new store with --db, or use the preval that wrote this one");
  }
}

void check_holds_ours(Db& db) {
  if (holds_nothing(db) && query_integer(db, "PRAGMA application_id") == 0) {
    throw Error(ErrorKind::usage,
                fmt::format("{} holds nothing: the run that made it was stopped at its very start",
                            db.path().string()),
                "preval run PLAN fills it; --db names another");
  }
  check_is_ours(db);
}

/// A new file whose tables could not be written (a full disk) is not left behind.
Db create_store(const std::filesystem::path& path, bool is_new) {
  try {
    Db db(path, Db::Mode::create);
    db.log_ahead();
    create_schema(db);
    return db;
  } catch (const Error&) {
    std::error_code ignored;
    if (is_new) {
      for (const char* ending : {"", "-wal", "-shm", "-journal"}) {
        std::filesystem::remove(path.string() + ending, ignored);
      }
    }
    throw;
  }
}

/// A run that was killed left its log, or the journal of a last step: whoever opens the file next
/// has to bring it into the file before it can be read, and a reader may not.
bool has_to_be_recovered(Db& db) {
  return (sqlite3_exec(db.handle(), "PRAGMA application_id", nullptr, nullptr, nullptr) & 0xff) ==
         SQLITE_READONLY;
}

/// What was committed comes into the file, what was not is gone, and no log is left beside it.
void recover(const std::filesystem::path& path) {
  try {
    Db db(path, Db::Mode::read_write);
    check_is_ours(db);
    db.log_ahead();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage) throw;
    throw Error(error.kind(),
                fmt::format("the run that wrote {} was killed, and its last answers are still in "
                            "the log beside it: {}",
                            path.string(), error.message()),
                error.hint());
  }
}

}  // namespace

Db open_store(const std::filesystem::path& path, Db::Mode mode) {
  const FileState state = look_at(path);
  if (state == FileState::absent && mode != Db::Mode::create) {
    throw Error(ErrorKind::usage, fmt::format("there is no store at {}", path.string()),
                "preval run PLAN makes one; --db names another");
  }
  if (state != FileState::database) {
    if (mode == Db::Mode::create) return create_store(path, state == FileState::absent);
    throw Error(ErrorKind::usage, fmt::format("{} is empty", path.string()),
                "preval run PLAN fills it; --db names another");
  }
  if (mode == Db::Mode::read_only) {
    Db reader(path, mode);
    if (!has_to_be_recovered(reader)) {
      check_holds_ours(reader);
      return reader;
    }
    recover(path);
  }
  Db db(path, mode);
  // A kill between the file's first page and its tables leaves a database with nothing in it.
  if (mode == Db::Mode::create && holds_nothing(db) &&
      query_integer(db, "PRAGMA user_version") == 0) {
    db.log_ahead();
    create_schema(db);
    return db;
  }
  check_holds_ours(db);
  if (mode != Db::Mode::read_only) db.log_ahead();
  return db;
}

std::vector<SchemaDifference> schema_differences(Db& db, std::size_t* compared) {
  Db fresh(":memory:", Db::Mode::create);
  create_schema(fresh);
  const std::map<std::string, std::string> shipped = schema_of(fresh), found = schema_of(db);
  if (compared != nullptr) *compared = shipped.size();
  std::vector<SchemaDifference> differences;
  for (const auto& [name, sql] : shipped) {
    const auto there = found.find(name);
    if (there == found.end()) {
      differences.push_back({name, sql, std::nullopt});
    } else if (there->second != sql) {
      differences.push_back({name, sql, there->second});
    }
  }
  for (const auto& [name, sql] : found) {
    if (!shipped.contains(name)) differences.push_back({name, std::nullopt, sql});
  }
  return differences;
}

}  // namespace preval
