// preval deviate: writes down what has to differ from a locked plan.
#include "plan/deviate.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/error.h"
#include "cli/command.h"
#include "suite/manifest.h"

namespace preval {
namespace {

struct DeviateOptions {
  std::string plan, why;
  std::vector<std::string> fields, from, to;
};

Json value_of(const std::string& text, std::string_view option) {
  try {
    return parse_json(text, option);
  } catch (const Error& error) {
    throw Error(
        ErrorKind::usage, error.message(),
        fmt::format("{} takes a JSON value; a string has quotes of its own: '\"top-k\"'", option));
  }
}

/// A plan that contradicts its manifests names other data, and would never be run.
void check_data(Files& files, const OpenPlan& before, const OpenPlan& after) {
  const std::vector<PlanDrift> known = check_manifests(files, before);
  for (const PlanDrift& drift : check_manifests(files, after)) {
    const bool old = std::any_of(known.begin(), known.end(), [&](const PlanDrift& each) {
      return each.field == drift.field && each.registered == drift.registered;
    });
    if (old) continue;
    throw Error(ErrorKind::usage,
                fmt::format("{} would be {}, its manifest says {}", drift.field, drift.registered,
                            drift.found),
                "what the data is stands in manifest and plan: change both, and manifest_sha256");
  }
}

void run_deviate(Context& context, const DeviateOptions& options) {
  if (options.from.size() != options.fields.size() || options.to.size() != options.fields.size()) {
    throw Error(ErrorKind::usage,
                fmt::format("{} fields, {} values --from and {} values --to", options.fields.size(),
                            options.from.size(), options.to.size()),
                "every --field has a --from and a --to");
  }
  // Held from before the ledger is read until it is written: no entry can get lost in between.
  const auto held = context.files.hold(options.plan);
  const OpenPlan plan = open_plan(context.files, options.plan);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < options.fields.size(); ++i) {
    changes.push_back(
        {options.fields[i], value_of(options.from[i], "--from"), value_of(options.to[i], "--to")});
  }
  const auto accept = [&](const OpenPlan& after) { check_data(context.files, plan, after); };
  for (const Deviation& entry :
       deviate(context.files, context.clock, plan, changes, options.why, accept)) {
    if (context.quiet) continue;
    context.err << fmt::format("deviation {}: {} from {} to {}\n", entry.number, entry.field,
                               canonical_json(entry.from), canonical_json(entry.to));
  }
  context.out << ledger_path(plan.path).generic_string() << '\n';
}

}  // namespace

void add_deviate(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("deviate", "Writes down what has to differ from a locked plan");
  const auto options = std::make_shared<DeviateOptions>();
  command->add_option("plan", options->plan, "The plan")->required()->type_name("PLAN");
  const auto one_each = [&](const char* name, std::vector<std::string>& values, const char* type,
                            const char* meaning) {
    command->add_option(name, values, meaning)
        ->required()
        ->type_name(type)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  one_each("--field", options->fields, "F", "JSON pointer into the plan (repeatable)");
  one_each("--from", options->from, "JSON", "Its value now; null: not there");
  one_each("--to", options->to, "JSON", "What it is to be; null: not there");
  command->add_option("--why", options->why, "The reason")->required()->type_name("TEXT");
  command->footer(help_footer(
      {"preval deviate prereg/mine.json --field /arms/0/boot_limit_s --from 600 \\\n"
       "    --to 1500 --why \"the first boot compiles kernels\"",
       "preval deviate prereg/mine.json --field /backends/0/read --from '\"exact\"' \\\n"
       "    --to '\"top-k\"' --field /backends/0/k --from null --to 32 --why \"no ids\"",
       "git add prereg/mine.deviations.jsonl"},
      "0 written, 1 the ledger could not be written, 2 usage, or not so\n"
      "  in the plan, 3 plan or ledger changed since they were written"));
  command->callback([options, &context] { run_deviate(context, *options); });
}

}  // namespace preval
