#pragma once
// The run itself: gate (lock, verify) → per arm: boot, preflight, smoke, reads → done. It reads an
// effective plan and writes evidence; scores and reports are made from the store afterwards.
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "plan/lock.h"
#include "run/events.h"
#include "store/store.h"
#include "suite/shard.h"

namespace preval {

struct RunOptions {
  std::optional<std::filesystem::path> data;  ///< overrides every group's data folder
  std::vector<std::string> arms, subsets;     ///< empty: all
  std::optional<int> limit;                   ///< first N records of each subset
  std::optional<Shard> shard;                 ///< of those, the ones in this part
  bool exploratory = false;
  bool retry_failed = true;              ///< ask again what earlier runs gave up
  std::optional<double> max_usd;         ///< what this run may cost at most
  std::set<std::string> accepted_terms;  ///< terms ids
  std::vector<std::string> named_terms;  ///< those of them that have to be in the plan
  std::filesystem::path root;            ///< {root} of server commands
  std::filesystem::path checkpoints;     ///< folder of checkpoint files
  std::filesystem::path logs;            ///< folder of server logs
  std::filesystem::path record;          ///< folder of transcripts; empty: none are written
};

/// What a run came to; the exit code follows from it (cli.md).
struct RunResult {
  bool interrupted = false;
  std::vector<std::string> dropped_subsets;  ///< mismatch
  std::vector<std::string> missing_subsets;
  std::vector<std::string> drift;           ///< other drift: a checkpoint file with other bytes
  std::vector<std::string> refused_arms;    ///< the plan or the call does not fit: a key file, say
  std::vector<std::string> broken_arms;     ///< their circuit breaker opened
  std::vector<std::string> unserved_arms;   ///< confirmatory arms that never served, or broke off
  std::vector<std::string> arms_not_begun;  ///< the user, or a cap, stopped the run before them
  std::string withheld;  ///< the cap on money or time that would have been passed; empty: none
  std::int64_t missing_reads = 0;  ///< asked for in this run and not answered, of arms begun

  /// 130, 2, 3, 5, 4 or 0: the first that applies.
  int exit_code() const;
  /// complete | incomplete | drift | backend | interrupted | refused
  std::string outcome() const;
};

/// The seams and the listener of a run.
struct RunSeams {
  Files& files;
  Clock& clock;
  RunEvents& events;
  const Interrupt& interrupt;
  std::function<std::unique_ptr<Transport>()> transport;  ///< a fresh one per arm
};

/// What a plan's JSON asks for, seen from the store: for --dry-run and for the end of a run.
struct ArmPlan {
  std::string arm, state;  ///< state: what would stop it ("terms not accepted"), or empty
  bool confirmatory = false;
  /// Reads that the plan asks for, of the selected subsets. Of a shard: its own; of a subset that
  /// is not here nobody knows which those are, so it counts as one part of as many equal ones.
  std::int64_t registered = 0;
  std::int64_t left_out = 0;  ///< of which of subsets that are not here, or too wide for this arm
  std::int64_t stored = 0;
  /// About what the reads that are left would take; 0 where no server is asked. usd: nothing where
  /// the plan has no price, or only one by the hour and nobody knows yet how long it will be.
  std::int64_t calls = 0, tokens = 0;
  std::optional<double> usd;

  std::int64_t to_ask() const { return state.empty() ? registered - left_out - stored : 0; }
};

/// Refuses to go on (usage) when the plan is not locked, (drift) when plan or its files differ from
/// the lock. With `exploratory` an unlocked or since-changed plan is let through; files whose bytes
/// differ from the digests in the plan never are.
void gate(Files& files, const OpenPlan& plan, bool exploratory);

/// Whether a call asks for this one: by name, or by naming none.
bool selected(const std::vector<std::string>& wanted, const std::string& name);

/// Throws usage errors for arms or subsets that the plan does not have, with a suggestion.
void check_selection(const Plan& plan, const RunOptions& options);

/// Runs what is missing. Throws only where nothing could be begun, or the user stopped it before
/// anything was (interrupted); afterwards everything that goes
/// wrong is evidence in the store and part of the result.
RunResult run_pipeline(const RunSeams& seams, Store& store, const OpenPlan& plan,
                       const Json& published, const RunOptions& options, const RunInfo& info);

/// The same plan without doing anything: what each arm would still ask.
std::vector<ArmPlan> dry_run(Files& files, const OpenPlan& plan, const RunOptions& options,
                             Db* store);

}  // namespace preval
