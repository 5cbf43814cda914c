// What a run says before it asks anything: its plan, arms, subsets, deviations, published figures.
#include <fmt/format.h>

#include "base/error.h"
#include "plan/published.h"
#include "store/store.h"

namespace preval {

namespace {

struct StoredPlan {
  std::string name, sha256;
  bool simulated = false;
};

std::optional<StoredPlan> stored_plan(Db& db) {
  Stmt query(db, "SELECT name, sha256, simulated FROM plan");
  if (!query.step()) return std::nullopt;
  return StoredPlan{query.text(0), query.text(1), query.integer(2) == 1};
}

void refuse_another_plan(Db& db, const OpenPlan& plan, bool simulated) {
  const std::optional<StoredPlan> stored = stored_plan(db);
  if (!stored) return;
  const std::string path = db.path().string();
  if (stored->sha256 != plan.sha256) {
    const bool same_name = stored->name == plan.effective.name;
    throw Error(
        ErrorKind::usage,
        fmt::format("{} holds plan {} (sha256 {:.12}…), this {} (sha256 {:.12}…)", path,
                    stored->name, stored->sha256,
                    same_name ? std::string("one differs") : "is " + plan.effective.name,
                    plan.sha256),
        simulated && same_name
            ? "a rehearsal of the plan as it was: remove that file, or name another with --db"
            : fmt::format("a store holds one plan: --db {}.db", plan.effective.name));
  }
  if (stored->simulated != simulated) {
    throw Error(ErrorKind::usage,
                fmt::format("{} holds {} answers, this run would add {} ones", path,
                            stored->simulated ? "simulated" : "measured",
                            simulated ? "simulated" : "measured"),
                "rehearsals have a store of their own: --db OTHER.db");
  }
}

void put_plan(Db& db, const OpenPlan& plan, bool simulated) {
  const bool locked = plan.lock && plan.lock->plan_sha256 == plan.sha256;
  Stmt put(db,
           "INSERT OR REPLACE INTO plan (id, name, version, sha256, effective_sha256, locked_at, "
           "ledger_head, json, simulated) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)");
  put.bind(1, plan.effective.name).bind(2, plan.effective.version).bind(3, plan.sha256);
  put.bind(4, plan.effective_sha256);
  put.bind(5, locked ? std::optional(plan.lock->locked_at) : std::nullopt);
  put.bind(6, plan.ledger_head.empty() ? std::nullopt : std::optional(plan.ledger_head));
  put.bind(7, plan.effective_json.dump()).bind(8, simulated);
  put.run();
}

void put_arms(Db& db, const Plan& plan, bool simulated) {
  db.exec("UPDATE arm SET in_plan = 0 WHERE source <> 'imported'");
  Stmt put(
      db,
      "INSERT INTO arm (name, position, checkpoint, backend, kind, read, confirmatory, source) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (name) DO UPDATE SET position = ?2, "
      "checkpoint = ?3, backend = ?4, kind = ?5, read = ?6, confirmatory = ?7, source = ?8, "
      "in_plan = 1");
  int position = 0;
  for (const Arm& arm : plan.arms) {
    const BackendSpec& backend = plan.backend(arm.backend);
    put.bind(1, arm.id).bind(2, position++).bind(3, arm.checkpoint).bind(4, arm.backend);
    put.bind(5, backend.kind).bind(6, to_text(backend.read)).bind(7, arm.confirmatory);
    put.bind(8, simulated ? "simulated" : "run");
    put.run();
  }
}

/// Answers of settings that the plan no longer has stop counting, whether their arm is run or not.
void retire_other_settings(Db& db, const Plan& plan) {
  Stmt retire(db,
              "UPDATE configuration SET current = 0 WHERE current = 1 AND settings <> ?2 AND "
              "arm_id = (SELECT id FROM arm WHERE name = ?1)");
  for (const Arm& arm : plan.arms) {
    retire.bind(1, arm.id).bind(2, answer_settings(plan, arm).dump()).run();
  }
}

void put_subsets(Db& db, const Plan& plan) {
  db.exec("UPDATE subset SET in_plan = 0");
  Stmt put(
      db,
      "INSERT INTO subset (dataset, scoring, name, position, type, registered_sha256, "
      "registered_records, registered_families) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) "
      "ON CONFLICT (dataset, name) DO UPDATE SET scoring = ?2, position = ?4, type = ?5, "
      "registered_sha256 = ?6, registered_records = ?7, registered_families = ?8, in_plan = 1");
  int position = 0;
  for (const DatasetGroup& group : plan.datasets) {
    for (const Subset& subset : group.subsets) {
      put.bind(1, group.id).bind(2, to_text(group.scoring)).bind(3, subset.id).bind(4, position++);
      put.bind(5, to_text(subset.type)).bind(6, subset.sha256).bind(7, subset.records);
      put.bind(8, subset.families);
      put.run();
    }
  }
  // Other bytes were registered (a deviation): what was verified is not what is registered now.
  db.exec(
      "UPDATE subset SET status = 'missing', found_sha256 = NULL, problem = NULL "
      "WHERE status = 'ok' AND found_sha256 IS NOT registered_sha256");
}

void put_deviations(Db& db, const OpenPlan& plan) {
  db.exec("DELETE FROM deviation");
  Stmt put(db,
           "INSERT INTO deviation (number, field, \"from\", \"to\", why, at, sha256) "
           "VALUES (?, ?, ?, ?, ?, ?, ?)");
  for (const Deviation& each : plan.deviations) {
    put.bind(1, each.number).bind(2, each.field).bind(3, each.from.dump()).bind(4, each.to.dump());
    put.bind(5, each.why).bind(6, each.at).bind(7, each.sha256);
    put.run();
  }
}

void put_published(Db& db, const Json& json) {
  db.exec("DELETE FROM published");
  if (json.is_null()) return;
  const PublishedFigures figures = parse_published(json.dump(), "published figures");
  Stmt put(db,
           "INSERT INTO published (subset, model, n, accuracy, ece, brier, dataset_sha256, source) "
           "VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  for (const auto& [subset, figure] : figures.subsets) {
    put.bind(1, subset).bind(2, figures.model).bind(3, figure.n).bind(4, figure.accuracy);
    put.bind(5, figure.ece).bind(6, figure.brier).bind(7, figure.dataset_sha256);
    put.bind(8, figures.source);
    put.run();
  }
}

std::int64_t put_run(Db& db, const OpenPlan& plan, const RunInfo& info, const std::string& now) {
  Stmt put(
      db,
      "INSERT INTO run (started_at, tool_version, git_commit, plan_sha256, effective_sha256, "
      "ledger_head, exploratory, record_limit, host, command, shard, shards) VALUES (?, ?, ?, ?, "
      "?, ?, ?, ?, ?, ?, ?, ?)");
  put.bind(1, now).bind(2, info.tool_version);
  put.bind(3, info.git_commit.empty() ? std::nullopt : std::optional(info.git_commit));
  put.bind(4, plan.sha256).bind(5, plan.effective_sha256);
  put.bind(6, plan.ledger_head.empty() ? std::nullopt : std::optional(plan.ledger_head));
  put.bind(7, info.exploratory).bind(8, info.limit).bind(9, info.host).bind(10, info.command);
  if (info.shard) put.bind(11, info.shard->index).bind(12, info.shard->of);
  put.run();
  return db.last_insert_rowid();
}

/// A run goes on where the last one stopped unless that one was complete or of another shard. One
/// that never ended was killed, or its machine went down.
void mark_resume(Db& db, std::int64_t run, const std::string& now) {
  Stmt last(
      db,
      "SELECT id, started_at, ended_at, outcome, (shard, shards) IS (SELECT shard, shards FROM run "
      "WHERE id = ?1) FROM run WHERE id < ?1 ORDER BY id DESC LIMIT 1");
  last.bind(1, run);
  if (!last.step()) return;
  const std::int64_t before = last.integer(0);
  const std::string started = last.text(1);
  const bool ended = !last.is_null(2);
  const std::string outcome = last.text(3);
  const bool same_part = last.integer(4) == 1;
  last.reset();
  if (ended && (outcome == "complete" || !same_part)) return;
  db.exec("UPDATE run SET outcome = 'killed' WHERE ended_at IS NULL AND outcome IS NULL AND id < " +
          std::to_string(run));
  Stmt put(db, "INSERT INTO event (run_id, at, kind, detail) VALUES (?, ?, 'resume', ?)");
  put.bind(1, run).bind(2, now);
  put.bind(
      3, ended ? fmt::format("goes on after run {} ({})", before, outcome)
               : fmt::format("run {}, started {}, never ended: it was killed, or the machine went "
                             "down; what it had committed is kept",
                             before, started));
  put.run();
}

/// A plan is registered once. Whoever takes its lock away and locks it again has registered it
/// after answers that the first lock was for.
void refuse_another_lock(Db& db, const OpenPlan& plan) {
  Stmt stored(db,
              "SELECT locked_at, (SELECT min(started_at) FROM run WHERE exploratory = 0) FROM plan "
              "WHERE locked_at IS NOT NULL");
  if (!plan.lock || !stored.step() || stored.is_null(1)) return;
  if (stored.text(0) == plan.lock->locked_at) return;
  throw Error(ErrorKind::drift,
              fmt::format("{} was locked at {}; the answers in {}, of which the first run began at "
                          "{}, were read under the lock of {}",
                          plan.path.string(), plan.lock->locked_at, db.path().string(),
                          stored.text(1), stored.text(0)),
              "restore that lock, or name another store with --db");
}

/// Deviations are only ever added: a ledger that lacks one the store has acted on was cut.
void refuse_shorter_ledger(Db& db, const OpenPlan& plan) {
  const std::vector<LostDeviation> lost = lost_deviations(db, plan);
  if (lost.empty()) return;
  throw Error(ErrorKind::drift,
              fmt::format("deviation {}, which {} was run under, is not in the ledger any more",
                          lost.front().number, db.path().string()),
              "restore the ledger; what is taken back is written down as a deviation, too");
}

}  // namespace

std::vector<LostDeviation> lost_deviations(Db& db, const OpenPlan& plan) {
  std::vector<LostDeviation> lost;
  Stmt stored(db, "SELECT number, sha256 FROM deviation ORDER BY number");
  for (std::size_t i = 0; stored.step(); ++i) {
    const std::string found =
        i < plan.deviations.size() ? plan.deviations[i].sha256 : std::string();
    if (found != stored.text(1)) lost.push_back({stored.integer(0), stored.text(1), found});
  }
  return lost;
}

std::int64_t Store::begin_run(const OpenPlan& plan, const Json& published, const RunInfo& info) {
  flush();
  refuse_another_plan(db_, plan, info.simulated);
  if (!info.exploratory) {
    refuse_another_lock(db_, plan);
    refuse_shorter_ledger(db_, plan);
  }
  Tx tx(db_);
  put_plan(db_, plan, info.simulated);
  put_arms(db_, plan.effective, info.simulated);
  retire_other_settings(db_, plan.effective);
  put_subsets(db_, plan.effective);
  put_deviations(db_, plan);
  put_published(db_, published);
  const std::string started = now();
  run_ = put_run(db_, plan, info, started);
  mark_resume(db_, run_, started);
  tx.commit();
  exploratory_ = info.exploratory;
  return run_;
}

void Store::end_run(const std::string& outcome, int exit_code) {
  flush();
  Stmt end(db_, "UPDATE run SET ended_at = ?, outcome = ?, exit_code = ? WHERE id = ?");
  end.bind(1, now()).bind(2, outcome).bind(3, exit_code).bind(4, run_);
  end.run();
}

}  // namespace preval
