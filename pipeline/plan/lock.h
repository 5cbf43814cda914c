#pragma once
// A locked plan never changes. lock_plan() writes NAME.lock.json beside the plan; open_plan() reads
// plan, lock and the ledger of deviations together and gives the effective plan.
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "plan/deviation.h"
#include "plan/difference.h"
#include "plan/plan.h"

namespace preval {

/// What NAME.lock.json holds.
struct Lock {
  std::string plan_sha256;  ///< of the plan's canonical JSON
  std::map<std::string, std::string>
      files;  ///< path as in the plan → SHA-256 (prompt, manifests, published)
  std::string locked_at, tool_version, git_commit;
  Json plan;  ///< the plan as locked, so that a change can be named
};

/// A plan file with everything that stands beside it.
struct OpenPlan {
  std::filesystem::path path, directory;
  Json json;           ///< the plan file as it is
  std::string sha256;  ///< of its canonical form
  std::optional<Lock> lock;
  std::vector<Deviation> deviations;  ///< in order, chain checked
  std::string ledger_head;            ///< hash of the last deviation; empty without any
  /// The locked plan plus the ledger. A plan file that changed since it was locked is taken as it
  /// stands, without the ledger, for exploratory runs: check_lock() says so.
  Json effective_json;
  std::string effective_sha256;  ///< of its canonical form
  Plan effective;

  /// A path of the plan, resolved against the plan's folder.
  std::filesystem::path resolve(const std::filesystem::path& relative) const;
};

/// A file beside the plan that it pins by digest. Data and checkpoints are not among them: they may
/// be absent, and are checked where they are read.
struct NamedFile {
  std::string what;            ///< prompt | manifest | published
  std::filesystem::path path;  ///< as in the plan
  std::string sha256;          ///< registered
};

/// The prompt file, the manifests and the published figures of a plan, each path once.
std::vector<NamedFile> named_files(const Plan& plan);

/// Reads plan, lock and ledger. Throws usage errors for a broken plan, drift errors for a lock that
/// was edited, a broken ledger chain, or a ledger without a lock. A missing lock or a changed plan
/// is not an error here: see check_lock().
OpenPlan open_plan(Files& files, const std::filesystem::path& path);

/// Differences between the locked plan and the plan file, and between the digests of the effective
/// plan and the bytes of the files it names; a plan without a lock has only the latter. Empty: no
/// drift.
std::vector<PlanDrift> check_lock(Files& files, const OpenPlan& plan);

/// The text of a lock file. Throws drift errors for one whose parts do not fit together.
Lock parse_lock(std::string_view text, const std::string& where);

/// Writes the lock. False when an equal lock stands already. A changed plan is refused (drift) with
/// the changed fields named; prompt, manifest and published files must have the digests in the
/// plan.
bool lock_plan(Files& files, Clock& clock, const OpenPlan& plan, const std::string& tool_version,
               const std::string& git_commit);

/// "prereg/quickstart.json" → "prereg/quickstart.lock.json".
std::filesystem::path lock_path(const std::filesystem::path& plan);
/// "prereg/quickstart.json" → "prereg/quickstart.deviations.jsonl".
std::filesystem::path ledger_path(const std::filesystem::path& plan);

}  // namespace preval
