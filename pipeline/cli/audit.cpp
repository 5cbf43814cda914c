// preval audit: what differs from what was registered?
#include "audit/audit.h"

#include <fmt/format.h>

#include <optional>
#include <ostream>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/study.h"
#include "store/store.h"

namespace preval {
namespace {

struct AuditOptions {
  std::string plan, data, checkpoints;
  bool explain = false, json = false, store_named = false;
};

Json audit_json(const AuditResult& result) {
  Json findings = Json::array();
  for (const AuditFinding& finding : result.findings) {
    findings.push_back(
        {{"what", finding.what},
         {"field", finding.field},
         {"registered", finding.registered},
         {"found", finding.found},
         {"first_row", finding.first_row.empty() ? Json() : Json(finding.first_row)}});
  }
  Json deviations = Json::array();
  for (const Deviation& entry : result.deviations) {
    deviations.push_back({{"number", entry.number},
                          {"field", entry.field},
                          {"from", entry.from},
                          {"to", entry.to},
                          {"why", entry.why},
                          {"at", entry.at}});
  }
  return {{"checked", result.checked},
          {"deviations", std::move(deviations)},
          {"findings", std::move(findings)},
          {"unchecked", result.unchecked}};
}

void print_findings(std::ostream& out, const AuditResult& result, bool explain) {
  for (const Deviation& entry : result.deviations) {
    out << fmt::format("deviation {} of {}  {}: {} instead of {}\n", entry.number, entry.at,
                       entry.field, canonical_json(entry.to), canonical_json(entry.from));
    if (explain) out << fmt::format("  reason      {}\n", printable(entry.why));
  }
  for (const AuditFinding& finding : result.findings) {
    out << fmt::format("drift  {}  {}\n", finding.what, finding.field);
    if (!explain) continue;
    out << fmt::format("  registered  {}\n  found       {}\n", finding.registered, finding.found);
    if (!finding.first_row.empty()) out << fmt::format("  first row   {}\n", finding.first_row);
  }
  out << fmt::format("{} checked, {} drifted, {} not checked\n", result.checked,
                     result.findings.size(), result.unchecked.size());
}

/// The store, or nothing, with the reason in `result`. One that was asked for has to be there.
std::optional<Db> store_to_audit(Context& context, bool named, AuditResult& result) {
  const std::string name = context.db.generic_string();
  if (!context.files.exists(context.db) && !named) {
    result.unchecked.push_back(fmt::format("store {}: not there", name));
    return std::nullopt;
  }
  try {
    return open_store(context.db, Db::Mode::read_only);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::drift) throw;
    result.findings.push_back({"store", name, "as it was written", error.what(), ""});
    return std::nullopt;
  }
}

void audit(Context& context, const AuditOptions& options) {
  AuditScope scope;
  if (!options.data.empty()) scope.data = options.data;
  scope.checkpoints = options.checkpoints.empty() ? checkpoint_folder(options.plan)
                                                  : std::filesystem::path(options.checkpoints);
  AuditResult store_result;
  std::optional<Db> store = store_to_audit(context, options.store_named, store_result);
  if (store) scope.store = &*store;
  AuditResult result = audit_plan(context.files, options.plan, scope);
  for (AuditFinding& finding : store_result.findings) result.findings.push_back(std::move(finding));
  for (std::string& item : store_result.unchecked) result.unchecked.push_back(std::move(item));
  if (options.json) {
    context.out << audit_json(result).dump(2) << '\n';
  } else {
    print_findings(context.out, result, options.explain);
    if (!context.quiet) {
      for (const std::string& item : result.unchecked)
        context.err << "not checked: " << item << '\n';
    }
    if (!result.findings.empty() && !options.explain && !context.quiet) {
      context.err << "--explain shows what was registered and what is there\n";
    }
  }
  context.exit_code = result.findings.empty() ? 0 : 3;
}

}  // namespace

void add_audit(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand(
      "audit", "Looks for drift from what was registered, and for changes in the store");
  const auto options = std::make_shared<AuditOptions>();
  command->add_option("plan", options->plan, "The plan")->required()->type_name("PLAN");
  command->add_option("--data", options->data, "Folder of SUBSET/all.jsonl, instead of the plan's")
      ->type_name("DIR");
  command
      ->add_option("--checkpoints", options->checkpoints,
                   "Folder of checkpoint files (.local/checkpoints)")
      ->type_name("DIR");
  command->add_flag("--explain", options->explain,
                    "Name registered value, found value and first row");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      help_footer({"preval audit prereg/quickstart.json --explain",
                   "preval audit prereg/public-local.json --data datasets/public --json",
                   "preval audit prereg/quickstart.json --checkpoints .local/checkpoints"},
                  "0 what could be checked is as registered, 1 a file could not be\n  read, 2 "
                  "usage or plan, 3 something drifted"));
  command->callback([options, &app, &context] {
    const CLI::Option* db = app.get_option_no_throw("--db");
    options->store_named = db != nullptr && db->count() > 0;
    audit(context, *options);
  });
}

}  // namespace preval
