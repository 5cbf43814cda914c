// What a run finds while it goes on, other than answers: records, configurations, stages, events.
#include <fmt/format.h>

#include <stdexcept>
#include <unordered_map>

#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/bytes.h"
#include "store/digest.h"
#include "store/store.h"

namespace preval {

namespace {

struct StoredRecord {
  std::int64_t id = 0, position = 0, set = 0, target = 0;
  std::string family;
  bool current = false;
};

/// All records of a subset, by record id and line digest.
std::unordered_map<std::string, StoredRecord> stored_records(Db& db, std::int64_t subset) {
  std::unordered_map<std::string, StoredRecord> records;
  Stmt query(db,
             "SELECT id, position, set_id, target, family, current, record_id, sha256 FROM record "
             "WHERE subset_id = ?");
  query.bind(1, subset);
  while (query.step()) {
    records.emplace(query.text(6) + '\0' + query.blob(7),
                    StoredRecord{query.integer(0), query.integer(1), query.integer(2),
                                 query.integer(3), query.text(4), query.integer(5) == 1});
  }
  return records;
}

/// Of the keys of a question, in the order of its options.
std::string option_digest(const Question& question) {
  Json keys = Json::array();
  for (const Question::Alternative& each : question.alternatives) keys.push_back(each.key);
  return sha256_hex(keys.dump());
}

/// In the order of kRecordEvidence.
std::string row_digest_of(const Record& record, std::int64_t position, const std::string& options) {
  TypedRow row;
  row.text(record.id).blob(bytes_of_hex(record.sha256)).integer(position).text(record.family);
  row.text(options).integer(record.target);
  return row.sha256();
}

std::int64_t subset_id(Db& db, const std::string& dataset, const std::string& subset) {
  Stmt find(db, "SELECT id FROM subset WHERE dataset = ? AND name = ?");
  find.bind(1, dataset).bind(2, subset);
  if (!find.step()) throw std::logic_error(fmt::format("subset {} is not registered", subset));
  return find.integer(0);
}

}  // namespace

void Store::record_check(const SubsetCheck& check) {
  flush();
  // An absent file keeps the verdict "ok" of an earlier run: begin_run() has already taken it back
  // if other bytes are registered now.
  Stmt put(db_,
           "UPDATE subset SET status = ?1, found_sha256 = ?2, problem = ?3 WHERE dataset = ?4 AND "
           "name = ?5 AND NOT (?1 = 'missing' AND status = 'ok')");
  put.bind(1, to_text(check.status));
  put.bind(2, check.found_sha256.empty() ? std::nullopt : std::optional(check.found_sha256));
  put.bind(3, check.problem.empty() ? std::nullopt : std::optional(check.problem));
  put.bind(4, check.group).bind(5, check.subset).run();
}

std::int64_t Store::option_set(const Question& question, const std::string& digest) {
  if (const auto known = option_sets_.find(digest); known != option_sets_.end())
    return known->second;

  Stmt find(db_, "SELECT id FROM option_set WHERE sha256 = ?");
  find.bind(1, digest);
  std::int64_t id = 0;
  if (find.step()) {
    id = find.integer(0);
  } else {
    Stmt(db_, "INSERT INTO option_set (sha256) VALUES (?)").bind(1, digest).run();
    id = db_.last_insert_rowid();
    Stmt put(db_, "INSERT INTO option (set_id, position, key) VALUES (?, ?, ?)");
    int position = 0;
    for (const Question::Alternative& each : question.alternatives) {
      put.bind(1, id).bind(2, position++).bind(3, each.key).run();
    }
  }
  return option_sets_[digest] = id;
}

std::vector<std::int64_t> Store::put_records(const std::string& dataset, const std::string& subset,
                                             const std::vector<Record>& records) {
  flush();
  const std::int64_t owner = subset_id(db_, dataset, subset);
  std::unordered_map<std::string, StoredRecord> stored = stored_records(db_, owner);
  std::vector<std::int64_t> ids;
  ids.reserve(records.size());
  option_sets_.clear();  // ids of a transaction that was rolled back must not be used again
  Tx tx(db_);
  Stmt add(db_,
           "INSERT INTO record (subset_id, record_id, sha256, position, family, set_id, target, "
           "row_sha256, current) "
           "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)");
  Stmt change(db_,
              "UPDATE record SET position = ?, family = ?, set_id = ?, target = ?, row_sha256 = ?, "
              "current = 1 WHERE id = ?");
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    const std::string digest = bytes_of_hex(record.sha256);
    const std::string options = option_digest(record.question);
    const std::int64_t set = option_set(record.question, options);
    const auto position = static_cast<std::int64_t>(i);
    const auto known = stored.find(record.id + '\0' + digest);
    if (known == stored.end()) {
      add.bind(1, owner).bind(2, record.id).bind_blob(3, digest).bind(4, position);
      add.bind(5, record.family).bind(6, set).bind(7, record.target);
      add.bind_blob(8, row_digest_of(record, position, options)).run();
      ids.push_back(db_.last_insert_rowid());
      continue;
    }
    const StoredRecord& old = known->second;
    if (!old.current || old.position != position || old.set != set || old.target != record.target ||
        old.family != record.family) {
      change.bind(1, position).bind(2, record.family).bind(3, set).bind(4, record.target);
      change.bind_blob(5, row_digest_of(record, position, options)).bind(6, old.id).run();
    }
    ids.push_back(old.id);
    stored.erase(known);
  }
  Stmt retire(db_, "UPDATE record SET current = 0 WHERE id = ? AND current = 1");
  for (const auto& [key, old] : stored) {
    if (old.current) retire.bind(1, old.id).run();
  }
  tx.commit();
  return ids;
}

void Store::arm_status(const std::string& arm, std::string_view status, std::string_view reason) {
  flush();
  const std::int64_t id = arm_id(arm);
  if (status == "not run" || status == "failed") {
    Stmt answers(db_,
                 "SELECT 1 FROM prediction p JOIN configuration c ON c.id = p.configuration_id "
                 "WHERE c.arm_id = ? AND c.current = 1 AND p.exploratory = ? LIMIT 1");
    answers.bind(1, id).bind(2, exploratory_);
    if (answers.step()) {
      answers.reset();
      event(arm, status, reason);
      return;
    }
  }
  Stmt put(db_, "UPDATE arm SET status = ?, reason = ? WHERE id = ?");
  put.bind(1, status);
  put.bind(2, reason.empty() ? std::nullopt : std::optional(std::string(reason)));
  put.bind(3, id).run();
}

std::string configuration_sha256(const Json& settings, const Json& identity) {
  return canonical_sha256(Json{{"identity", identity}, {"settings", settings}});
}

std::int64_t Store::put_configuration(const std::string& arm, const Json& settings,
                                      const Json& identity) {
  flush();
  const std::int64_t id = arm_id(arm);
  const std::string digest = configuration_sha256(settings, identity);
  Stmt put(db_,
           "INSERT INTO configuration (arm_id, sha256, settings, identity, current) VALUES (?, ?, "
           "?, ?, 0) ON CONFLICT (arm_id, sha256) DO NOTHING");
  put.bind(1, id).bind(2, digest).bind(3, settings.dump()).bind(4, identity.dump()).run();
  Stmt find(db_, "SELECT id FROM configuration WHERE arm_id = ? AND sha256 = ?");
  find.bind(1, id).bind(2, digest);
  if (!find.step()) throw std::logic_error("a configuration just written is not there");
  const std::int64_t configuration = find.integer(0);
  find.reset();
  Stmt others(db_,
              "SELECT 1 FROM configuration c JOIN prediction p ON p.configuration_id = c.id WHERE "
              "c.arm_id = ? AND c.current = 1 AND c.id <> ? LIMIT 1");
  others.bind(1, id).bind(2, configuration);
  if (!others.step()) make_current(configuration);
  return configuration;
}

/// This configuration where it still has answers, else the one of the same settings whose server
/// answered last: what another server has finished is not hidden by one that has nothing to show.
void Store::count_what_is_left(std::int64_t configuration) {
  Stmt best(db_,
            "SELECT c.id FROM configuration c JOIN configuration me ON me.id = ?1 AND me.arm_id = "
            "c.arm_id AND me.settings = c.settings JOIN prediction p ON p.configuration_id = c.id "
            "WHERE c.set_aside = 0 GROUP BY c.id ORDER BY c.id = ?1 DESC, max(p.id) DESC LIMIT 1");
  best.bind(1, configuration);
  const std::int64_t counts = best.step() ? best.integer(0) : configuration;
  best.reset();
  make_current(counts);
  current_.clear();
}

std::int64_t Store::set_aside(std::int64_t configuration, const Json& identity) {
  flush();
  Stmt find(db_,
            "SELECT c.settings, a.name FROM configuration c JOIN arm a ON a.id = c.arm_id WHERE "
            "c.id = ?");
  find.bind(1, configuration);
  if (!find.step()) throw std::logic_error("a configuration that nobody registered");
  const Json settings = parse_json(find.text(0), "configuration.settings");
  const std::string arm = find.text(1);
  find.reset();
  Tx tx(db_);
  const std::int64_t aside = put_configuration(arm, settings, identity);
  Stmt(db_, "UPDATE configuration SET set_aside = 1, current = 0 WHERE id = ?")
      .bind(1, aside)
      .run();
  Stmt move(db_,
            "UPDATE prediction SET configuration_id = ? WHERE configuration_id = ? AND run_id = ?");
  move.bind(1, aside).bind(2, configuration).bind(3, run_).run();
  const std::int64_t moved = query_integer(db_, "SELECT changes()");
  Stmt(db_, "UPDATE timing SET configuration_id = ? WHERE configuration_id = ? AND run_id = ?")
      .bind(1, aside)
      .bind(2, configuration)
      .bind(3, run_)
      .run();
  renew_row_digests(db_, aside);
  count_what_is_left(configuration);
  tx.commit();
  return moved;
}

std::int64_t Store::begin_stage(const std::string& arm, std::string_view name) {
  flush();
  Stmt put(db_, "INSERT INTO stage (run_id, arm_id, name, started_at) VALUES (?, ?, ?, ?)");
  put.bind(1, run_).bind(2, arm.empty() ? std::nullopt : std::optional(arm_id(arm)));
  put.bind(3, name).bind(4, now()).run();
  const std::int64_t stage = db_.last_insert_rowid();
  stage_starts_[stage] = clock_.monotonic();
  return stage;
}

void Store::end_stage(std::int64_t stage, std::string_view outcome, std::string_view detail) {
  flush();
  const auto start = stage_starts_.find(stage);
  if (start == stage_starts_.end()) throw std::logic_error("a stage that nobody began");
  const double seconds = std::chrono::duration<double>(clock_.monotonic() - start->second).count();
  stage_starts_.erase(start);
  Stmt put(db_, "UPDATE stage SET ended_at = ?, seconds = ?, outcome = ?, detail = ? WHERE id = ?");
  put.bind(1, now()).bind(2, seconds).bind(3, outcome);
  put.bind(4, detail.empty() ? std::nullopt : std::optional(made_valid(detail)));
  put.bind(5, stage).run();
}

void Store::event(const std::string& arm, std::string_view kind, std::string_view detail) {
  flush();
  Stmt put(db_, "INSERT INTO event (run_id, arm_id, at, kind, detail) VALUES (?, ?, ?, ?, ?)");
  put.bind(1, run_).bind(2, arm.empty() ? std::nullopt : std::optional(arm_id(arm)));
  put.bind(3, now()).bind(4, kind).bind(5, made_valid(detail)).run();
}

void Store::finding(const std::string& arm, const Finding& finding) {
  flush();
  Stmt put(db_,
           "INSERT INTO finding (run_id, arm_id, capability, ok, verdict, evidence) "
           "VALUES (?, ?, ?, ?, ?, ?)");
  put.bind(1, run_).bind(2, arm_id(arm)).bind(3, finding.capability).bind(4, finding.ok);
  put.bind(5, made_valid(finding.verdict)).bind(6, made_valid(finding.evidence)).run();
}

}  // namespace preval
