#include "audit/store_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "score/score.h"
#include "store/bytes.h"
#include "store/digest.h"
#include "store/seal.h"
#include "store/store.h"

namespace preval {

namespace {

constexpr std::size_t kRowsNamed = 20;  // of one kind; the rest is counted

/// Tables that scoring fills, with the columns that name a row.
struct ScoreTable {
  const char *name, *key;
};
constexpr std::array kScoreTables{ScoreTable{"score_accuracy", "scope_kind || ' ' || scope"},
                                  ScoreTable{"score_calibration", "scope"},
                                  ScoreTable{"score_bin", "scope || ', bin ' || bin"},
                                  ScoreTable{"score_bounds", "scope"},
                                  ScoreTable{"score_median", "dataset"},
                                  ScoreTable{"score_agreement", "scope_kind || ' ' || scope"},
                                  ScoreTable{"score_published", "scope_kind || ' ' || scope"}};

class StoreAudit {
 public:
  StoreAudit(Db& db, Files& files, const OpenPlan& plan, AuditResult& result)
      : db_(db), files_(files), plan_(plan), result_(result) {}

  void run() {
    if (!holds_this_plan()) return;
    check_file();
    check_schema();
    check_registration();
    check_configurations();
    check_records();
    check_seals();
    check_scores();
  }

 private:
  void add(const std::string& field, const std::string& registered, const std::string& found,
           const std::string& row = {}) {
    result_.findings.push_back({"store", field, registered, found, row});
  }

  std::string store() const { return db_.path().generic_string(); }

  bool holds_this_plan() {
    Stmt stored(db_, "SELECT name, sha256 FROM plan");
    if (!stored.step()) {
      const bool had_one = query_integer(db_,
                                         "SELECT (SELECT count(*) FROM run) + (SELECT count(*) "
                                         "FROM seal)") > 0;
      if (had_one) {
        add(store(), "the plan that its runs were for", "none: its row was taken out");
      } else {
        result_.unchecked.push_back(fmt::format("store {}: holds no plan", store()));
      }
      return false;
    }
    if (stored.text(1) != plan_.sha256) {
      if (stored.text(0) == plan_.effective.name) {
        add(store(), fmt::format("plan {} with sha256 {}", plan_.effective.name, plan_.sha256),
            fmt::format("a plan of that name with sha256 {}", stored.text(1)));
      } else {
        result_.unchecked.push_back(
            fmt::format("store {}: holds plan {}", store(), stored.text(0)));
      }
      return false;
    }
    return true;
  }

  void check_file() {
    ++result_.checked;
    Stmt whole(db_, "PRAGMA integrity_check");
    for (std::size_t n = 0; whole.step() && n < kRowsNamed; ++n) {
      if (whole.text(0) != "ok") add(store(), "a whole SQLite file", whole.text(0));
    }
    Stmt keys(db_, "PRAGMA foreign_key_check");
    for (std::size_t n = 0; keys.step() && n < kRowsNamed; ++n) {
      add(store(), "a row that exists",
          fmt::format("table {} refers to one of {} that does not", keys.text(0), keys.text(2)),
          fmt::format("{} {}", keys.text(0), keys.is_null(1) ? "?" : keys.text(1)));
    }
  }

  /// A view that was replaced gives other answers than the tables under it.
  void check_schema() {
    std::size_t compared = 0;
    for (const SchemaDifference& each : schema_differences(db_, &compared)) {
      add(each.name, each.found ? each.shipped.value_or("none") : "as preval makes it",
          each.found.value_or("none"));
    }
    result_.checked += static_cast<int>(compared);
  }

  /// What the store says of lock, deviations and arms against plan, lock and ledger.
  void check_registration() {
    ++result_.checked;
    Stmt plan(db_,
              "SELECT name, version, coalesce(locked_at, ''), simulated, (SELECT "
              "coalesce(min(started_at), '') FROM run WHERE exploratory = 0) FROM plan");
    plan.step();
    const std::string locked_at = plan_.lock ? plan_.lock->locked_at : std::string();
    const auto same = [&](const std::string& what, const std::string& registered,
                          const std::string& found) {
      if (registered != found) add(what, registered, found);
    };
    same("plan name", plan_.effective.name, plan.text(0));
    same("plan version", plan_.effective.version, plan.text(1));
    check_stored_plan();
    const std::string first_run = plan.text(4);
    const bool simulated = plan.integer(3) == 1;
    if (!first_run.empty() && !simulated) {
      same("time of the lock", plan.text(2).empty() ? "none" : plan.text(2),
           locked_at.empty() ? "none" : locked_at);
      if (!plan.text(2).empty() && plan.text(2) > first_run) {
        add("time of the lock", "before the first run, " + first_run, plan.text(2));
      }
    }
    check_ledger();
    check_arms(simulated);
  }

  /// Reports are made from the plan's copy in the store.
  void check_stored_plan() {
    ++result_.checked;
    Stmt plan(db_, "SELECT json, effective_sha256 FROM plan");
    plan.step();
    std::string found;
    try {
      found = canonical_sha256(parse_json(plan.text(0), "plan.json"));
    } catch (const Error& error) {
      found = error.message();
    }
    // A rehearsal's servers are simulations: its copy is not the plan's own text.
    if (found != plan.text(1)) add("plan, json", plan.text(1), found);
  }

  void check_ledger() {
    result_.checked += static_cast<int>(query_integer(db_, "SELECT count(*) FROM deviation"));
    for (const LostDeviation& each : lost_deviations(db_, plan_)) {
      add(fmt::format("deviation {}", each.number), each.stored,
          each.found.empty() ? "not in the ledger" : each.found);
    }
  }

  void check_arms(bool simulated) {
    Stmt stored(db_,
                "SELECT name, checkpoint, backend, kind, read, confirmatory, source FROM arm WHERE "
                "in_plan = 1 AND source <> 'imported'");
    while (stored.step()) {
      ++result_.checked;
      const std::string name = "arm " + stored.text(0);
      const auto arm = std::find_if(plan_.effective.arms.begin(), plan_.effective.arms.end(),
                                    [&](const Arm& each) { return each.id == stored.text(0); });
      if (arm == plan_.effective.arms.end()) {
        add(name, "none", "an arm");
        continue;
      }
      const BackendSpec& backend = plan_.effective.backend(arm->backend);
      // A rehearsal takes simulations in place of the plan's servers, for all arms or for none.
      const auto row = [](const std::string& checkpoint, const std::string& on,
                          const std::string& kind, std::string_view read, bool confirmatory,
                          std::string_view source) {
        return fmt::format("{} on {} ({}, {}), {}, source {}", checkpoint, on, kind, read,
                           confirmatory ? "confirmatory" : "exploratory", source);
      };
      const std::string registered =
          row(arm->checkpoint, arm->backend, simulated ? "simulated" : backend.kind,
              to_text(backend.read), arm->confirmatory, simulated ? "simulated" : "run");
      const std::string found = row(stored.text(1), stored.text(2), stored.text(3), stored.text(4),
                                    stored.integer(5) == 1, stored.text(6));
      if (registered != found) add(name, registered, found);
    }
    if (simulated) return;
    Stmt drawn(db_,
               "SELECT a.name FROM configuration c JOIN arm a ON a.id = c.arm_id WHERE "
               "json_extract(c.identity, '$.engine') = 'simulated' AND a.kind <> 'simulated'");
    while (drawn.step()) {
      add("arm " + drawn.text(0), "answers of a server", "answers that were simulated");
    }
  }

  /// Settings and identity against the digest that answers are kept under.
  void check_configurations() {
    Stmt query(db_,
               "SELECT c.id, a.name, c.settings, c.identity, c.sha256 FROM configuration c JOIN "
               "arm a ON a.id = c.arm_id");
    while (query.step()) {
      ++result_.checked;
      const std::string where =
          fmt::format("configuration {} of arm {}", query.integer(0), query.text(1));
      std::string found;
      try {
        found = configuration_sha256(parse_json(query.text(2), where),
                                     parse_json(query.text(3), where));
      } catch (const Error& error) {
        found = error.message();
      }
      if (found != query.text(4)) add(where, query.text(4), found);
    }
  }

  /// A verified subset has as many current records as the plan registers.
  void check_records() {
    Stmt query(db_,
               "SELECT s.name, s.registered_records, (SELECT count(*) FROM record r WHERE "
               "r.subset_id = s.id AND r.current = 1) FROM subset s WHERE s.in_plan = 1 AND "
               "s.status = 'ok'");
    while (query.step()) {
      ++result_.checked;
      if (query.integer(1) == query.integer(2)) continue;
      add("records of subset " + query.text(0), std::to_string(query.integer(1)),
          std::to_string(query.integer(2)));
    }
  }

  void check_seals() {
    std::map<std::string, std::size_t> changed_rows;
    const LogicalDigest now = logical_digest(db_, [&](const ChangedRow& row) {
      if (++changed_rows[row.table] > kRowsNamed) return;
      add(row.table + " " + row.row, row.stored, row.computed, row.row);
    });
    result_.checked += static_cast<int>(now.rows);
    for (const auto& [table, count] : changed_rows) {
      if (count > kRowsNamed) {
        add(table + " rows", "as they were written", fmt::format("{} changed in all", count));
      }
    }
    std::vector<Seal> seals;
    try {
      seals = read_seals(db_);
    } catch (const Error& error) {
      return add("seal", "seals as preval wrote them", error.message());
    }
    if (seals.empty()) {
      if (const auto kept = seal_path(db_.path()); files_.exists(kept)) {
        return add(kept.generic_string(), "the last seal of this store", "a store without seals");
      }
      result_.unchecked.push_back(fmt::format("seal of store {}: it was never sealed", store()));
      return;
    }
    check_chain(seals);
    check_last_seal(seals.back(), now);
    check_seal_file(seals.back());
  }

  void check_chain(const std::vector<Seal>& seals) {
    std::string previous;
    for (const Seal& seal : seals) {
      ++result_.checked;
      const std::string name = fmt::format("seal {}", seal.number);
      if (const std::string found = seal.computed_sha256(); found != seal.sha256) {
        add(name, seal.sha256, found);
      }
      if (seal.previous != previous) add(name + ", previous", previous, seal.previous);
      if (seal.plan_sha256 != plan_.sha256) add(name + ", plan", plan_.sha256, seal.plan_sha256);
      previous = seal.sha256;
    }
  }

  void check_last_seal(const Seal& seal, const LogicalDigest& now) {
    ++result_.checked;
    Stmt last(db_,
              "SELECT ended_at IS NULL, coalesce(outcome, '') FROM run ORDER BY id DESC LIMIT 1");
    const bool unsealed_run = last.step() && last.integer(0) == 1;
    if (seal.digest == now.digest) return;
    if (unsealed_run) {
      result_.unchecked.push_back(fmt::format(
          "evidence since seal {}: the last run did not end, and sealed nothing", seal.number));
      return;
    }
    add("logical digest", seal.digest, now.digest);
    for (const GroupDifference& each : group_differences(seal.groups, now.groups)) {
      add(each.group, each.before, each.now);
    }
  }

  void check_seal_file(const Seal& seal) {
    const std::filesystem::path path = seal_path(db_.path());
    if (!files_.exists(path)) {
      result_.unchecked.push_back(fmt::format("{}: not there", path.generic_string()));
      return;
    }
    ++result_.checked;
    try {
      const Seal kept = parse_seal(files_.read(path), path.generic_string());
      if (kept.sha256 != seal.sha256) add(path.generic_string(), seal.sha256, kept.sha256);
      if (kept.computed_sha256() != kept.sha256) {
        add(path.generic_string(), kept.sha256, kept.computed_sha256());
      }
    } catch (const Error& error) {
      add(path.generic_string(), seal.sha256, error.message());
    }
  }

  /// Scores are computed anew into temporary tables, which hide the stored ones from whoever writes
  /// without naming a schema; the file stays as it is. On the way every answer's probabilities are
  /// computed anew from its log-probabilities.
  void check_scores() {
    if (query_integer(db_, "SELECT count(*) FROM scored") == 0) {
      for (const ScoreTable& table : kScoreTables) {
        if (query_integer(db_, fmt::format("SELECT count(*) FROM {}", table.name)) > 0) {
          return add(table.name, "no scores, since none were computed", "rows");
        }
      }
      result_.unchecked.push_back(fmt::format("scores of store {}: none", store()));
      return;
    }
    for (const ScoreTable& table : kScoreTables) make_temporary(table.name);
    make_temporary("scored");
    SystemClock clock;
    try {
      recompute_scores(db_, clock, "audit");
    } catch (const Error& error) {
      return add("answers", "answers as a run wrote them", error.message());
    }
    for (const ScoreTable& table : kScoreTables) {
      ++result_.checked;
      compare(table, "main", "temp", "is stored, and does not follow from the answers");
      compare(table, "temp", "main", "follows from the answers, and is not stored");
    }
  }

  void make_temporary(std::string_view table) {
    db_.exec(fmt::format("CREATE TEMP TABLE {0} AS SELECT * FROM main.{0} WHERE 0", table));
  }

  void compare(const ScoreTable& table, std::string_view one, std::string_view other,
               std::string_view found) {
    Stmt rows(db_,
              fmt::format("SELECT {1} FROM (SELECT * FROM {2}.{0} EXCEPT SELECT * FROM {3}.{0}) "
                          "LIMIT {4}",
                          table.name, table.key, one, other, kRowsNamed));
    while (rows.step())
      add(table.name, "scores of the stored answers", std::string(found), rows.text(0));
  }

  Db& db_;
  Files& files_;
  const OpenPlan& plan_;
  AuditResult& result_;
};

}  // namespace

void audit_store(Db& db, Files& files, const OpenPlan& plan, AuditResult& result) {
  StoreAudit(db, files, plan, result).run();
}

std::string first_changed_record(Db& db, const OpenPlan& plan, const std::string& dataset,
                                 const std::string& subset, std::string_view bytes) {
  Stmt records(
      db,
      "SELECT r.position, r.record_id, r.sha256 FROM record r JOIN subset s ON s.id = "
      "r.subset_id WHERE r.current = 1 AND s.dataset = ? AND s.name = ? AND (SELECT sha256 "
      "FROM plan) = ? ORDER BY r.position");
  records.bind(1, dataset).bind(2, subset).bind(3, plan.sha256);
  while (records.step()) {
    const std::size_t end = bytes.find('\n');
    if (sha256_hex(bytes.substr(0, end)) != hex_of_bytes(records.blob(2))) {
      return fmt::format("line {} (record {})", records.integer(0) + 1, records.text(1));
    }
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  }
  return {};
}

}  // namespace preval
