#include "store/merge_input.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "store/store.h"

namespace preval {

namespace {

[[noreturn]] void throw_changed(const Db& db, const std::string& what) {
  throw Error(ErrorKind::drift, fmt::format("{}: {}: not merged", db.path().generic_string(), what),
              fmt::format("preval audit PLAN --db {} --explain says more; restore a copy of it",
                          db.path().generic_string()));
}

/// What a run writes is JSON.
Json parsed(const Db& db, const std::string& text, const std::string& where) {
  try {
    return parse_json(text, where);
  } catch (const Error& error) {
    throw_changed(db, error.message());
  }
}

void refuse_other_schema(Db& db) {
  for (const SchemaDifference& each : schema_differences(db)) {
    throw_changed(db,
                  each.name + (each.shipped ? " is not as preval makes it" : " is not preval's"));
  }
}

void read_plan(MergeInput& input) {
  Stmt plan(input.db,
            "SELECT name, sha256, effective_sha256, coalesce(ledger_head, ''), locked_at, "
            "simulated, json, (SELECT coalesce(min(started_at), '') FROM run) FROM plan");
  if (!plan.step()) {
    throw Error(ErrorKind::usage, fmt::format("{} holds no plan: nothing to merge", input.path()));
  }
  input.name = plan.text(0);
  input.sha256 = plan.text(1);
  input.effective_sha256 = plan.text(2);
  input.ledger_head = plan.text(3);
  input.locked_at = plan.text_or_null(4);
  input.simulated = plan.integer(5) == 1;
  input.begun = plan.text(7);
  if (canonical_sha256(parsed(input.db, plan.text(6), "plan.json")) != input.effective_sha256) {
    throw_changed(input.db, "its copy of the plan was changed");
  }
}

void check_configurations(Db& db) {
  Stmt query(db,
             "SELECT a.name, c.settings, c.identity, c.sha256 FROM configuration c JOIN arm a ON "
             "a.id = c.arm_id");
  while (query.step()) {
    const Json identity = parsed(db, query.text(2), "configuration.identity");
    const Json settings = parsed(db, query.text(1), "configuration.settings");
    if (configuration_sha256(settings, identity) != query.text(3)) {
      throw_changed(db, fmt::format("a configuration of arm {} was changed", query.text(0)));
    }
  }
}

void check_rows(MergeInput& input) {
  Stmt keys(input.db, "PRAGMA foreign_key_check");
  if (keys.step()) {
    throw_changed(input.db, fmt::format("a row of {} refers to one of {} that is not there",
                                        keys.text(0), keys.text(2)));
  }
  std::optional<ChangedRow> changed;
  input.digest = logical_digest(input.db, [&](const ChangedRow& row) {
    if (!changed) changed = row;
  });
  if (changed) {
    throw_changed(input.db,
                  fmt::format("{} {} was changed after it was written (written {:.12}…, "
                              "found {:.12}…)",
                              changed->table, changed->row, changed->stored, changed->computed));
  }
}

/// What the last run left without a seal, since it was killed, is taken as it is.
bool last_run_ended(Db& db) {
  Stmt last(db, "SELECT ended_at IS NOT NULL FROM run ORDER BY id DESC LIMIT 1");
  return last.step() && last.integer(0) == 1;
}

void check_seals(Files& files, MergeInput& input) {
  const std::vector<Seal> seals = read_seals(input.db);
  const std::filesystem::path kept = seal_path(input.db.path());
  const bool is_kept = files.exists(kept);
  if (seals.empty()) {
    if (is_kept) throw_changed(input.db, kept.generic_string() + " seals it, and it holds no seal");
    return;
  }
  std::string previous;
  for (const Seal& seal : seals) {
    if (seal.computed_sha256() != seal.sha256 || seal.previous != previous ||
        seal.plan_sha256 != input.sha256) {
      throw_changed(input.db, fmt::format("seal {} was changed", seal.number));
    }
    previous = seal.sha256;
  }
  const Seal& last = seals.back();
  if (is_kept && parse_seal(files.read(kept), kept.generic_string()).sha256 != last.sha256) {
    throw_changed(input.db, kept.generic_string() + " is not its last seal");
  }
  input.seal = last.sha256;
  if (last.digest == input.digest.digest || !last_run_ended(input.db)) return;
  std::string what = "it is not what its last seal says";
  for (const GroupDifference& each : group_differences(last.groups, input.digest.groups)) {
    what += fmt::format("; {}: {} then, {} now", each.group, each.before, each.now);
  }
  throw_changed(input.db, what);
}

}  // namespace

void IdMap::add(std::int64_t from, std::int64_t to) {
  if (!ranges_.empty()) {
    Range& last = ranges_.back();
    if (from == last.from + last.count && to == last.to + last.count) {
      ++last.count;
      return;
    }
  }
  ranges_.push_back({from, to, 1});
}

std::optional<std::int64_t> IdMap::find(std::int64_t from) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), from,
                       [](std::int64_t id, const Range& range) { return id < range.from; });
  if (after == ranges_.begin()) return std::nullopt;
  const Range& range = *std::prev(after);
  if (from - range.from >= range.count) return std::nullopt;
  return range.to + (from - range.from);
}

bool IdMap::leads_to(std::int64_t to) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return to >= range.to && to - range.to < range.count;
  });
}

MergeInput open_input(Files& files, const std::filesystem::path& path) {
  if (const std::string holder = StoreLock::holder(path); !holder.empty()) {
    throw Error(ErrorKind::usage,
                fmt::format("{} is being written by another preval ({})", path.string(), holder),
                "wait until that run has ended, then merge");
  }
  MergeInput input{
      open_store(path, Db::Mode::read_only), {}, {}, {}, {}, {}, false, {}, {}, {}, {}};
  input.db.exec("BEGIN");
  refuse_other_schema(input.db);
  read_plan(input);
  check_configurations(input.db);
  check_rows(input);
  check_seals(files, input);
  return input;
}

}  // namespace preval
