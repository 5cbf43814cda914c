#pragma once
// Whether stores belong together: one plan with one ledger, one server per arm, and shards that are
// all there and are each there once.
#include <string>
#include <vector>

#include "store/merge_input.h"

namespace preval {

/// Throws usage (drift for two locks of one plan) that names the first two stores, or the arm and
/// the shard, that do not fit.
void refuse_what_does_not_fit(std::vector<MergeInput>& inputs);

/// The configuration of each arm that counts when the stores are one: arm, SHA-256.
std::vector<std::pair<std::string, std::string>> counting_configurations(
    std::vector<MergeInput>& inputs);

}  // namespace preval
