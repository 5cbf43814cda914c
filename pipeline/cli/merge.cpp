// preval merge: the stores of several machines, as one.
#include "store/merge.h"

#include <fmt/format.h>

#include <ostream>

#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/study.h"
#include "cli/version.h"
#include "score/score.h"

namespace preval {

namespace {

struct MergeCommand {
  std::string output;
  std::vector<std::string> inputs;
};

void merge(Context& context, const MergeCommand& given) {
  const SignalInterrupt interrupt;
  context.db = given.output;
  NewStore made(context.files, context.db);
  const Merged merged =
      merge_stores(context.files, context.clock, {given.inputs.begin(), given.inputs.end()},
                   made.db(), [&] { return interrupt.level() > 0; });
  recompute_scores(made.db(), context.clock, tool_version());
  const Seal seal = put_seal(made.db(), context.clock, merged.origins);
  made.publish();
  write_seal(context.files, context.db, seal);
  if (!context.quiet) {
    context.err << fmt::format("merged {}: {}", counted(std::ssize(given.inputs), "store"),
                               counted(merged.answers, "answer"));
    if (merged.kept_once > 0) {
      context.err << fmt::format("; {} more than one of them held, and all alike",
                                 grouped(merged.kept_once));
    }
    context.err << '\n';
  }
  Db db = open_store(context.db, Db::Mode::read_only);
  report_results(context, db, seal);
}

}  // namespace

void add_merge(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand(
      "merge", "Unites shards, or the arms of one plan from several machines, into a new store");
  const auto given = std::make_shared<MergeCommand>();
  command->add_option("output", given->output, "The store to make; must not be there yet")
      ->required()
      ->type_name("OUT.db");
  command->add_option("inputs", given->inputs, "The stores to unite; they are only read")
      ->required()
      ->type_name("IN.db");
  command->footer(
      help_footer({"preval merge results.db shard1.db shard2.db shard3.db shard4.db",
                   "preval merge results.db arm-a.db arm-b.db",
                   "preval merge results.db shard*.db && preval audit prereg/mine.json"},
                  "0 merged, 1 the store could not be written, 2 usage, or stores that\n"
                  "  do not belong together (another plan, shards that overlap or are missing),\n"
                  "  3 a store that was changed, or stores that contradict each other,\n"
                  "  130 interrupted"));
  command->callback([given, &app, &context] {
    const CLI::Option* db = app.get_option_no_throw("--db");
    if (db != nullptr && db->count() > 0) {
      throw CLI::ValidationError("merge", "the store that it makes is its first argument: no --db");
    }
    merge(context, *given);
  });
}

}  // namespace preval
