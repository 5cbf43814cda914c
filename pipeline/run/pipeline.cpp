#include "run/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "run/arm.h"
#include "run/budget.h"
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
        wording_(read_wording(seams.files, plan)),
        budget_(seams.clock,
                {options.max_usd, plan.effective.budget_usd, plan.effective.budget_hours},
                store.usage_before()) {}

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
      if (budget_.reached()) {
        result_.arms_not_begun.push_back(arm.id);
        store_.event(arm.id, "budget", "not begun: " + result_.withheld);
        continue;
      }
      if (!left_to_another(arm))
        take(arm, run_arm(seams_, store_, plan_, wording_, subsets_, options_, budget_, arm));
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
        if (result.withheld) {
          result_.withheld = result.reason;
        } else if (result.drift) {
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
  Budget budget_;
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
  if (!missing_subsets.empty() || missing_reads > 0 || !withheld.empty()) return 4;
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

}  // namespace preval
