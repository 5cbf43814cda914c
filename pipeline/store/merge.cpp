#include "store/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "store/merge_check.h"
#include "store/merge_input.h"
#include "store/merge_tables.h"

namespace preval {

namespace {

constexpr int kRowsPerCommit = 50'000;

/// A run of the new store, and of which inputs it was a run.
struct MergedRun {
  std::string digest;
  std::vector<std::pair<std::size_t, std::int64_t>> from;  // input, run.id there
};

struct InputRun {
  std::int64_t id = 0;
  std::string started_at, digest;
};

/// The runs of a store, each with a digest of all that it says of itself: its row, its stages and
/// events. Two stores that were copied from one another know their common runs by it.
std::vector<InputRun> runs_of(Db& db) {
  std::map<std::int64_t, TypedRow> said;
  std::vector<InputRun> runs;
  Stmt rows(db, "SELECT id, started_at, * FROM run ORDER BY id");
  while (rows.step()) {
    runs.push_back({rows.integer(0), rows.text(1), {}});
    TypedRow& row = said[rows.integer(0)];
    for (int column = 3; column < rows.columns(); ++column) row.column(rows, column);
  }
  for (const char* sql :
       {"SELECT g.run_id, a.name, g.name, g.started_at, g.ended_at, g.seconds, g.outcome, g.detail "
        "FROM stage g LEFT JOIN arm a ON a.id = g.arm_id ORDER BY g.id",
        "SELECT e.run_id, a.name, e.at, e.kind, e.detail FROM event e LEFT JOIN arm a ON a.id = "
        "e.arm_id WHERE e.kind <> 'merged' ORDER BY e.id"}) {
    Stmt log(db, sql);
    while (log.step()) {
      TypedRow& row = said[log.integer(0)];
      for (int column = 1; column < log.columns(); ++column) row.column(log, column);
    }
  }
  for (InputRun& run : runs) run.digest = said[run.id].sha256();
  return runs;
}

/// All runs in the order of their starts. Those of one store keep theirs, whatever its clock said.
std::vector<MergedRun> runs_in_order(std::vector<MergeInput>& inputs) {
  std::vector<std::vector<InputRun>> waiting;
  for (MergeInput& input : inputs) waiting.push_back(runs_of(input.db));
  std::vector<std::size_t> upcoming(inputs.size(), 0);
  std::vector<MergedRun> merged;
  for (;;) {
    std::optional<std::size_t> next;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (upcoming[i] == waiting[i].size()) continue;
      if (!next || waiting[i][upcoming[i]].started_at < waiting[*next][upcoming[*next]].started_at)
        next = i;
    }
    if (!next) return merged;
    const InputRun& run = waiting[*next][upcoming[*next]++];
    const auto known = std::find_if(merged.begin(), merged.end(), [&](const MergedRun& each) {
      return each.digest == run.digest &&
             std::none_of(each.from.begin(), each.from.end(),
                          [&](const auto& from) { return from.first == *next; });
    });
    if (known != merged.end()) {
      known->from.emplace_back(*next, run.id);
    } else {
      merged.push_back({run.digest, {{*next, run.id}}});
    }
  }
}

int rank_of_subset(const std::string& status) {
  return status == "ok" ? 2 : status == "mismatch" ? 1 : 0;
}

int rank_of_arm(const std::string& status) {
  if (status == "started") return 3;
  return status == "failed" ? 2 : status == "not run" ? 1 : 0;
}

class Merge {
 public:
  Merge(Clock& clock, std::vector<MergeInput>& inputs, Db& out, const std::function<bool()>& stop)
      : clock_(clock), inputs_(inputs), out_(out), stop_(stop) {}

  Merged run() {
    Merged result;
    for (const MergeInput& each : inputs_)
      result.origins.push_back({each.digest.digest, each.seal});
    tx_.emplace(out_);
    put_plan();
    find_stale_subsets();
    for (const MergeTable& table : kRegisteredTables) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) copy_whole(table, i);
    }
    const std::vector<MergedRun> runs = runs_in_order(inputs_);
    put_runs(runs);
    for (const MergeTable& table : kAnswerTables) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const std::int64_t there = copy_whole(table, i);
        if (std::string_view(table.name) == "prediction") result.kept_once += there;
      }
    }
    for (const MergeTable& table : kRunLogTables) copy_by_run(table, runs);
    say_where_runs_are_from(runs);
    settle_arms();
    settle_subsets();
    settle_configurations();
    settle_prompts();
    result.answers = query_integer(out_, "SELECT count(*) FROM prediction");
    tx_->commit();
    return result;
  }

 private:
  /// A million rows in one transaction would stand in the log twice.
  void wrote_a_row() {
    if (++rows_ % kRowsPerCommit != 0) return;
    if (stop_ && stop_()) throw Error(ErrorKind::interrupted, "stopped: nothing was merged");
    tx_->commit();
    tx_.emplace(out_);
  }

  const std::vector<std::int64_t>& stale(std::size_t input) const { return stale_[input]; }

  /// Returns how many rows were there already.
  std::int64_t copy_whole(const MergeTable& table, std::size_t input) {
    std::int64_t there = 0;
    TableCopy copy(table, inputs_, input, stale(input), out_, table.numbered ? "id" : "1, 2");
    while (copy.step()) {
      there += copy.put() ? 0 : 1;
      wrote_a_row();
    }
    return there;
  }

  /// What happened stays in the order of the runs, so that the last word on a read is the last.
  void copy_by_run(const MergeTable& table, const std::vector<MergedRun>& runs) {
    std::vector<std::unique_ptr<TableCopy>> copies;
    std::vector<bool> there;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      copies.push_back(
          std::make_unique<TableCopy>(table, inputs_, i, stale(i), out_, "run_id, id"));
      there.push_back(copies.back()->step());
    }
    for (const MergedRun& run : runs) {
      for (const auto& from : run.from) {
        const std::size_t input = from.first;
        TableCopy& copy = *copies[input];
        for (; there[input] && copy.integer("run_id") == from.second; there[input] = copy.step()) {
          if (from != run.from.front()) continue;  // a run that two stores share happened once
          copy.put();
          wrote_a_row();
        }
      }
    }
  }

  void put_plan() {
    Stmt plan(inputs_.front().db,
              "SELECT id, name, version, sha256, effective_sha256, ledger_head, json, simulated "
              "FROM plan");
    plan.step();
    Stmt put(out_,
             "INSERT INTO plan (id, name, version, sha256, effective_sha256, ledger_head, json, "
             "simulated, locked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (int column = 0; column < plan.columns(); ++column)
      put.bind_column(column + 1, plan, column);
    std::optional<std::string> locked_at;
    for (const MergeInput& each : inputs_) locked_at = locked_at ? locked_at : each.locked_at;
    put.bind(9, locked_at).run();
  }

  /// Subsets that another store has verified and this one has not: what this one knows as their
  /// records are those of an earlier registration.
  void find_stale_subsets() {
    std::map<std::string, int> best;
    const auto for_each = [&](MergeInput& input, const auto& what) {
      Stmt query(input.db, "SELECT dataset || '/' || name, status, id FROM subset");
      while (query.step()) what(query.text(0), rank_of_subset(query.text(1)), query.integer(2));
    };
    for (MergeInput& input : inputs_) {
      for_each(input, [&](const std::string& name, int rank, std::int64_t) {
        best[name] = std::max(best[name], rank);
      });
    }
    for (MergeInput& input : inputs_) {
      stale_.emplace_back();
      for_each(input, [&](const std::string& name, int rank, std::int64_t id) {
        if (rank < best[name]) stale_.back().push_back(id);
      });
    }
  }

  void put_runs(const std::vector<MergedRun>& runs) {
    std::vector<std::unique_ptr<TableCopy>> copies;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      copies.push_back(std::make_unique<TableCopy>(kRunTable, inputs_, i, stale(i), out_, "id"));
    }
    for (const MergedRun& run : runs) {
      for (const auto& [input, id] : run.from) {
        copies[input]->step();
        if (input == run.from.front().first) {
          copies[input]->put();
        } else {
          const auto& first = run.from.front();
          inputs_[input].ids["run"].add(id, *inputs_[first.first].ids["run"].find(first.second));
        }
      }
    }
  }

  /// Runs have other numbers now, and what is written of them names the old ones.
  void say_where_runs_are_from(const std::vector<MergedRun>& runs) {
    Stmt put(out_, "INSERT INTO event (run_id, at, kind, detail) VALUES (?, ?, 'merged', ?)");
    const std::string now = utc_text(clock_.now());
    for (const MergedRun& run : runs) {
      const auto& [input, id] = run.from.front();
      put.bind(1, *inputs_[input].ids["run"].find(id)).bind(2, now);
      put.bind(3, fmt::format("run {} of the store with the logical digest {}", id,
                              inputs_[input].digest.digest));
      put.run();
    }
  }

  /// The best that any store says of an arm; of equally good ones the last.
  void settle_arms() {
    std::map<std::string, int> best;
    Stmt put(out_, "UPDATE arm SET status = ?, reason = ? WHERE name = ?");
    for (MergeInput& input : inputs_) {
      Stmt query(input.db, "SELECT name, status, reason FROM arm");
      while (query.step()) {
        const int rank = rank_of_arm(query.text(1));
        if (rank < best[query.text(0)]) continue;
        best[query.text(0)] = rank;
        put.bind(1, query.text(1)).bind(2, query.text_or_null(2)).bind(3, query.text(0)).run();
      }
    }
  }

  void settle_subsets() {
    Stmt put(out_,
             "UPDATE subset SET status = ?, found_sha256 = ?, problem = ? WHERE dataset = ? AND "
             "name = ?");
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      Stmt query(inputs_[i].db,
                 "SELECT status, found_sha256, problem, dataset, name, id FROM subset");
      while (query.step()) {
        if (std::count(stale_[i].begin(), stale_[i].end(), query.integer(5)) > 0) continue;
        for (int column = 0; column < 5; ++column) put.bind_column(column + 1, query, column);
        put.run();
      }
    }
  }

  void settle_configurations() {
    Stmt put(out_,
             "UPDATE configuration SET current = 1 WHERE sha256 = ? AND arm_id = (SELECT id FROM "
             "arm WHERE name = ?)");
    for (const auto& [arm, sha256] : counting_configurations(inputs_))
      put.bind(1, sha256).bind(2, arm).run();
  }

  /// A machine that had only some records to ask has kept an older wording of the others. Of two
  /// wordings that one counts which the counting configuration was asked in.
  void settle_prompts() {
    out_.exec(
        "CREATE TEMP TABLE reworded AS SELECT record_id, variant, form FROM prompt WHERE current = "
        "1 GROUP BY record_id, variant, form HAVING count(*) > 1;"
        "UPDATE prompt SET current = 0 WHERE current = 1 AND (record_id, variant, form) IN "
        "(SELECT record_id, variant, form FROM reworded) AND NOT EXISTS (SELECT 1 FROM prediction "
        "p JOIN configuration c ON c.id = p.configuration_id WHERE p.prompt_id = prompt.id AND "
        "c.current = 1);"
        "DROP TABLE reworded");
  }

  Clock& clock_;
  std::vector<MergeInput>& inputs_;
  Db& out_;
  const std::function<bool()>& stop_;
  std::optional<Tx> tx_;
  std::vector<std::vector<std::int64_t>> stale_;  // per input
  std::int64_t rows_ = 0;
};

}  // namespace

NewStore::NewStore(Files& files, const std::filesystem::path& path)
    : path_(path), part_(path.string() + ".part"), lock_(path) {
  for (const std::filesystem::path& taken : {path, seal_path(path)}) {
    if (!files.exists(taken)) continue;
    throw Error(ErrorKind::usage, fmt::format("{} is there already", taken.generic_string()),
                "a merged store is a new one: name another, or move that away");
  }
  remove_part();
  db_.emplace(open_store(part_, Db::Mode::create));
}

NewStore::~NewStore() {
  db_.reset();
  remove_part();
}

void NewStore::remove_part() const {
  std::error_code ignored;
  for (const char* ending : {"", "-wal", "-shm", "-journal"})
    std::filesystem::remove(part_.string() + ending, ignored);
}

void NewStore::publish() {
  db_.reset();
  std::error_code problem;
  if (std::filesystem::exists(part_.string() + "-wal", problem)) {
    throw Error(ErrorKind::io, fmt::format("{} could not be completed", part_.string()),
                "is the disk full?");
  }
  std::filesystem::rename(part_, path_, problem);
  if (problem) {
    throw Error(ErrorKind::io, fmt::format("{} could not be named {}: {}", part_.string(),
                                           path_.string(), problem.message()));
  }
}

Merged merge_stores(Files& files, Clock& clock, const std::vector<std::filesystem::path>& paths,
                    Db& out, const std::function<bool()>& stop) {
  std::vector<MergeInput> opened;
  for (const std::filesystem::path& path : paths) {
    for (const MergeInput& before : opened) {
      std::error_code unknown;
      if (!std::filesystem::equivalent(before.db.path(), path, unknown)) continue;
      throw Error(ErrorKind::usage, fmt::format("{} is named twice", path.generic_string()),
                  "name every store once");
    }
    if (stop && stop()) throw Error(ErrorKind::interrupted, "stopped: nothing was merged");
    opened.push_back(open_input(files, path));
  }
  refuse_what_does_not_fit(opened);
  // In the order in which they were begun, so that the order of the call says nothing.
  std::vector<MergeInput*> order;
  for (MergeInput& each : opened) order.push_back(&each);
  std::stable_sort(order.begin(), order.end(), [](const MergeInput* a, const MergeInput* b) {
    return std::tie(a->begun, a->digest.digest, a->seal) <
           std::tie(b->begun, b->digest.digest, b->seal);
  });
  std::vector<MergeInput> inputs;
  for (MergeInput* each : order) inputs.push_back(std::move(*each));
  return Merge(clock, inputs, out, stop).run();
}

}  // namespace preval
