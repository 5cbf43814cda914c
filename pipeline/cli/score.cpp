// preval score: all scores again, from the stored answers.
#include "score/score.h"

#include <fmt/format.h>

#include <optional>
#include <ostream>

#include "base/text.h"
#include "cli/command.h"
#include "cli/version.h"
#include "store/store.h"

namespace preval {

namespace {

void score(Context& context) {
  std::optional<StoreLock> lock;
  if (context.files.exists(context.db)) lock.emplace(context.db);
  Db db = open_store(context.db, Db::Mode::read_write);
  recompute_scores(db, context.clock, tool_version());
  if (context.quiet) return;
  context.err << fmt::format("scored {} answers in {}\n",
                             grouped(query_integer(db, "SELECT count(*) FROM v_evidence")),
                             context.db.string());
}

}  // namespace

void add_score(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("score", "Recomputes all scores from the stored answers");
  command->footer(help_footer({"preval score", "preval --db other.db score",
                               "preval score && preval query \"select * from v_accuracy\""},
                              "0 scored, 1 the store could not be written, 2 no such store, or\n"
                              "  a run holds it, 3 the stored answers were changed"));
  command->callback([&context] { score(context); });
}

}  // namespace preval
