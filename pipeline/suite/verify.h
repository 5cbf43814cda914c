#pragma once
// Is the data what was registered? One answer per subset: ok, missing or mismatch.
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "plan/lock.h"
#include "suite/record.h"

namespace preval {

enum class SubsetStatus { ok, missing, mismatch };
std::string_view to_text(SubsetStatus value);

struct SubsetCheck {
  std::string group, subset;
  SubsetStatus status = SubsetStatus::missing;
  std::filesystem::path path;
  std::string registered_sha256, found_sha256;
  int registered_records = 0, found_records = 0;
  int registered_families = 0, found_families = 0;
  std::string problem;  ///< empty when ok; "only line ends differ", the parse error, …
  /// What arms that read by token leave out, though the file is what was registered; or empty.
  std::string note;
  int first_bad_line = 0;  ///< 1-based line of the first wrong record, as far as known; else 0
};

struct VerifyResult {
  std::vector<SubsetCheck> subsets;  ///< in plan order
  int ok = 0, missing = 0, mismatch = 0;
};

/// Checks every subset file of the plan: bytes (SHA-256), record count, families, question type,
/// ids unique. `data` overrides the folder of every group (DATA/SUBSET/all.jsonl). Each verified
/// subset's records are handed to `on_records` while they are in memory, so that nobody reads a
/// file twice. `stop` is asked before every subset and every record: once it says so, this throws
/// interrupted, and nothing is handed over any more.
VerifyResult verify_data(Files& files, const OpenPlan& plan,
                         const std::optional<std::filesystem::path>& data,
                         const std::function<void(const std::string&)>& warn,
                         const std::function<void(const DatasetGroup&, const Subset&,
                                                  std::vector<Record>&&)>& on_records = {},
                         const std::function<bool()>& stop = {});

}  // namespace preval
