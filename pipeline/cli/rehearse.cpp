#include <cmath>

#include "cli/exit_code.h"
#include "cli/study.h"

namespace preval {

void add_rehearse(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("rehearse",
                                     "Runs a plan on simulated answers, marked SIMULATED, "
                                     "into\nPLAN.rehearsal.db unless --db names another store");
  const auto options = std::make_shared<StudyOptions>();
  const auto simulation = std::make_shared<Simulation>();
  add_study_options(*command, *options);
  command->add_option("--accuracy", simulation->accuracy, "Share of right answers")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--sharpness", simulation->sharpness,
                   "Above 1: more confident than right; below 1: less")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
  command
      ->add_option("--missing", simulation->missing, "Top-k reads: share of labels that are absent")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--seed", simulation->seed, "Seed of the draws")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 53))
      ->capture_default_str();
  command->footer(
      help_footer({"preval rehearse prereg/quickstart.json",
                   "preval rehearse prereg/quickstart.json --accuracy 0.9 --sharpness 3",
                   "preval rehearse prereg/mine.json --data my-data --db rehearsal.db"},
                  kExitCodes));
  command->callback([options, simulation, &app, &context] {
    for (const double value : {simulation->accuracy, simulation->sharpness, simulation->missing}) {
      if (!std::isfinite(value)) throw CLI::ValidationError("rehearse", "nan is no number");
    }
    if (app.get_option("--db")->count() == 0) {
      context.db = std::filesystem::path(options->plan).stem().string() + ".rehearsal.db";
    }
    run_study(context, *options, *simulation);
  });
}

}  // namespace preval
