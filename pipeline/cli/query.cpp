// preval query: SQL over the store, read-only.
#include <fmt/format.h>
#include <sqlite3.h>

#include <ostream>
#include <set>

#include "base/error.h"
#include "cli/command.h"
#include "cli/rows.h"
#include "store/store.h"

namespace preval {

namespace {

constexpr char kListViews[] =
    "SELECT view, meaning FROM dictionary WHERE \"column\" = '*' ORDER BY view";

struct QueryOptions {
  std::string sql, format = "table";
  bool json = false;
};

/// Pragmas that only look, and only without a new value.
bool may_read_pragma(const char* name, const char* argument) {
  static const std::set<std::string_view> kLooks = {
      "table_info",  "table_xinfo",      "table_list",        "index_list",      "index_info",
      "index_xinfo", "foreign_key_list", "foreign_key_check", "integrity_check", "quick_check"};
  static const std::set<std::string_view> kValues = {
      "user_version", "application_id", "page_count",     "page_size",
      "encoding",     "database_list",  "compile_options"};
  return kLooks.contains(name) || (argument == nullptr && kValues.contains(name));
}

/// What a query may do: select, call functions, look at the schema. Everything else is denied, so
/// that it does not matter which statement might write, attach or load something.
int authorize(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return std::string_view(second) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_UPDATE:
      // Declaring pragma_table_info and the like asks for this; SQLite itself refuses it to users.
      return std::string_view(first) == "sqlite_master" ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_PRAGMA:
      return may_read_pragma(first, second) ? SQLITE_OK : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

/// Errors of a query are errors of its author, unless the machine or the file is to blame.
[[noreturn]] void throw_as_usage(const Error& error) {
  if (error.kind() != ErrorKind::check) throw error;
  throw Error(
      ErrorKind::usage, error.what(),
      error.hint().empty() ? "query reads only; preval query alone lists the views" : error.hint());
}

void refuse_several_statements(Db& db, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  sqlite3_prepare_v2(db.handle(), sql.c_str(), -1, &statement, &rest);
  const bool empty = statement == nullptr;
  sqlite3_finalize(statement);
  // Comments and space behind the statement compile to nothing as well.
  statement = nullptr;
  if (!empty && sqlite3_prepare_v2(db.handle(), rest, -1, &statement, nullptr) == SQLITE_OK &&
      statement == nullptr) {
    return;
  }
  sqlite3_finalize(statement);
  if (!empty) {
    throw Error(ErrorKind::usage, "one statement at a time: there is more behind the first",
                "query them one by one");
  }
}

void query(Context& context, const QueryOptions& options) {
  Db db = open_store(context.db, Db::Mode::read_only);
  if (!context.quiet && query_integer(db, "SELECT count(*) FROM plan WHERE simulated = 1") > 0) {
    context.err << "SIMULATED: no model gave the answers in this store\n";
  }
  std::string sql = options.sql.empty() ? kListViews : options.sql;
  if (sql.front() == '@') sql = context.files.read(sql.substr(1));
  db.exec("PRAGMA query_only = ON");
  sqlite3_set_authorizer(db.handle(), authorize, nullptr);
  try {
    refuse_several_statements(db, sql);
    Stmt statement(db, sql);
    if (statement.handle() == nullptr)
      throw Error(ErrorKind::usage, "there is no statement in it", "give a SELECT");
    print_rows(context.out, statement, options.json ? "json" : options.format);
  } catch (const Error& error) {
    throw_as_usage(error);
  }
}

}  // namespace

void add_query(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("query", "Queries the store with SQL; alone it lists the views");
  const auto options = std::make_shared<QueryOptions>();
  command->add_option("sql", options->sql, "A SELECT, or @FILE that holds one")->type_name("SQL");
  auto* format = command->add_option("--format", options->format, "table, csv, json, jsonl or md")
                     ->check(CLI::IsMember({"table", "csv", "json", "jsonl", "md"}))
                     ->capture_default_str();
  command->add_flag("--json", options->json, "Short for --format json")->excludes(format);
  command->footer(
      help_footer({"preval query", "preval query \"select arm, subset, accuracy from v_accuracy\"",
                   "preval query @disagreements.sql --format csv"},
                  "0 printed, even if no row, 1 output could not be written,\n"
                  "  2 SQLite refuses the query, or no such store, 3 the store is damaged"));
  command->callback([options, &context] { query(context, *options); });
}

}  // namespace preval
