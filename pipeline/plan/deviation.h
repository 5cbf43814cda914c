#pragma once
// The ledger of deviations: a plan that was locked is never edited; what had to differ is written
// beside it, dated, with its reason, each entry chained to the one before by its SHA-256.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace preval {

/// One line of NAME.deviations.jsonl.
struct Deviation {
  int number = 0;     ///< 1, 2, …
  std::string field;  ///< JSON Pointer (RFC 6901) into the plan
  Json from, to;
  std::string why, at;           ///< at: UTC
  std::string previous, sha256;  ///< previous: sha256 of the entry before, or of the locked plan
};

/// Parses and checks a whole ledger: numbers in order, every `previous` equal to the entry before
/// (the first one to `plan_sha256`), every `sha256` that of the entry's canonical JSON without it.
/// Throws drift errors that name the line.
std::vector<Deviation> parse_ledger(std::string_view text, const std::string& where,
                                    const std::string& plan_sha256);

/// The SHA-256 that an entry carries: of the canonical JSON of all its other fields, `previous`
/// included, so that no entry before it can change unseen.
std::string entry_sha256(const Deviation& entry);

/// The entry as the ledger holds it: one line with its line feed.
std::string ledger_line(const Deviation& entry);

/// Where a field is in a plan, or would be: a member that an object lacks is null. Nothing when
/// `field` names neither. Throws Json::exception when it is no JSON pointer.
std::optional<Json::json_pointer> find_field(const Json& plan, const std::string& field);

/// The plan's JSON with the deviations applied in order. Throws drift when a `from` does not hold.
Json apply_deviations(const Json& plan, const std::vector<Deviation>& deviations);

}  // namespace preval
