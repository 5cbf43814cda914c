#include "cli/exit_code.h"
#include "cli/study.h"

namespace preval {

void add_run(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("run", "Runs a locked plan, from checksums to the report");
  const auto options = std::make_shared<StudyOptions>();
  add_study_options(*command, *options);
  command
      ->add_option("--checkpoints", options->checkpoints,
                   "Folder of checkpoint files (.local/checkpoints)")
      ->type_name("DIR");
  command
      ->add_option("--accept-terms", options->accepted_terms,
                   "Accept a checkpoint's terms by id (repeatable)")
      ->type_name("ID");
  command->add_flag("--accept-gemma-terms", options->accept_gemma,
                    "Accept the Gemma terms (PREVAL_ACCEPT_GEMMA_TERMS=1)");
  command
      ->add_option("--record", options->record,
                   "Write a transcript per arm, for replay; no keys in it")
      ->type_name("DIR");
  command
      ->add_option("--max-cost", options->max_cost,
                   "Stop before reading has cost more than this many USD")
      ->type_name("USD")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--exploratory", options->exploratory,
                    "Run a plan that is not locked; every row is marked");
  command->add_flag("--dry-run", options->dry_run,
                    "Say what each arm would be asked, and ask nothing");
  command->footer(
      help_footer({"preval run prereg/quickstart.json",
                   "preval run prereg/public-local.json --data datasets/public --db public.db",
                   "preval run prereg/quickstart.json --arm smollm2-exact --limit 2 --dry-run"},
                  kExitCodes));
  command->callback([options, &context] { run_study(context, *options, std::nullopt); });
}

}  // namespace preval
