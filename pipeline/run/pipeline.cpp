#include "run/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "run/arm.h"
#include "run/reads.h"
#include "run/stage.h"
#include "run/suite_index.h"

namespace preval {

namespace {

PromptFile read_wording(Files& files, const OpenPlan& plan) {
  const std::filesystem::path path = plan.resolve(plan.effective.prompt.file);
  return parse_prompt_file(files.read(path), path.string());
}

class Run {
 public:
  Run(const RunSeams& seams, Store& store, const OpenPlan& plan, const RunOptions& options)
      : seams_(seams),
        store_(store),
        plan_(plan),
        options_(options),
        wording_(read_wording(seams.files, plan)) {}

  RunResult run() {
    verify();
    if (subsets_.empty()) {
      seams_.events.notice("no subset to read: no arm is started");
      return result_;
    }
    for (const Arm& arm : plan_.effective.arms) {
      if (!selected(options_.arms, arm.id)) continue;
      if (seams_.interrupt.level() > 0) {
        result_.interrupted = true;
        result_.arms_not_begun.push_back(arm.id);
        continue;
      }
      if (!left_to_another(arm))
        take(arm, run_arm(seams_, store_, plan_, wording_, subsets_, options_, arm));
    }
    return result_;
  }

 private:
  void verify() {
    StageScope stage(seams_, store_, {}, "verify");
    const auto warn = [&](const std::string& text) {
      store_.event({}, "warning", text);
      seams_.events.notice(text);
    };
    std::vector<SubsetIndex> verified;
    const VerifyResult found = verify_data(
        seams_.files, plan_, options_.data, warn,
        [&](const DatasetGroup& group, const Subset& subset, std::vector<Record>&& records) {
          verified.push_back(index_subset(store_, plan_.effective, wording_, group, subset, {},
                                          records, options_.shard));
        },
        [&] { return seams_.interrupt.level() > 0; });
    for (const SubsetCheck& check : found.subsets) {
      store_.record_check(check);
      if (!selected(options_.subsets, check.subset)) continue;
      if (check.status == SubsetStatus::ok) {
        const auto index =
            std::find_if(verified.begin(), verified.end(), [&](const SubsetIndex& each) {
              return each.group->id == check.group && each.subset->id == check.subset;
            });
        index->path = check.path;
        subsets_.push_back(std::move(*index));
      } else {
        const bool missing = check.status == SubsetStatus::missing;
        (missing ? result_.missing_subsets : result_.dropped_subsets).push_back(check.subset);
        const std::string text =
            missing ? fmt::format("subset {} is missing: skipped ({})", check.subset,
                                  check.path.string())
                    : fmt::format("subset {} is not what was registered: dropped ({})",
                                  check.subset, check.problem);
        store_.event({}, missing ? "skipped" : "dropped", text);
        seams_.events.notice(text);
      }
    }
    store_.flush();
    stage.done(fmt::format("{} of {} subsets verified", found.ok, found.subsets.size()));
  }

  /// Arms of one fallback group are tried in plan order until one serves.
  bool left_to_another(const Arm& arm) {
    if (arm.fallback_group.empty()) return false;
    const auto serving = serving_.find(arm.fallback_group);
    if (serving == serving_.end()) return false;
    const std::string reason = fmt::format("{} serves for {}", serving->second, arm.fallback_group);
    store_.arm_status(arm.id, "not run", reason);
    seams_.events.notice(fmt::format("arm {}: not run: {}", arm.id, reason));
    return true;
  }

  void take(const Arm& arm, const ArmResult& result) {
    result_.missing_reads += result.missing_reads;
    switch (result.status) {
      case ArmResult::Status::done:
        if (!arm.fallback_group.empty()) serve_for_group(arm);
        break;
      case ArmResult::Status::not_run:
        if (result.needed && arm.confirmatory) result_.unserved_arms.push_back(arm.id);
        break;
      case ArmResult::Status::interrupted:
        result_.interrupted = true;
        break;
      case ArmResult::Status::failed:
        if (result.drift) {
          result_.drift.push_back(fmt::format("arm {}: {}", arm.id, result.reason));
        } else if (result.refused) {
          result_.refused_arms.push_back(arm.id);
        } else if (result.breaker) {
          result_.broken_arms.push_back(arm.id);
        } else if (arm.confirmatory && (!result.served || result.missing_reads == 0)) {
          // Served, and then nobody could ask it once more who it is.
          result_.unserved_arms.push_back(arm.id);
          missing_of_[arm.id] = result.missing_reads;
        } else if (!result.booted) {
          // An exploratory arm that did not boot is a recorded outcome, no missing work.
          result_.missing_reads -= result.missing_reads;
        }
        break;
    }
  }

  /// Those of the group that did not serve before were only tried: nothing of theirs is missing.
  void serve_for_group(const Arm& arm) {
    serving_.emplace(arm.fallback_group, arm.id);
    std::erase_if(result_.unserved_arms, [&](const std::string& id) {
      if (plan_.effective.arm(id).fallback_group != arm.fallback_group) return false;
      result_.missing_reads -= missing_of_[id];
      return true;
    });
  }

  const RunSeams& seams_;
  Store& store_;
  const OpenPlan& plan_;
  const RunOptions& options_;
  PromptFile wording_;
  std::vector<SubsetIndex> subsets_;
  std::map<std::string, std::string> serving_;      // fallback group → arm
  std::map<std::string, std::int64_t> missing_of_;  // reads of arms that did not serve
  RunResult result_;
};

}  // namespace

bool selected(const std::vector<std::string>& wanted, const std::string& name) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

int RunResult::exit_code() const {
  if (interrupted) return 130;
  if (!refused_arms.empty()) return 2;
  if (!dropped_subsets.empty() || !drift.empty()) return 3;
  if (!unserved_arms.empty() || !broken_arms.empty()) return 5;
  if (!missing_subsets.empty() || missing_reads > 0) return 4;
  return 0;
}

std::string RunResult::outcome() const {
  switch (exit_code()) {
    case 130:
      return "interrupted";
    case 2:
      return "refused";
    case 3:
      return "drift";
    case 5:
      return "backend";
    case 4:
      return "incomplete";
    default:
      return "complete";
  }
}

RunResult run_pipeline(const RunSeams& seams, Store& store, const OpenPlan& plan,
                       const Json& published, const RunOptions& options, const RunInfo& info) {
  store.begin_run(plan, published, info);
  try {
    const RunResult result = Run(seams, store, plan, options).run();
    store.end_run(result.outcome(), result.exit_code());
    return result;
  } catch (const Error& error) {
    const bool stopped = error.kind() == ErrorKind::interrupted;
    store.end_run(stopped ? "interrupted" : "failed", stopped ? 130 : 1);
    throw;
  }
}

std::vector<ArmPlan> dry_run(Files& files, const OpenPlan& plan, const RunOptions& options,
                             Db* store) {
  const Plan& effective = plan.effective;
  std::vector<ArmPlan> arms;
  // Reads: all, of subsets that are here, and of those what no arm can read by token.
  std::int64_t registered = 0, here = 0, too_wide = 0;
  Json names = Json::array();  // of the subsets that are here and selected
  const auto records_of = [&](const Subset& subset) {
    return std::min<std::int64_t>(subset.records, options.limit.value_or(subset.records));
  };
  // Of those, the shard's, as far as can be told without looking at them.
  const auto about_ours = [&](std::int64_t count) {
    return options.shard ? (count + options.shard->of / 2) / options.shard->of : count;
  };
  const auto is_ours = [&](const std::string& record_sha256) {
    return !options.shard || options.shard->holds(record_sha256);
  };
  const auto times_of = [&](const DatasetGroup& group, const Subset& subset) {
    return effective.repeats * static_cast<std::int64_t>(variants_of(group, subset.type).size());
  };
  for (const DatasetGroup& group : effective.datasets) {
    for (const Subset& subset : group.subsets) {
      if (selected(options.subsets, subset.id))
        registered += about_ours(records_of(subset)) * times_of(group, subset);
    }
  }
  verify_data(
      files, plan, options.data, [](const std::string&) {},
      [&](const DatasetGroup& group, const Subset& subset, std::vector<Record>&& records) {
        if (!selected(options.subsets, subset.id)) return;
        names.push_back(subset.id);
        const std::int64_t times = times_of(group, subset);
        records.resize(static_cast<std::size_t>(records_of(subset)));
        std::erase_if(records, [&](const Record& record) { return !is_ours(record.sha256); });
        const auto count = static_cast<std::int64_t>(records.size());
        registered += (count - about_ours(records_of(subset))) * times;
        here += count * times;
        too_wide += times * std::count_if(records.begin(), records.end(), is_too_wide);
      });
  for (const Arm& arm : effective.arms) {
    if (!selected(options.arms, arm.id)) continue;
    ArmPlan each{arm.id,
                 not_run_reason(effective, arm, options),
                 arm.confirmatory && !options.exploratory,
                 registered,
                 registered - here,
                 0};
    if (effective.backend(arm.backend).read != ReadMode::native) each.left_out += too_wide;
    if (store != nullptr) {
      const std::string settings = answer_settings(effective, arm).dump();
      Stmt stored(
          *store,
          "SELECT lower(hex(substr(r.sha256, 1, 8))) FROM prediction p JOIN configuration c ON "
          "c.id = p.configuration_id "
          "JOIN arm a ON a.id = c.arm_id JOIN prompt q ON q.id = p.prompt_id JOIN record r ON "
          "r.id = q.record_id JOIN subset s ON s.id = r.subset_id WHERE a.name = ? AND "
          "c.current = 1 AND c.settings = ? AND q.current = 1 AND r.current = 1 AND "
          "p.exploratory = ? AND r.position < ? AND s.name IN (SELECT value FROM json_each(?))");
      stored.bind(1, arm.id).bind(2, settings).bind(3, options.exploratory);
      stored.bind(4, options.limit.value_or(std::numeric_limits<int>::max()));
      stored.bind(5, names.dump());
      while (stored.step()) each.stored += is_ours(stored.text(0)) ? 1 : 0;
      each.stored = std::min(each.stored, each.registered - each.left_out);
    }
    arms.push_back(each);
  }
  return arms;
}

}  // namespace preval
