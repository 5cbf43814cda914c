#pragma once
// Writing down a deviation: what had to differ from a locked plan, before it is done. Everything is
// checked against the effective plan of now, and the ledger grows by whole entries or not at all.
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "plan/lock.h"

namespace preval {

/// One field that is to differ.
struct Change {
  std::string field;  ///< JSON Pointer (RFC 6901) into the effective plan
  Json from, to;      ///< null stands for an optional field that is not there
};

/// Appends one entry per change to the plan's ledger, all of one time and reason, and returns them.
/// Several changes that only make sense together (a read mode and its k) are one call: the plan
/// must be valid after the last of them. Throws usage errors for a plan that is not locked, a field
/// that does not exist or has another value than `from`, a change of nothing, of the plan's name or
/// format, an empty reason, and an effective plan that would not be valid; drift errors for a plan
/// that changed since it was locked. `accept` sees the plan as it would be, before anything is
/// written, and throws when it does not fit what stands beside it.
std::vector<Deviation> deviate(Files& files, Clock& clock, const OpenPlan& plan,
                               const std::vector<Change>& changes, const std::string& why,
                               const std::function<void(const OpenPlan&)>& accept = {});

}  // namespace preval
