// preval lock: fixes a plan before the first call.
#include "plan/lock.h"

#include <fmt/format.h>

#include <ostream>

#include "backend/backend.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/git.h"
#include "cli/version.h"
#include "plan/published.h"
#include "read/prompt.h"
#include "suite/manifest.h"

namespace preval {
namespace {

/// A lock must not fix files that nobody can use: each is read once the way a run reads it.
void check_contents(Files& files, const OpenPlan& plan) {
  for (const NamedFile& file : named_files(plan.effective)) {
    const std::filesystem::path path = plan.resolve(file.path);
    if (!files.exists(path)) continue;  // lock_plan() says so
    if (file.what == "prompt") parse_prompt_file(files.read(path), path.string());
    if (file.what == "published") parse_published(files.read(path), path.string());
  }
  // Nor arms that no server can read in the way the plan says.
  for (const Arm& arm : plan.effective.arms) {
    make_backend(plan.effective.backend(arm.backend), plan.effective.checkpoint(arm.checkpoint),
                 plan.effective.prompt);
  }
  const std::vector<PlanDrift> drifts = check_manifests(files, plan);
  if (drifts.empty()) return;
  throw Error(ErrorKind::usage,
              fmt::format("{}: plan and manifests say different things:\n{}", plan.path.string(),
                          describe(drifts)),
              "put the manifest's numbers into the plan (\"found\" is the manifest's)");
}

void lock(Context& context, const std::string& path) {
  const OpenPlan plan = open_plan(context.files, path);
  check_contents(context.files, plan);
  const bool written = lock_plan(context.files, context.clock, plan, "preval " + tool_version(),
                                 git_commit_of(context.files, plan.directory));
  if (!context.quiet) {
    context.err << (written
                        ? fmt::format("locked {} as sha256 {}\n", plan.effective.name, plan.sha256)
                        : fmt::format("{} is locked already, since {}, and unchanged\n",
                                      plan.effective.name, plan.lock->locked_at));
  }
  context.out << lock_path(plan.path).generic_string() << '\n';
}

}  // namespace

void add_lock(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("lock", "Fixes a plan: writes its digest beside it");
  const auto plan = std::make_shared<std::string>();
  command->add_option("plan", *plan, "The plan")->required()->type_name("PLAN");
  command->footer(help_footer({"preval lock prereg/quickstart.json", "preval lock prereg/mine.json",
                               "preval lock prereg/mine.json && git add prereg/mine.*"},
                              "0 locked, or locked already and unchanged, 2 usage or plan,\n"
                              "  3 plan or files differ from what was registered"));
  command->callback([plan, &context] { lock(context, *plan); });
}

}  // namespace preval
