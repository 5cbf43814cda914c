#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "run/budget.h"
#include "run/pipeline.h"
#include "suite/manifest.h"

namespace preval {

void gate(Files& files, const OpenPlan& plan, bool exploratory) {
  if (!plan.lock && !exploratory) {
    throw Error(
        ErrorKind::usage, fmt::format("{} is not locked", plan.path.string()),
        fmt::format("preval lock {} fixes it; --exploratory runs it as it is and marks every row",
                    plan.path.string()));
  }
  std::vector<std::string> lines;
  const std::vector<PlanDrift> drifts = check_lock(files, plan);
  // The manifest is checked whatever the lock says: a plan that contradicts it names other data.
  for (const PlanDrift& drift : check_manifests(files, plan)) {
    lines.push_back(fmt::format("{}: {} in the plan, {} in its manifest", drift.field,
                                drift.registered, drift.found));
  }
  for (const PlanDrift& drift : drifts) {
    const bool plan_field = drift.field.empty() || drift.field.front() == '/';
    if (plan_field && exploratory) continue;
    lines.push_back(
        fmt::format("{}: registered {}, found {}", drift.field, drift.registered, drift.found));
  }
  if (lines.empty()) return;
  throw Error(
      ErrorKind::drift,
      fmt::format("{} differs from what was registered: {}", plan.path.string(), join(lines, "; ")),
      "restore what was locked; what has to differ is then written down: preval deviate");
}

namespace {

void check_names(const std::vector<std::string>& wanted, const std::vector<std::string>& known,
                 std::string_view what) {
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw Error(ErrorKind::usage,
                fmt::format("the plan has no {} '{}'{}", what, name, did_you_mean(name, known)),
                fmt::format("it has: {}", join(known, ", ")));
  }
}

}  // namespace

void check_selection(const Plan& plan, const RunOptions& options) {
  std::vector<std::string> arms, subsets;
  for (const Arm& arm : plan.arms) arms.push_back(arm.id);
  for (const DatasetGroup& group : plan.datasets) {
    for (const Subset& subset : group.subsets) subsets.push_back(subset.id);
  }
  check_names(options.arms, arms, "arm");
  check_names(options.subsets, subsets, "subset");
  std::vector<std::string> terms;
  for (const Checkpoint& checkpoint : plan.checkpoints) {
    if (!checkpoint.terms_id.empty()) terms.push_back(checkpoint.terms_id);
  }
  check_names(options.named_terms, terms, "terms");
  if (options.max_usd) {
    for (const Arm& arm : plan.arms) {
      const BackendSpec& backend = plan.backend(arm.backend);
      if (!selected(options.arms, arm.id) || has_price(backend)) continue;
      throw Error(
          ErrorKind::usage,
          fmt::format("--max-cost cannot be kept: the plan has no price for backend {} (arm {})",
                      backend.id, arm.id),
          "\"price\" of a backend: usd_per_million_input_tokens, usd_per_hour; 0 where it is free");
    }
  }
  if (options.limit && *options.limit < 1) {
    throw Error(ErrorKind::usage, "--limit must be at least 1",
                "it is the number of records per subset");
  }
}

}  // namespace preval
