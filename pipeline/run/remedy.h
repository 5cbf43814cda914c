#pragma once
// What to do about a server that is not what the plan says: the exact command that registers what
// it can do as a deviation, where there is one.
#include <string>

#include "backend/probe.h"
#include "plan/lock.h"

namespace preval {

/// "preval deviate PLAN --field … --from … --to … --why TEXT" for a finding that contradicts the
/// plan, or empty when no field of the plan would make it right.
std::string remedy(const OpenPlan& plan, const BackendSpec& spec, const Finding& finding,
                   const ProbeResult& found);

}  // namespace preval
