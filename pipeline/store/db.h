#pragma once
// A thin RAII layer over SQLite with SQLite's own names: Db, Stmt, Tx. It adds errors with context
// and nothing else; who wants to know what a call does reads SQLite's manual.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace preval {

/// A connection. Errors are `Error`: kind io when the machine refused (disk full, no permission),
/// drift when the file is torn, check for everything else SQLite says no to (a constraint, a syntax
/// error).
class Db {
 public:
  enum class Mode { read_only, read_write, create };
  /// Opens with foreign keys on, a busy timeout, defensive mode, and no loadable extensions. A
  /// read_write connection to a file that cannot be written is refused at once.
  Db(const std::filesystem::path& path, Mode mode);
  ~Db();
  Db(Db&& other) noexcept;
  Db& operator=(Db&&) = delete;

  /// Runs one or more statements that return nothing.
  void exec(const std::string& sql);
  /// Write-ahead logging with every commit synced, until the connection closes: readers are never
  /// blocked. The destructor folds the log back into the one file; when a reader is still there,
  /// the log stays beside the file, complete, and whoever writes next folds it in.
  void log_ahead();
  std::int64_t last_insert_rowid() const;
  int changes() const;
  sqlite3* handle() const { return handle_; }
  const std::filesystem::path& path() const { return path_; }
  /// "removed" or "replaced by another file", when the path no longer leads to the open file.
  std::string what_became_of_file();

 private:
  sqlite3* handle_ = nullptr;
  std::filesystem::path path_;
  std::uint64_t device_ = 0, inode_ = 0;
  bool logs_ahead_ = false;
};

/// A prepared statement. bind() positions start at 1, column() at 0, as in SQLite.
class Stmt {
 public:
  Stmt(Db& db, std::string_view sql);
  ~Stmt();
  Stmt(Stmt&& other) noexcept;
  Stmt& operator=(Stmt&&) = delete;

  Stmt& bind(int index, std::int64_t value);
  Stmt& bind(int index, int value) { return bind(index, static_cast<std::int64_t>(value)); }
  Stmt& bind(int index, bool value) { return bind(index, static_cast<std::int64_t>(value)); }
  Stmt& bind(int index, double value);
  /// Text is copied.
  Stmt& bind(int index, std::string_view value);
  Stmt& bind(int index, const std::string& value) { return bind(index, std::string_view(value)); }
  Stmt& bind(int index, const char* value) { return bind(index, std::string_view(value)); }
  Stmt& bind_blob(int index, std::string_view bytes);
  Stmt& bind_null(int index);
  /// The value of a column of another statement's row, whichever connection that is of.
  Stmt& bind_column(int index, const Stmt& row, int column);
  template <class T>
  Stmt& bind(int index, const std::optional<T>& value) {
    return value ? bind(index, *value) : bind_null(index);
  }

  /// True while there is a row.
  bool step();
  /// step() to the end and reset, for statements that return nothing.
  void run();
  void reset();

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::string blob(int column) const;
  std::optional<double> real_or_null(int column) const;
  std::optional<std::string> text_or_null(int column) const;
  std::optional<std::int64_t> integer_or_null(int column) const;
  int columns() const;
  std::string column_name(int column) const;
  /// SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT, SQLITE_BLOB or SQLITE_NULL.
  int column_type(int column) const;
  sqlite3_stmt* handle() const { return handle_; }

 private:
  Db* db_;
  sqlite3_stmt* handle_ = nullptr;
};

/// BEGIN IMMEDIATE in the constructor, ROLLBACK in the destructor unless committed.
class Tx {
 public:
  explicit Tx(Db& db);
  ~Tx();
  Tx(const Tx&) = delete;
  Tx& operator=(const Tx&) = delete;
  void commit();

 private:
  Db& db_;
  bool open_ = true;
};

/// One value of a query that gives one row with one column. Throws std::logic_error without a row.
std::int64_t query_integer(Db& db, std::string_view sql);

}  // namespace preval
