#pragma once
// The reads of one arm: which are still missing, in which passes they are asked, and writing what
// comes back.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "run/pipeline.h"
#include "run/schedule.h"
#include "run/suite_index.h"
#include "run/tally.h"

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
  std::vector<PendingRead> pending;  ///< pass by pass (passes_of), subset by subset, file order
  std::vector<PendingRead> timings;  ///< of the latency passes: one more time, after the answers
  std::vector<SubsetCount> counts;   ///< per subset, timings included

  std::int64_t missing() const { return std::ssize(pending) + std::ssize(timings); }
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

/// What is asked in one go.
struct ReadPass {
  enum class Kind {
    smoke,    ///< every answer must hold all labels (exact) or at least one, and nothing may fail
    answers,  ///< one variant of one group of subsets
    timings   ///< the latency pass over a group: answers are timed, and not stored as such
  } kind = Kind::answers;
  std::string stage;    ///< "suite", "tasks reversed", "tasks latency"
  int concurrency = 1;  ///< per server
  std::span<const PendingRead> reads;
};

/// In the order of the study: group by group of the plan, its variants one after the other, then
/// its latency pass. Passes without reads are left out. Points into `list`.
std::vector<ReadPass> passes_of(const ReadList& list, const std::vector<SubsetIndex>& subsets,
                                int concurrency);

/// Where reads come from and go to.
struct ReadContext {
  const RunSeams& seams;
  Store& store;
  const Plan& plan;
  const PromptFile& wording;
  const std::vector<SubsetIndex>& subsets;
  const Arm& arm;
  const BackendSpec& spec;
  Budget& budget;
  Tally& tally;
  std::int64_t configuration = 0;
  std::string answered_by;  ///< the model that every reply which names one must name; may be empty
  std::int64_t tokeniser = 0;  ///< where tokens are kept for the next read of the same prompt; or 0
};

/// Who is asked.
struct ReadServer {
  const Backend& backend;
  Transport& transport;
  const std::vector<Endpoint>& endpoints;
  std::function<std::optional<std::string>()> ended;  ///< how it has ended, or nothing
};

struct ReadOutcome {
  ScheduleEnd end;
  std::int64_t answered = 0, failed = 0;  ///< failed: given up
  /// Smoke only: the first answer that is not good enough, in words.
  std::string first_problem;
};

/// Asks the reads of a pass and stores every answer and failure.
ReadOutcome ask(const ReadContext& context, const ReadServer& server, const ReadPass& pass);

}  // namespace preval
