#include "store/merge_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "plan/difference.h"
#include "suite/shard.h"

namespace preval {

namespace {

constexpr std::size_t kDifferencesNamed = 3, kShardsNamed = 12;

[[noreturn]] void throw_unfit(const std::string& what, const std::string& hint) {
  throw Error(ErrorKind::usage, what, hint);
}

void refuse_other_plan(const MergeInput& first, const MergeInput& other) {
  if (first.sha256 != other.sha256) {
    throw_unfit(
        fmt::format("{} holds plan {} (sha256 {:.12}…), {} plan {} (sha256 {:.12}…)", first.path(),
                    first.name, first.sha256, other.path(), other.name, other.sha256),
        "merge unites stores of one plan");
  }
  if (first.simulated != other.simulated) {
    throw_unfit(fmt::format("{} holds {} answers, {} {} ones", first.path(),
                            first.simulated ? "simulated" : "measured", other.path(),
                            other.simulated ? "simulated" : "measured"),
                "rehearsals are merged with rehearsals only");
  }
  if (first.effective_sha256 != other.effective_sha256 || first.ledger_head != other.ledger_head) {
    const auto ledger = [](const MergeInput& input) {
      return input.ledger_head.empty()
                 ? std::string("without deviations")
                 : fmt::format("under the ledger that ends with {:.12}…", input.ledger_head);
    };
    throw_unfit(
        fmt::format("{} was last run {}, {} {}: the effective plans differ", first.path(),
                    ledger(first), other.path(), ledger(other)),
        "take the longer ledger to the other machine and give the same preval run there once more");
  }
}

void refuse_another_lock(const std::vector<MergeInput>& inputs) {
  const MergeInput* locked = nullptr;
  for (const MergeInput& each : inputs) {
    if (!each.locked_at) continue;
    if (locked == nullptr) locked = &each;
    if (locked->locked_at == each.locked_at) continue;
    throw Error(ErrorKind::drift,
                fmt::format("{} was read under a lock of {}, {} under one of {}", locked->path(),
                            *locked->locked_at, each.path(), *each.locked_at),
                "a plan is locked once, and the lock goes with it to every machine");
  }
}

/// What an input lets count for an arm.
struct Counting {
  std::string sha256, settings, identity, path;
  int weight = 0;  // 2: it has registered answers, 1: answers that were tried out, 0: none
};

std::map<std::string, std::vector<Counting>> counting_by_arm(std::vector<MergeInput>& inputs) {
  std::map<std::string, std::vector<Counting>> arms;
  for (MergeInput& input : inputs) {
    Stmt query(input.db,
               "SELECT a.name, c.sha256, c.settings, c.identity, CASE WHEN EXISTS (SELECT 1 FROM "
               "prediction p WHERE p.configuration_id = c.id AND p.exploratory = 0) THEN 2 WHEN "
               "EXISTS (SELECT 1 FROM prediction p WHERE p.configuration_id = c.id) THEN 1 ELSE 0 "
               "END FROM configuration c JOIN arm a ON a.id = c.arm_id WHERE c.current = 1");
    while (query.step()) {
      arms[query.text(0)].push_back({query.text(1), query.text(2), query.text(3), input.path(),
                                     static_cast<int>(query.integer(4))});
    }
  }
  return arms;
}

/// In what two configurations differ, as far as a line can hold it.
std::string difference_of(const Counting& one, const Counting& other) {
  const auto whole = [](const Counting& each) {
    return Json{{"settings", parse_json(each.settings, "configuration.settings")},
                {"server", parse_json(each.identity, "configuration.identity")}};
  };
  std::vector<std::string> parts;
  for (const PlanDrift& each : json_differences(whole(one), whole(other))) {
    if (parts.size() == kDifferencesNamed) break;
    parts.push_back(fmt::format("{} {} and {}", each.field, each.registered, each.found));
  }
  return join(parts, "; ");
}

/// A part of an arm's answers: in a store, of a subset, registered or exploratory.
struct Part {
  std::string arm, dataset, subset;
  bool exploratory = false;
  auto operator<=>(const Part&) const = default;
};

/// What of a part a store holds.
struct Held {
  std::set<Shard> shards;
  bool whole = false;  // a run over all records
};

/// Runs that have answers or failures of an arm in a subset, and what they asked.
std::map<Part, Held> parts_of(MergeInput& input) {
  std::map<Part, Held> parts;
  Stmt query(input.db,
             "WITH seen AS (SELECT DISTINCT p.configuration_id, r.subset_id, p.run_id FROM "
             "prediction p JOIN prompt q ON q.id = p.prompt_id JOIN record r ON r.id = q.record_id "
             "UNION SELECT f.configuration_id, r.subset_id, f.run_id FROM failure f JOIN prompt q "
             "ON q.id = f.prompt_id JOIN record r ON r.id = q.record_id) "
             "SELECT DISTINCT a.name, s.dataset, s.name, u.exploratory, u.shard, u.shards, "
             "u.record_limit IS NULL FROM seen e JOIN configuration c ON c.id = "
             "e.configuration_id AND c.set_aside = 0 JOIN arm a ON a.id = c.arm_id JOIN subset s "
             "ON s.id = e.subset_id JOIN run u ON u.id = e.run_id");
  while (query.step()) {
    Held& held = parts[{query.text(0), query.text(1), query.text(2), query.integer(3) == 1}];
    if (query.is_null(4)) {
      held.whole = held.whole || query.integer(6) == 1;
    } else {
      held.shards.insert({static_cast<int>(query.integer(4)), static_cast<int>(query.integer(5))});
    }
  }
  return parts;
}

/// Whole arms: what their runs read to the end, which may be nothing where a shard has no records.
/// Without a subset, since a stage is of all of them.
std::map<Part, Held> ended_reads_of(MergeInput& input) {
  std::map<Part, Held> parts;
  Stmt query(input.db,
             "SELECT DISTINCT a.name, u.exploratory, u.shard, u.shards FROM stage g JOIN arm a ON "
             "a.id = g.arm_id JOIN run u ON u.id = g.run_id WHERE g.name IN ('reads', 'identity') "
             "AND g.outcome = 'ok' AND u.record_limit IS NULL");
  while (query.step()) {
    Held& held = parts[{query.text(0), {}, {}, query.integer(1) == 1}];
    if (query.is_null(2)) {
      held.whole = true;
    } else {
      held.shards.insert({static_cast<int>(query.integer(2)), static_cast<int>(query.integer(3))});
    }
  }
  return parts;
}

/// Two stores' parts of one arm in one subset: they must not have been asked for the same records.
void refuse_overlap(const Part& part, const std::string& one, const Held& a,
                    const std::string& other, const Held& b) {
  if (a.shards.empty() && b.shards.empty()) return;  // equal keys are compared one by one
  for (const Shard& shard : a.shards) {
    if (!b.shards.contains(shard)) continue;
    throw_unfit(
        fmt::format("{} and {} both hold shard {} of arm {}", one, other, shard.text(), part.arm),
        "leave one of them out");
  }
  const auto refuse_whole = [&](const std::string& whole, const std::string& sharded,
                                const Held& held) {
    throw_unfit(fmt::format("{} holds all of arm {}, {} shard {} of it", whole, part.arm, sharded,
                            held.shards.begin()->text()),
                "leave one of them out");
  };
  if (a.whole && a.shards.empty()) refuse_whole(one, other, b);
  if (b.whole && b.shards.empty()) refuse_whole(other, one, a);
}

/// Shards of one arm, over all stores.
class ShardsOfArm {
 public:
  void add(const std::string& path, const Held& held) {
    whole_ = whole_ || (held.whole && held.shards.empty());
    for (const Shard& shard : held.shards) {
      found_.insert(shard);
      where_.emplace(shard, path);
    }
  }
  void add_ended(const Held& held) {
    whole_ = whole_ || held.whole;
    found_.insert(held.shards.begin(), held.shards.end());
  }

  void refuse_other_numbers(const std::string& arm) const {
    for (const auto& [shard, path] : where_) {
      const auto& [first, first_path] = *where_.begin();
      if (shard.of == first.of) continue;
      throw_unfit(fmt::format("{} holds shard {} of arm {}, {} shard {}", first_path, first.text(),
                              arm, path, shard.text()),
                  "shards fit together when they are parts of equally many");
    }
  }

  void refuse_missing(const std::string& arm, std::vector<std::string>& missing) const {
    if (whole_ || found_.empty()) return;
    const int of = found_.begin()->of;
    for (int index = 1; index <= of; ++index) {
      const Shard shard{index, of};
      if (!found_.contains(shard))
        missing.push_back(fmt::format("{} of arm {}", shard.text(), arm));
    }
  }

 private:
  bool whole_ = false;
  std::set<Shard> found_;
  std::map<Shard, std::string> where_;
};

void refuse_shards(std::vector<MergeInput>& inputs) {
  bool any = false;
  for (MergeInput& input : inputs) {
    any = any || query_integer(input.db, "SELECT count(*) FROM run WHERE shard IS NOT NULL") > 0;
  }
  if (!any) return;
  std::map<Part, std::vector<std::pair<std::string, Held>>> holders;
  std::map<std::pair<std::string, bool>, ShardsOfArm> arms;
  for (MergeInput& input : inputs) {
    for (auto& [part, held] : parts_of(input)) {
      arms[{part.arm, part.exploratory}].add(input.path(), held);
      holders[part].emplace_back(input.path(), std::move(held));
    }
    for (const auto& [part, held] : ended_reads_of(input))
      arms[{part.arm, part.exploratory}].add_ended(held);
  }
  for (const auto& [arm, shards] : arms) shards.refuse_other_numbers(arm.first);
  for (const auto& [part, stores] : holders) {
    for (std::size_t a = 0; a < stores.size(); ++a) {
      for (std::size_t b = a + 1; b < stores.size(); ++b) {
        refuse_overlap(part, stores[a].first, stores[a].second, stores[b].first, stores[b].second);
      }
    }
  }
  std::vector<std::string> missing;
  for (const auto& [arm, shards] : arms) shards.refuse_missing(arm.first, missing);
  if (missing.empty()) return;
  const std::string count = missing.size() == 1 ? std::string("one shard is")
                                                : fmt::format("{} shards are", missing.size());
  const bool all_named = missing.size() <= kShardsNamed;
  if (!all_named) missing.resize(kShardsNamed);
  throw_unfit(fmt::format("{} missing: {}{}", count, join(missing, ", "), all_named ? "" : ", …"),
              "name their stores, too; preval run PLAN --shard I/N --db NAME.db reads one");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> counting_configurations(
    std::vector<MergeInput>& inputs) {
  std::vector<std::pair<std::string, std::string>> counting;
  for (const auto& [arm, candidates] : counting_by_arm(inputs)) {
    // Of those without any answer the last one has as much right as the others: it hides nothing.
    const Counting* best = nullptr;
    for (const Counting& each : candidates) {
      if (best == nullptr || each.weight > best->weight || (each.weight == 0 && best->weight == 0))
        best = &each;
    }
    for (const Counting& each : candidates) {
      if (each.weight != best->weight || each.weight == 0 || each.sha256 == best->sha256) continue;
      throw_unfit(fmt::format("arm {} was answered by different servers or settings in {} and {}: "
                              "{}",
                              arm, best->path, each.path, difference_of(*best, each)),
                  "answers of one arm come from one kind of server: leave one of the stores out");
    }
    counting.emplace_back(arm, best->sha256);
  }
  return counting;
}

void refuse_what_does_not_fit(std::vector<MergeInput>& inputs) {
  for (const MergeInput& each : inputs) refuse_other_plan(inputs.front(), each);
  refuse_another_lock(inputs);
  refuse_shards(inputs);
  counting_configurations(inputs);
}

}  // namespace preval
