#include "cli/rows.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace preval {

namespace {

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string real_text(double value) {
  if (std::isinf(value)) return value > 0 ? "Inf" : "-Inf";
  return shortest(value);
}

std::string value_text(const Stmt& row, int column, std::string_view null) {
  switch (row.column_type(column)) {
    case SQLITE_NULL:
      return std::string(null);
    case SQLITE_INTEGER:
      return std::to_string(row.integer(column));
    case SQLITE_FLOAT:
      return real_text(row.real(column));
    case SQLITE_BLOB:
      return hexadecimal(row.blob(column));
    default:
      return row.text(column);
  }
}

Json value_json(const Stmt& row, int column) {
  switch (row.column_type(column)) {
    case SQLITE_NULL:
      return Json();
    case SQLITE_INTEGER:
      return row.integer(column);
    case SQLITE_FLOAT:
      return std::isinf(row.real(column)) ? Json(real_text(row.real(column)))
                                          : Json(row.real(column));
    case SQLITE_BLOB:
      return hexadecimal(row.blob(column));
    default:
      return row.text(column);
  }
}

std::vector<std::string> names_of(const Stmt& statement) {
  std::vector<std::string> names;
  for (int i = 0; i < statement.columns(); ++i) names.push_back(statement.column_name(i));
  return names;
}

/// What a terminal would act on instead of showing becomes a space.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

void print_table(std::ostream& out, Stmt& statement) {
  const std::vector<std::string> names = names_of(statement);
  const std::size_t columns = names.size();
  std::vector<std::size_t> widths;
  std::vector<bool> numeric(columns, true);
  for (const std::string& name : names) widths.push_back(display_width(name));
  std::vector<std::vector<std::string>> rows;
  while (statement.step()) {
    std::vector<std::string>& row = rows.emplace_back();
    for (std::size_t c = 0; c < columns; ++c) {
      const int type = statement.column_type(static_cast<int>(c));
      if (type == SQLITE_TEXT || type == SQLITE_BLOB) numeric[c] = false;
      row.push_back(printable(value_text(statement, static_cast<int>(c), "NULL")));
      widths[c] = std::max(widths[c], display_width(row.back()));
    }
  }
  const auto print = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::string padding(widths[c] - display_width(cells[c]), ' ');
      if (c > 0) line += "  ";
      line += numeric[c] ? padding + cells[c] : cells[c] + padding;
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out << line << '\n';
  };
  print(names);
  std::vector<std::string> rule;
  for (const std::size_t width : widths) rule.emplace_back(width, '-');
  print(rule);
  for (const auto& row : rows) print(row);
}

std::string quoted_for_csv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void print_csv(std::ostream& out, Stmt& statement) {
  std::vector<std::string> cells = names_of(statement);
  const auto print = [&] {
    for (std::string& cell : cells) cell = quoted_for_csv(cell);
    out << join(cells, ",") << '\n';
  };
  print();
  while (statement.step()) {
    for (std::size_t c = 0; c < cells.size(); ++c)
      cells[c] = value_text(statement, static_cast<int>(c), "");
    print();
  }
}

void print_markdown(std::ostream& out, Stmt& statement) {
  const auto escaped = [](std::string text) {
    std::string safe;
    for (const char c : printable(std::move(text)))
      safe += c == '|' ? std::string("\\|") : std::string(1, c);
    return safe;
  };
  out << '|';
  for (const std::string& name : names_of(statement)) out << ' ' << escaped(name) << " |";
  out << "\n|";
  for (int c = 0; c < statement.columns(); ++c) out << "---|";
  out << '\n';
  while (statement.step()) {
    out << '|';
    for (int c = 0; c < statement.columns(); ++c)
      out << ' ' << escaped(value_text(statement, c, "NULL")) << " |";
    out << '\n';
  }
}

void print_json(std::ostream& out, Stmt& statement, bool lines) {
  std::vector<std::string> keys;
  for (const std::string& name : names_of(statement)) {
    std::string key = name;
    for (int number = 2; std::find(keys.begin(), keys.end(), key) != keys.end(); ++number) {
      key = fmt::format("{}:{}", name, number);
    }
    keys.push_back(key);
  }
  bool first = true;
  if (!lines) out << '[';
  while (statement.step()) {
    Json row = Json::object();
    for (std::size_t c = 0; c < keys.size(); ++c)
      row[keys[c]] = value_json(statement, static_cast<int>(c));
    // Text may be anything that SQLite let in; JSON is UTF-8.
    const std::string text = row.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (lines) {
      out << text << '\n';
    } else {
      out << (first ? "\n  " : ",\n  ") << text;
    }
    first = false;
  }
  if (!lines) out << (first ? "]\n" : "\n]\n");
}

}  // namespace

void print_rows(std::ostream& out, Stmt& statement, std::string_view format) {
  if (format == "table") return print_table(out, statement);
  if (format == "csv") return print_csv(out, statement);
  if (format == "md") return print_markdown(out, statement);
  if (format == "json") return print_json(out, statement, false);
  if (format == "jsonl") return print_json(out, statement, true);
  throw std::logic_error("no row format of this name");
}

}  // namespace preval
