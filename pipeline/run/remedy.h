#pragma once
// What to do about a server that is not what the plan says: the exact command that registers what
// it can do as a deviation, where there is one.
#include <string>
#include <vector>

#include "backend/probe.h"
#include "plan/lock.h"

namespace preval {

/// "preval deviate PLAN --field … --from … --to … --why TEXT" with the changes that the findings
/// against the plan call for, or empty when no field of the plan would make any of them right.
std::string remedy(const OpenPlan& plan, const BackendSpec& spec,
                   const std::vector<Finding>& problems, const ProbeResult& found);

}  // namespace preval
