#include "store/merge_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "base/text.h"

namespace preval {

namespace {

using Role = MergeRole;

bool is_key(Role role) { return role == Role::key; }
bool is_flag(Role role) { return role == Role::flag; }
bool is_compared(Role role) { return role == Role::key || role == Role::same; }
bool is_key_or_flag(Role role) { return role == Role::key || role == Role::flag; }
bool is_any(Role) { return true; }

/// "name = ?3", for every column of these roles; parameters are numbered like columns.
std::vector<std::string> terms(const MergeTable& table, bool (*wanted)(Role),
                               std::string_view form) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (!wanted(table.columns[i].role)) continue;
    list.push_back(fmt::format(fmt::runtime(form), fmt::arg("name", table.columns[i].name),
                               fmt::arg("number", i + 1)));
  }
  return list;
}

bool has(const MergeTable& table, bool (*wanted)(Role)) {
  return std::any_of(table.columns.begin(), table.columns.end(),
                     [&](const MergeColumn& each) { return wanted(each.role); });
}

std::string select_sql(const MergeTable& table, const std::vector<std::int64_t>& stale,
                       const std::string& order) {
  std::vector<std::string> columns;
  for (const MergeColumn& each : table.columns) {
    columns.push_back(
        each.read == nullptr
            ? fmt::format("\"{}\"", each.name)
            : fmt::format(fmt::runtime(each.read), fmt::arg("stale", fmt::join(stale, ", "))));
  }
  columns.emplace_back(table.numbered ? "id" : "0");
  return fmt::format("SELECT {} FROM \"{}\" ORDER BY {}", join(columns, ", "), table.name, order);
}

std::string insert_sql(const MergeTable& table) {
  const std::string keys = join(terms(table, is_key, "\"{name}\""), ", ");
  return fmt::format("INSERT INTO \"{}\" ({}) VALUES ({}){}", table.name,
                     join(terms(table, is_any, "\"{name}\""), ", "),
                     join(terms(table, is_any, "?{number}"), ", "),
                     keys.empty() ? "" : fmt::format(" ON CONFLICT ({}) DO NOTHING", keys));
}

std::string find_sql(const MergeTable& table, bool (*wanted)(Role)) {
  // A table without keys is never searched; the statement only has to be one.
  const std::string where = join(terms(table, wanted, "\"{name}\" IS ?{number}"), " AND ");
  return fmt::format("SELECT {} FROM \"{}\" WHERE {}", table.numbered ? "id" : "1", table.name,
                     where.empty() ? "0" : where);
}

std::string raise_sql(const MergeTable& table) {
  if (!has(table, is_flag)) return "SELECT 1";
  return fmt::format("UPDATE \"{}\" SET {} WHERE {}", table.name,
                     join(terms(table, is_flag, "\"{name}\" = max(\"{name}\", ?{number})"), ", "),
                     join(terms(table, is_key, "\"{name}\" IS ?{number}"), " AND "));
}

}  // namespace

const std::vector<MergeTable> kRegisteredTables = {
    {"deviation",
     false,
     {{"number", Role::key},
      {"field", Role::same},
      {"from", Role::same},
      {"to", Role::same},
      {"why", Role::same},
      {"at", Role::same},
      {"sha256", Role::same}}},
    {"published",
     false,
     {{"subset", Role::key},
      {"model", Role::same},
      {"n", Role::same},
      {"accuracy", Role::same},
      {"ece", Role::same},
      {"brier", Role::same},
      {"dataset_sha256", Role::same},
      {"source", Role::same}}},
    // Status, reason and what was found are the best of all: merge.cpp.
    {"subset",
     true,
     {{"dataset", Role::key},
      {"name", Role::key},
      {"scoring", Role::same},
      {"position"},
      {"type", Role::same},
      {"registered_sha256", Role::same},
      {"registered_records", Role::same},
      {"registered_families", Role::same},
      {"in_plan", Role::same}}},
    {"arm",
     true,
     {{"name", Role::key},
      {"position"},
      {"checkpoint", Role::same},
      {"backend", Role::same},
      {"kind", Role::same},
      {"read", Role::same},
      {"confirmatory", Role::same},
      {"source", Role::same},
      {"in_plan", Role::same}}},
    {"option_set", true, {{"sha256", Role::key}}},
    {"option",
     false,
     {{"set_id", Role::key, "option_set"}, {"position", Role::key}, {"key", Role::same}}},
    {"record",
     true,
     {{"subset_id", Role::key, "subset"},
      {"record_id", Role::key},
      {"sha256", Role::key},
      {"position", Role::same},
      {"family", Role::same},
      {"set_id", Role::same, "option_set"},
      {"target", Role::same},
      {"current", Role::flag, nullptr, "current AND subset_id NOT IN ({stale})"},
      {"row_sha256", Role::same}},
     &kRecordEvidence},
    {"prompt",
     true,
     {{"record_id", Role::key, "record"},
      {"variant", Role::key},
      {"form", Role::key},
      {"sha256", Role::key},
      {"current", Role::flag}}},
    // Which of them counts is settled when all are there.
    {"configuration",
     true,
     {{"arm_id", Role::key, "arm"},
      {"sha256", Role::key},
      {"settings", Role::same},
      {"identity", Role::same},
      {"current", Role::first, nullptr, "0"},
      {"set_aside", Role::flag}}},
    {"tokeniser", true, {{"sha256", Role::key}}},
    {"tokens",
     false,
     {{"tokeniser_id", Role::key, "tokeniser"},
      {"prompt_id", Role::key, "prompt"},
      {"tokens", Role::same},
      {"labels", Role::same}}},
};

const MergeTable kRunTable = {"run",
                              true,
                              {{"started_at"},
                               {"ended_at"},
                               {"outcome"},
                               {"exit_code"},
                               {"tool_version"},
                               {"git_commit"},
                               {"plan_sha256"},
                               {"effective_sha256"},
                               {"ledger_head"},
                               {"exploratory"},
                               {"record_limit"},
                               {"shard"},
                               {"shards"},
                               {"command"},
                               {"host"}}};

const std::vector<MergeTable> kAnswerTables = {
    // An answer's content, with its labels, is in its row digest.
    {"prediction",
     true,
     {{"configuration_id", Role::key, "configuration"},
      {"prompt_id", Role::key, "prompt"},
      {"repeat", Role::key},
      {"exploratory", Role::key},
      {"run_id", Role::first, "run"},
      {"predicted"},
      {"tied"},
      {"tied_at_bound"},
      {"label_mass"},
      {"entropy"},
      {"argmax_is_label"},
      {"labels_returned"},
      {"floor"},
      {"bound"},
      {"prompt_tokens"},
      {"requests"},
      {"latency_ms"},
      {"printed_sum"},
      {"sum_is_off"},
      {"choice_differs"},
      {"value"},
      {"row_sha256", Role::same}},
     &kPredictionEvidence},
    {"label",
     false,
     {{"prediction_id", Role::key, "prediction"},
      {"position", Role::key},
      {"option", Role::same},
      {"logprob", Role::same},
      {"probability", Role::same},
      {"source", Role::same}}},
    {"timing",
     true,
     {{"configuration_id", Role::key, "configuration"},
      {"prompt_id", Role::key, "prompt"},
      {"exploratory", Role::key},
      {"run_id", Role::first, "run"},
      {"latency_ms"},
      {"requests"},
      {"predicted"}}},
    {"usage",
     false,
     {{"run_id", Role::key, "run"},
      {"arm_id", Role::key, "arm"},
      {"calls"},
      {"prompt_tokens"},
      {"seconds"},
      {"usd"}}},
};

const std::vector<MergeTable> kRunLogTables = {
    {"failure",
     true,
     {{"run_id", Role::first, "run"},
      {"arm_id", Role::first, "arm"},
      {"stage"},
      {"configuration_id", Role::first, "configuration"},
      {"prompt_id", Role::first, "prompt"},
      {"repeat"},
      {"attempt"},
      {"final"},
      {"class"},
      {"http_status"},
      {"message"},
      {"body_sha256"},
      {"body_head"},
      {"at"},
      {"row_sha256"}}},
    {"stage",
     true,
     {{"run_id", Role::first, "run"},
      {"arm_id", Role::first, "arm"},
      {"name"},
      {"started_at"},
      {"ended_at"},
      {"seconds"},
      {"outcome"},
      {"detail"}}},
    {"event",
     true,
     {{"run_id", Role::first, "run"},
      {"arm_id", Role::first, "arm"},
      {"at"},
      {"kind"},
      {"detail"}}},
    {"finding",
     true,
     {{"run_id", Role::first, "run"},
      {"arm_id", Role::first, "arm"},
      {"capability"},
      {"ok"},
      {"verdict"},
      {"evidence"}}},
};

struct TableCopy::Statements {
  Statements(const MergeTable& table, Db& in, Db& out, const std::vector<std::int64_t>& stale,
             const std::string& order)
      : select(in, select_sql(table, stale, order)),
        insert(out, insert_sql(table)),
        find(out, find_sql(table, is_compared)),
        raise(out, raise_sql(table)) {}
  Stmt select, insert, find, raise;
};

TableCopy::TableCopy(const MergeTable& table, std::vector<MergeInput>& inputs, std::size_t index,
                     const std::vector<std::int64_t>& stale, Db& out, const std::string& order)
    : table_(table),
      inputs_(inputs),
      index_(index),
      out_(out),
      statements_(std::make_unique<Statements>(table, inputs.at(index).db, out, stale, order)) {}

TableCopy::~TableCopy() = default;

bool TableCopy::step() { return statements_->select.step(); }

std::int64_t TableCopy::integer(const char* column) const {
  for (std::size_t i = 0; i < table_.columns.size(); ++i) {
    if (std::string_view(table_.columns[i].name) == column)
      return statements_->select.integer(static_cast<int>(i));
  }
  throw std::logic_error(fmt::format("table {} has no column {}", table_.name, column));
}

bool TableCopy::put() {
  Stmt& insert = statements_->insert;
  bind(insert, is_any);
  insert.run();
  const std::int64_t from = statements_->select.integer(static_cast<int>(table_.columns.size()));
  if (out_.changes() == 1) {
    if (table_.numbered) inputs_[index_].ids[table_.name].add(from, out_.last_insert_rowid());
    return true;
  }
  Stmt& find = statements_->find;
  bind(find, is_compared);
  if (!find.step()) throw_differs();
  if (table_.numbered) inputs_[index_].ids[table_.name].add(from, find.integer(0));
  find.reset();
  if (has(table_, is_flag)) {
    bind(statements_->raise, is_key_or_flag);
    statements_->raise.run();
  }
  return false;
}

void TableCopy::bind(Stmt& statement, bool (*wanted)(Role)) {
  const Stmt& row = statements_->select;
  for (std::size_t i = 0; i < table_.columns.size(); ++i) {
    const MergeColumn& column = table_.columns[i];
    const int at = static_cast<int>(i);
    if (!wanted(column.role)) continue;
    if (column.refers == nullptr || row.is_null(at)) {
      statement.bind_column(at + 1, row, at);
      continue;
    }
    const auto there = inputs_[index_].ids[column.refers].find(row.integer(at));
    if (!there) throw std::logic_error(fmt::format("{} before {}", table_.name, column.refers));
    statement.bind(at + 1, *there);
  }
}

/// Names the row, and the other input where that can be told.
void TableCopy::throw_differs() {
  MergeInput& input = inputs_[index_];
  std::string row;
  if (table_.evidence != nullptr) {
    const std::int64_t id = statements_->select.integer(static_cast<int>(table_.columns.size()));
    const std::string_view id_column(table_.evidence->id);
    Stmt name(input.db, table_.evidence->sql(fmt::format("{} = {}", id_column, id)));
    if (name.step()) row = name.text(2);
  } else {
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < table_.columns.size(); ++i) {
      if (table_.columns[i].role == Role::key && table_.columns[i].refers == nullptr)
        keys.push_back(statements_->select.text(static_cast<int>(i)));
    }
    row = join(keys, ", ");
  }
  std::string other = "another store";
  Stmt find(out_, find_sql(table_, is_key));
  bind(find, is_key);
  if (table_.numbered && find.step()) {
    for (std::size_t i = 0; i < index_; ++i) {
      if (inputs_[i].ids[table_.name].leads_to(find.integer(0))) other = inputs_[i].path();
    }
  }
  throw Error(
      ErrorKind::drift,
      fmt::format("{} and {} say different things of {} {}", other, input.path(), table_.name, row),
      "one key has one content: leave out the store that is wrong, and what it lacks is "
      "asked again");
}

}  // namespace preval
