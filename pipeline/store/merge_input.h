#pragma once
// One store that is to be merged: opened for reading, as it is at one moment, and looked through
// before anything is taken from it.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "store/db.h"
#include "store/digest.h"
#include "store/seal.h"

namespace preval {

/// Where rows of a table went: their numbers there by their numbers here. Rows that came in one
/// piece, as nearly all do, take one range together.
class IdMap {
 public:
  /// In ascending order of `from`.
  void add(std::int64_t from, std::int64_t to);
  std::optional<std::int64_t> find(std::int64_t from) const;
  bool leads_to(std::int64_t to) const;

 private:
  struct Range {
    std::int64_t from, to, count;
  };
  std::vector<Range> ranges_;
};

struct MergeInput {
  Db db;  ///< in a read transaction
  std::string name, sha256, effective_sha256, ledger_head;
  std::optional<std::string> locked_at;
  bool simulated = false;
  std::string begun;  ///< start of its first run; empty without runs
  LogicalDigest digest;
  std::string seal;                  ///< SHA-256 of its last seal; empty: it has none
  std::map<std::string, IdMap> ids;  ///< by table

  std::string path() const { return db.path().generic_string(); }
};

/// Opens and audits an input. Throws usage for one that another process writes, that holds no plan,
/// or that this preval cannot read; drift for one that is not what it was when it was sealed, with
/// the first row or the groups of rows that differ.
MergeInput open_input(Files& files, const std::filesystem::path& path);

}  // namespace preval
