#pragma once
// Has anything changed since it was registered? The audit looks at everything that a plan pins and
// says, for each difference, which field it is, what was registered and what is there now. It never
// stops at the first one, and it says what it could not look at.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "plan/deviation.h"
#include "store/db.h"

namespace preval {

/// One difference.
struct AuditFinding {
  /// plan | lock | ledger | prompt | manifest | published | transcript | data | checkpoint | store
  /// | report
  std::string what;
  std::string field;  ///< JSON pointer into the plan, a file's path, or the name of a row
  std::string registered, found;
  std::string first_row;  ///< first affected row, where one can be named; else empty
};

struct AuditResult {
  std::vector<AuditFinding> findings;
  int checked = 0;  ///< things compared: plan, named files, data and checkpoint files
  std::vector<std::string> unchecked;  ///< what is not here and so was not compared
  /// What has been registered as different since the lock; no drift, but whoever audits has to
  /// know.
  std::vector<Deviation> deviations;
};

/// Where to look for files that a plan pins and that need not be there.
struct AuditScope {
  std::optional<std::filesystem::path> data;  ///< overrides every group's folder
  std::optional<std::filesystem::path>
      checkpoints;      ///< checkpoint files are looked at only with it
  Db* store = nullptr;  ///< opened read-only; audited when it holds this plan
};

/// Audits a plan with everything beside it. Throws usage errors for a plan that cannot be read at
/// all.
AuditResult audit_plan(Files& files, const std::filesystem::path& plan, const AuditScope& scope);

}  // namespace preval
