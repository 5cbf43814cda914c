#pragma once
// Whether the parts of a plan fit together: every id once, every reference to something that is
// there.
#include <string>

#include "plan/plan.h"

namespace preval {

/// Throws usage errors that name file, JSON pointer and reason, with a suggestion where a name is
/// nearly right. Subset ids are unique over all groups, since arms and subsets alone name a score.
void check_references(const Plan& plan, const std::string& where);

}  // namespace preval
