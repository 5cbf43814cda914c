#pragma once
// The logical digest of a store: equal digests mean equal evidence, on any machine and with any
// version of SQLite. It covers records, answers with their labels, and failures that are the last
// word on a read, by their row digests (store/row_digest.h) and whether they count. It leaves out,
// by name: run, stage, event, finding, scored and every score_ table; and the columns latency_ms,
// at, run_id, attempt, message, body_sha256 and body_head, which are about how and when, not about
// what.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "store/db.h"

namespace preval {

/// The rows of one table, arm and subset.
struct EvidenceGroup {
  std::string table, arm, dataset, subset;  ///< arm: empty for records
  std::int64_t rows = 0;
  std::string digest;  ///< SHA-256 over the sorted digests of its rows, hexadecimal

  std::string name() const;  ///< "prediction, arm a, suite/boolq"
  bool operator==(const EvidenceGroup&) const = default;
};

struct LogicalDigest {
  std::string digest;                 ///< over the groups, hexadecimal
  std::vector<EvidenceGroup> groups;  ///< by table, arm, dataset and subset
  std::int64_t rows = 0;
};

/// A group of evidence that is not in one digest as it is in another.
struct GroupDifference {
  std::string group, before, now;  ///< its name; "2 rows, 1fc0…", or "none"
};
/// A row that was changed together with its own digest, taken out or put in, or that counts now and
/// did not, leaves its group different.
std::vector<GroupDifference> group_differences(const std::vector<EvidenceGroup>& before,
                                               const std::vector<EvidenceGroup>& now);

/// A row whose content is not what its own digest says.
struct ChangedRow {
  std::string table, row;        ///< row: "arm a, boolq, boolq-dev-7, repeat 0"
  std::string stored, computed;  ///< hexadecimal; stored: empty when there is none
};

/// Computes every row's digest anew; the logical digest is over these. `changed` hears of every row
/// that differs from what is stored beside it, and of option sets, whose digests stand for their
/// keys in those of records. Memory: 32 bytes per row of evidence.
LogicalDigest logical_digest(Db& db, const std::function<void(const ChangedRow&)>& changed = {});

/// Stores the row digests of a configuration's answers anew, after they were moved to it.
void renew_row_digests(Db& db, std::int64_t configuration);

}  // namespace preval
