#pragma once
// One arm from start to end: terms and checkpoint, boot, preflight, smoke, reads, stop.
#include <string>
#include <vector>

#include "run/budget.h"
#include "run/pipeline.h"
#include "run/suite_index.h"

namespace preval {

struct ArmResult {
  enum class Status { done, not_run, failed, interrupted } status = Status::done;
  std::string reason;              ///< of everything but done
  bool drift = false;              ///< failed because bytes differ from what was registered
  bool refused = false;            ///< failed because of the plan or the way preval was called
  bool booted = false;             ///< failed after its server had answered
  bool served = false;             ///< failed after answers that count: it did serve
  bool breaker = false;            ///< failed because its server kept failing
  bool needed = false;             ///< not run although nothing but the user's key was missing
  bool withheld = false;           ///< stopped before a cap on money or time could be passed
  std::int64_t missing_reads = 0;  ///< asked for and not answered
};

/// Runs one arm, as far as the budget goes. Whatever goes wrong with its server or checkpoint is in
/// the result and in the store, not an exception; errors of the store itself are thrown.
ArmResult run_arm(const RunSeams& seams, Store& store, const OpenPlan& plan,
                  const PromptFile& wording, const std::vector<SubsetIndex>& subsets,
                  const RunOptions& options, Budget& budget, const Arm& arm);

/// Why an arm would not even be tried ("terms not accepted"), or empty.
std::string not_run_reason(const Plan& plan, const Arm& arm, const RunOptions& options);

}  // namespace preval
