#pragma once
// A seal says what a store held when a run ended: the logical digest, chained to the plan, to the
// deviations and to the seal before it. It is written into the store and, since whoever changes a
// store can change what is in it, into a file beside it that can be kept elsewhere.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "store/digest.h"

namespace preval {

/// One of the stores that a merged store was made from.
struct SealOrigin {
  std::string digest;  ///< its logical digest then
  std::string seal;    ///< SHA-256 of its last seal; empty: it had none
};

struct Seal {
  std::int64_t number = 0;  ///< 1, 2, …
  std::string at;           ///< UTC
  std::string plan_sha256, effective_sha256;
  std::string ledger_head;  ///< empty without deviations
  std::string digest;       ///< the logical digest
  std::vector<EvidenceGroup> groups;
  std::string previous;            ///< sha256 of the seal before; empty for the first
  std::vector<SealOrigin> merged;  ///< of a store that was just merged; else empty
  std::string sha256;              ///< of all the above

  std::string computed_sha256() const;
};

/// results.db → results.seal.json.
std::filesystem::path seal_path(const std::filesystem::path& db);

/// Seals a store that holds a plan, in the store alone. Evidence that the last seal holds already
/// is not sealed again. Throws drift where a row was changed. Returns the store's last seal.
Seal put_seal(Db& db, Clock& clock, const std::vector<SealOrigin>& merged = {});

/// Writes the file beside the store.
void write_seal(Files& files, const std::filesystem::path& db, const Seal& seal);

/// Seals a store that holds a plan, and writes the file beside it. Returns the store's
/// last seal.
Seal seal_store(Db& db, Files& files, Clock& clock);

/// Every seal, in order. Throws drift where the table was made unreadable.
std::vector<Seal> read_seals(Db& db);

/// The seal of a file. Throws usage for a file that is none.
Seal parse_seal(std::string_view text, const std::string& name);

}  // namespace preval
