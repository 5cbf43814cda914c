#pragma once
// What run and rehearse share: opening plan and store, running, scoring, reporting, ending.
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "run/pipeline.h"
#include "store/seal.h"

namespace preval {

/// Options that both commands take, with their CLI11 definitions.
struct StudyOptions {
  std::string plan;
  std::string data, checkpoints, logs, record;
  std::vector<std::string> arms, subsets, accepted_terms;
  std::optional<int> limit;
  std::optional<std::string> shard;
  std::optional<double> max_cost;
  std::string retry_failed = "yes", json_events;
  bool exploratory = false, dry_run = false, accept_gemma = false;
};
void add_study_options(CLI::App& command, StudyOptions& options);

/// The folder that {root} in a plan stands for: the one that holds the plan's folder.
std::filesystem::path root_of(const std::filesystem::path& plan);

/// Where checkpoint files lie unless --checkpoints says otherwise.
std::filesystem::path checkpoint_folder(const std::filesystem::path& plan);

/// Prints the results table of the store at context.db and writes the reports beside it.
void report_results(Context& context, Db& db, const Seal& seal);

/// Runs the plan into the store at context.db, scores it, prints the results table and writes the
/// reports beside the store. `simulated` replaces every backend by a simulation.
void run_study(Context& context, const StudyOptions& options,
               const std::optional<Simulation>& simulated);

}  // namespace preval
