#include "audit/audit.h"

#include <fmt/format.h>

#include "audit/store_audit.h"
#include "base/error.h"
#include "base/sha256.h"
#include "plan/lock.h"
#include "report/copy.h"
#include "report/model.h"
#include "suite/manifest.h"
#include "suite/verify.h"

namespace preval {
namespace {

class Audit {
 public:
  Audit(Files& files, const OpenPlan& plan, AuditResult& result)
      : files_(files), plan_(plan), result_(result) {}

  void check_plan() {
    if (!plan_.lock) {
      add({"lock", lock_path(plan_.path).generic_string(), "a lock",
           fmt::format("none: not locked yet (preval lock {})", plan_.path.generic_string()), ""});
    } else {
      ++result_.checked;
    }
    const auto named = named_files(plan_.effective);
    result_.checked += static_cast<int>(named.size());
    for (const PlanDrift& drift : check_lock(files_, plan_)) {
      std::string what = "plan";
      for (const NamedFile& file : named) {
        if (file.path.generic_string() == drift.field) what = file.what;
      }
      add({what, drift.field, drift.registered, drift.found, ""});
    }
  }

  void check_manifest_files() {
    try {
      for (const PlanDrift& drift : check_manifests(files_, plan_)) {
        add({"manifest", drift.field, drift.registered, drift.found, ""});
      }
    } catch (const Error& error) {  // an unreadable manifest must not hide what else changed
      add({"manifest", plan_.path.generic_string(), "a readable manifest", error.what(), ""});
    }
  }

  void check_data(const std::optional<std::filesystem::path>& data, Db* store) {
    for (const SubsetCheck& check : verify_data(files_, plan_, data, {}).subsets) {
      if (check.status == SubsetStatus::missing) {
        result_.unchecked.push_back(
            fmt::format("data of subset {}: {}", check.subset, check.problem));
        continue;
      }
      ++result_.checked;
      if (check.status == SubsetStatus::ok) continue;
      add({"data", check.path.generic_string(), check.registered_sha256,
           fmt::format("{} ({})", check.found_sha256.empty() ? "(unreadable)" : check.found_sha256,
                       check.problem),
           first_changed(check, store)});
    }
  }

  void check_checkpoints(const std::optional<std::filesystem::path>& folder) {
    for (const Checkpoint& checkpoint : plan_.effective.checkpoints) {
      for (const CheckpointFile& file : checkpoint.files) {
        const std::string what = fmt::format("file {} of checkpoint {}", file.name, checkpoint.id);
        if (!folder || !files_.exists(*folder / file.name)) {
          result_.unchecked.push_back(what + (folder ? ": not there" : ": no folder was given"));
          continue;
        }
        ++result_.checked;
        const std::string found = sha256_file(files_, *folder / file.name);
        if (found != file.sha256) {
          add({"checkpoint", (*folder / file.name).generic_string(), file.sha256, found, ""});
        }
      }
    }
  }

  /// What a run left beside the store has to say what the store says.
  void check_reports(Db& store) {
    std::optional<ReportModel> model;
    for (const auto& [format, ending] : kReportCopies) {
      const std::filesystem::path copy = report_path(store.path(), ending);
      if (!files_.exists(copy)) {
        result_.unchecked.push_back(fmt::format("report {}: not there", copy.generic_string()));
        continue;
      }
      ++result_.checked;
      try {
        if (!model) model = build_report(store);
        const auto different = compare_copy(files_.read(copy), render(*model, format, {}));
        if (!different) continue;
        add({"report", copy.generic_string(),
             different->line == 0 ? "what the store says" : different->report, different->copy,
             different->line == 0 ? "" : fmt::format("line {}", different->line)});
      } catch (const Error& error) {
        add({"report", copy.generic_string(), "what the store says", error.what(), ""});
      }
    }
  }

  void check_store(Db& store) {
    try {
      audit_store(store, files_, plan_, result_);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::drift) throw;
      add({"store", store.path().generic_string(), "as it was written", error.what(), ""});
    }
  }

 private:
  /// The file alone tells the first line that is no record; which record is another one than it was
  /// is known to a store that has seen the registered file.
  std::string first_changed(const SubsetCheck& check, Db* store) {
    if (store != nullptr) {
      const std::string row =
          first_changed_record(*store, plan_, check.group, check.subset, files_.read(check.path));
      if (!row.empty()) return row;
    }
    return check.first_bad_line > 0 ? fmt::format("line {}", check.first_bad_line) : "";
  }

  void add(AuditFinding finding) { result_.findings.push_back(std::move(finding)); }

  Files& files_;
  const OpenPlan& plan_;
  AuditResult& result_;
};

}  // namespace

AuditResult audit_plan(Files& files, const std::filesystem::path& path, const AuditScope& scope) {
  AuditResult result;
  OpenPlan plan;
  try {
    plan = open_plan(files, path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::drift) throw;
    // Lock or ledger were edited: without them nobody knows what was registered, so this is all.
    const std::string ledger = ledger_path(path).filename().string();
    const bool in_ledger = error.message().find(ledger) != std::string::npos;
    result.findings.push_back({in_ledger ? "ledger" : "lock",
                               (in_ledger ? ledger_path(path) : lock_path(path)).generic_string(),
                               "as preval wrote it", error.what(), ""});
    result.unchecked.emplace_back("everything else: lock and ledger have to be restored first");
    return result;
  }
  result.deviations = plan.deviations;
  Audit audit(files, plan, result);
  audit.check_plan();
  audit.check_manifest_files();
  audit.check_data(scope.data, scope.store);
  audit.check_checkpoints(scope.checkpoints);
  if (scope.store != nullptr) {
    audit.check_store(*scope.store);
    audit.check_reports(*scope.store);
  }
  return result;
}

}  // namespace preval
