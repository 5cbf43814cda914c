#include "store/db.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <stdexcept>
#include <utility>

#include "base/error.h"

namespace preval {

namespace {

constexpr int kBusyTimeoutMs = 10'000;
constexpr std::size_t kSqlInMessage = 120;

struct Meaning {
  ErrorKind kind;
  std::string hint;
};

/// What an SQLite result code means to a user.
Meaning meaning_of(int code, const std::filesystem::path& path) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return {ErrorKind::io,
              "the disk is full: what was committed stays; free some space and run again"};
    case SQLITE_IOERR:
      return {ErrorKind::io,
              "the file system refused: what was committed stays; look at the disk first"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return {ErrorKind::io, fmt::format("{} and its folder must be writable", path.string())};
    case SQLITE_CANTOPEN:
      return {ErrorKind::io,
              fmt::format("does the folder of {} exist, and may it be written?", path.string())};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorKind::io, "another program is using the store; wait for it, then run again"};
    case SQLITE_CORRUPT:
      return {ErrorKind::drift, "the file is torn: restore a copy of it"};
    case SQLITE_NOTADB:
      return {ErrorKind::usage, "--db names another store"};
    default:
      return {ErrorKind::check, {}};
  }
}

[[noreturn]] void throw_sqlite(sqlite3* handle, int code, const std::filesystem::path& path,
                               std::string_view doing) {
  const char* text = handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  Meaning meaning = meaning_of(code, path);
  throw Error(meaning.kind,
              doing.empty() ? fmt::format("{}: {}", path.string(), text)
                            : fmt::format("{}: {} ({})", path.string(), text, doing),
              meaning.hint);
}

std::string shortened(std::string_view sql) {
  if (sql.size() <= kSqlInMessage) return std::string(sql);
  return std::string(sql.substr(0, kSqlInMessage)) + "…";
}

int flags_of(Db::Mode mode) {
  switch (mode) {
    case Db::Mode::read_only:
      return SQLITE_OPEN_READONLY;
    case Db::Mode::read_write:
      return SQLITE_OPEN_READWRITE;
    case Db::Mode::create:
      return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  }
  throw std::logic_error("no such mode");
}

}  // namespace

Db::Db(const std::filesystem::path& path, Mode mode) : path_(path) {
  const int code =
      sqlite3_open_v2(path.c_str(), &handle_,
                      flags_of(mode) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  try {
    if (code != SQLITE_OK) throw_sqlite(handle_, code, path_, "opening");
    sqlite3_busy_timeout(handle_, kBusyTimeoutMs);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
    exec("PRAGMA foreign_keys = ON");
    if (mode != Mode::read_only && sqlite3_db_readonly(handle_, "main") == 1) {
      throw_sqlite(nullptr, SQLITE_READONLY, path_, "opening");
    }
  } catch (...) {
    sqlite3_close(handle_);
    throw;
  }
}

Db::~Db() {
  if (handle_ == nullptr) return;
  if (logs_ahead_) {
    // Leaving the log takes the file for oneself; a reader that stays for long only delays this to
    // the next writer, so nobody waits for it here.
    sqlite3_busy_timeout(handle_, 200);
    const int left =
        sqlite3_exec(handle_, "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
    if (left != SQLITE_OK) {
      sqlite3_wal_checkpoint_v2(handle_, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    }
  }
  sqlite3_close(handle_);
}

Db::Db(Db&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      path_(std::move(other.path_)),
      device_(other.device_),
      inode_(other.inode_),
      logs_ahead_(std::exchange(other.logs_ahead_, false)) {}

void Db::exec(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw_sqlite(handle_, code, path_, shortened(sql));
}

void Db::log_ahead() {
  exec("PRAGMA journal_mode = WAL");
  exec("PRAGMA synchronous = FULL");
  logs_ahead_ = true;
  what_became_of_file();  // which file it is, from now on
}

std::int64_t Db::last_insert_rowid() const { return sqlite3_last_insert_rowid(handle_); }

std::string Db::what_became_of_file() {
  struct stat there {};
  if (stat(path_.c_str(), &there) != 0) return "removed";
  if (inode_ == 0) {
    device_ = there.st_dev;
    inode_ = there.st_ino;
  }
  return device_ == there.st_dev && inode_ == there.st_ino ? "" : "replaced by another file";
}

int Db::changes() const { return sqlite3_changes(handle_); }

Stmt::Stmt(Db& db, std::string_view sql) : db_(&db) {
  const int code = sqlite3_prepare_v3(db.handle(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &handle_, nullptr);
  if (code != SQLITE_OK) throw_sqlite(db.handle(), code, db.path(), shortened(sql));
}

Stmt::~Stmt() { sqlite3_finalize(handle_); }

Stmt::Stmt(Stmt&& other) noexcept
    : db_(other.db_), handle_(std::exchange(other.handle_, nullptr)) {}

namespace {

void check_bind(int code, const Db& db) {
  if (code != SQLITE_OK) throw_sqlite(db.handle(), code, db.path(), "binding a value");
}

}  // namespace

Stmt& Stmt::bind(int index, std::int64_t value) {
  check_bind(sqlite3_bind_int64(handle_, index, value), *db_);
  return *this;
}

Stmt& Stmt::bind(int index, double value) {
  check_bind(sqlite3_bind_double(handle_, index, value), *db_);
  return *this;
}

Stmt& Stmt::bind(int index, std::string_view value) {
  // An empty view may hold a null pointer, which SQLite would take for NULL.
  const char* data = value.empty() ? "" : value.data();
  check_bind(sqlite3_bind_text64(handle_, index, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8),
             *db_);
  return *this;
}

Stmt& Stmt::bind_blob(int index, std::string_view bytes) {
  const char* data = bytes.empty() ? "" : bytes.data();
  check_bind(sqlite3_bind_blob64(handle_, index, data, bytes.size(), SQLITE_TRANSIENT), *db_);
  return *this;
}

Stmt& Stmt::bind_null(int index) {
  check_bind(sqlite3_bind_null(handle_, index), *db_);
  return *this;
}

Stmt& Stmt::bind_column(int index, const Stmt& row, int column) {
  check_bind(sqlite3_bind_value(handle_, index, sqlite3_column_value(row.handle_, column)), *db_);
  return *this;
}

bool Stmt::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const char* sql = sqlite3_sql(handle_);
  const std::string doing = shortened(sql == nullptr ? "" : sql);
  // Reset first: a failed statement must not keep a transaction from rolling back. The message of
  // the connection survives it.
  sqlite3_reset(handle_);
  throw_sqlite(db_->handle(), code, db_->path(), doing);
}

void Stmt::run() {
  while (step()) {
  }
  reset();
}

void Stmt::reset() {
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
}

bool Stmt::is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }

std::int64_t Stmt::integer(int column) const { return sqlite3_column_int64(handle_, column); }

double Stmt::real(int column) const { return sqlite3_column_double(handle_, column); }

std::string Stmt::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  return data == nullptr
             ? std::string()
             : std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)));
}

std::string Stmt::blob(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_, column));
  return data == nullptr
             ? std::string()
             : std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)));
}

std::optional<double> Stmt::real_or_null(int column) const {
  if (is_null(column)) return std::nullopt;
  return real(column);
}

std::optional<std::string> Stmt::text_or_null(int column) const {
  if (is_null(column)) return std::nullopt;
  return text(column);
}

std::optional<std::int64_t> Stmt::integer_or_null(int column) const {
  if (is_null(column)) return std::nullopt;
  return integer(column);
}

int Stmt::columns() const { return sqlite3_column_count(handle_); }

std::string Stmt::column_name(int column) const {
  const char* name = sqlite3_column_name(handle_, column);
  return name == nullptr ? std::string() : std::string(name);
}

int Stmt::column_type(int column) const { return sqlite3_column_type(handle_, column); }

Tx::Tx(Db& db) : db_(db) { db_.exec("BEGIN IMMEDIATE"); }

Tx::~Tx() {
  // After an error SQLite may have rolled back by itself; a second rollback then changes nothing.
  if (open_) sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Tx::commit() {
  db_.exec("COMMIT");
  open_ = false;
}

std::int64_t query_integer(Db& db, std::string_view sql) {
  Stmt statement(db, sql);
  if (!statement.step()) throw std::logic_error("a query for one value gave no row");
  return statement.integer(0);
}

}  // namespace preval
