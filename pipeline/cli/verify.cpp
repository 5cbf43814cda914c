// preval verify: is the data what the plan registers?
#include "suite/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"

namespace preval {
namespace {

struct VerifyOptions {
  std::string plan, data;
  bool json = false;
};

Json digest_or_null(const std::string& sha256) { return sha256.empty() ? Json() : Json(sha256); }

Json verify_json(const Plan& plan, const VerifyResult& result) {
  Json subsets = Json::array();
  for (const SubsetCheck& check : result.subsets) {
    subsets.push_back({{"subset", check.subset},
                       {"status", to_text(check.status)},
                       {"registered_sha256", check.registered_sha256},
                       {"found_sha256", digest_or_null(check.found_sha256)},
                       {"registered_records", check.registered_records},
                       {"found_records", check.found_records},
                       {"registered_families", check.registered_families},
                       {"found_families", check.found_families},
                       {"problem", check.problem.empty() ? Json() : Json(check.problem)},
                       {"note", check.note.empty() ? Json() : Json(check.note)},
                       {"dataset", check.group},
                       {"path", check.path.generic_string()}});
  }
  return {{"plan", plan.name},
          {"ok", result.ok},
          {"missing", result.missing},
          {"mismatch", result.mismatch},
          {"subsets", std::move(subsets)}};
}

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t taken = display_width(text);
  return taken < width ? text + std::string(width - taken, ' ') : text;
}

std::string short_digest(const std::string& sha256) {
  return sha256.empty() ? "(none)" : sha256.substr(0, 12);
}

/// What is worth knowing about one subset, beside its name and status.
std::string details(const SubsetCheck& check) {
  switch (check.status) {
    case SubsetStatus::ok:
      return fmt::format("{} records, {} families, sha256 {}{}", grouped(check.found_records),
                         grouped(check.found_families), short_digest(check.found_sha256),
                         check.note.empty() ? "" : "; " + check.note);
    case SubsetStatus::missing:
      return check.problem;
    case SubsetStatus::mismatch:
      if (check.registered_sha256 == check.found_sha256) return check.problem;
      return fmt::format("registered sha256 {}, found {}: {}",
                         short_digest(check.registered_sha256), short_digest(check.found_sha256),
                         check.problem);
  }
  return {};
}

void print_table(std::ostream& out, const VerifyResult& result) {
  std::size_t width = 0;
  for (const SubsetCheck& check : result.subsets)
    width = std::max(width, display_width(check.subset));
  for (const SubsetCheck& check : result.subsets) {
    out << padded(std::string(to_text(check.status)), 8) << "  " << padded(check.subset, width)
        << "  " << details(check) << '\n';
  }
  out << fmt::format("{} ok, {} missing, {} mismatch\n", result.ok, result.missing,
                     result.mismatch);
}

void verify(Context& context, const VerifyOptions& options) {
  const OpenPlan plan = open_plan(context.files, options.plan);
  std::optional<std::filesystem::path> data;
  if (!options.data.empty()) data = options.data;
  const auto warn = [&](const std::string& text) {
    if (!context.quiet) context.err << "warning: " << text << '\n';
  };
  const SignalInterrupt interrupt;
  const VerifyResult result =
      verify_data(context.files, plan, data, warn, {}, [&] { return interrupt.level() > 0; });
  if (options.json) {
    context.out << verify_json(plan.effective, result).dump(2) << '\n';
  } else {
    print_table(context.out, result);
  }
  context.exit_code = result.mismatch > 0 ? 3 : result.missing > 0 ? 1 : 0;
}

}  // namespace

void add_verify(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("verify", "Checks data files against registered checksums and counts");
  const auto options = std::make_shared<VerifyOptions>();
  command->add_option("plan", options->plan, "The plan")->required()->type_name("PLAN");
  command->add_option("--data", options->data, "Folder of SUBSET/all.jsonl, instead of the plan's")
      ->type_name("DIR");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(help_footer({"preval verify prereg/quickstart.json",
                               "preval verify prereg/public-local.json --data datasets/public",
                               "preval verify prereg/public-local.json --json"},
                              "0 every subset is what was registered, 1 some are missing,\n"
                              "  2 usage or plan, 3 some have other bytes or contents"));
  command->callback([options, &context] { verify(context, *options); });
}

}  // namespace preval
