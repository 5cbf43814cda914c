#pragma once
// Where bearer keys come from. A plan names an environment variable and nothing else, so that no
// key is ever in a plan, on a command line or in a store.
#include <string>
#include <vector>

#include "plan/plan.h"

namespace preval {

/// The key of a backend whose plan says `"key_env": variable`: the value of that variable, or the
/// content of the file that VARIABLE_FILE names, less the line end. Empty for an empty name. Throws
/// backend when neither is set, usage when both are, usage for a file that is not ours or that
/// anybody else may read (its mode must be 0600 or stricter), and usage for a key that is too short
/// to be taken out of what is written or holds what cannot stand in a header.
std::string bearer_key(const std::string& variable);

/// "key not given: VARIABLE is not set" when a backend needs a key and there is none, or empty.
std::string key_not_given(const std::string& variable);

/// The environment variables that hold keys of this plan, and must not reach any other program.
std::vector<std::string> key_variables(const Plan& plan);

}  // namespace preval
