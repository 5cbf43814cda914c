#pragma once
// The reads of one arm: which are still missing, asking them in order, and writing what comes back.
#include <cstdint>
#include <string>
#include <vector>

#include "run/pipeline.h"
#include "run/schedule.h"
#include "run/suite_index.h"

namespace preval {

/// One read that the plan asks for and the store lacks.
struct PendingRead {
  std::size_t subset = 0;    ///< index into the suite index
  std::size_t position = 0;  ///< record in the subset
  std::string_view variant;
  std::int64_t prompt = 0;  ///< prompt.id
  int repeat = 0;
};

/// What the plan asks of an arm, and what of it is still to do.
struct ReadList {
  std::vector<PendingRead> pending;       ///< subset by subset, repeat by repeat, file order
  std::vector<std::int64_t> total, done;  ///< per subset, what is stored included in both
};

/// Every read that the plan and `limit` ask for in prompts of this form, less what the store has
/// for this configuration.
ReadList missing_reads(const Store& store, std::int64_t configuration,
                       const std::vector<SubsetIndex>& subsets, PromptForm form, int repeats,
                       std::optional<int> limit);

/// Takes out of the list what earlier runs gave up. Returns how many that were.
std::int64_t leave_failed(ReadList& list, const Store& store, std::int64_t configuration);

/// Takes out of the pending reads what smoke asks: the first `records` of each subset that
/// are in the shard, base variant, once.
std::vector<PendingRead> take_smoke_reads(ReadList& list, const std::vector<SubsetIndex>& subsets);

/// Where reads come from and go to.
struct ReadContext {
  const RunSeams& seams;
  Store& store;
  const Plan& plan;
  const PromptFile& wording;
  const std::vector<SubsetIndex>& subsets;
  const Arm& arm;
  const BackendSpec& spec;
  std::int64_t configuration = 0;
  std::string answered_by;  ///< the model that every reply which names one must name; may be empty
};

struct ReadOutcome {
  ScheduleEnd end;
  std::int64_t answered = 0, failed = 0;  ///< failed: given up
  /// Smoke only: the first answer that is not good enough, in words.
  std::string first_problem;
};

/// Asks the reads of `pending` and stores every answer and failure. With `smoke`, every answer must
/// hold all labels (exact) or at least one (top-k), and nothing may fail.
ReadOutcome ask(const ReadContext& context, const Backend& backend, Transport& transport,
                const Endpoint& endpoint, ReadList& list, const std::vector<PendingRead>& pending,
                int concurrency, bool smoke,
                const std::function<std::optional<std::string>()>& server_ended);

}  // namespace preval
