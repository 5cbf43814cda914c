#pragma once
// Manifests: what a data file must be, in the field names of the published ones. A plan pins each
// manifest by digest and repeats its numbers, so the two are checked against each other.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "plan/lock.h"

namespace preval {

struct Manifest {
  std::string dataset_sha256;  ///< of the data file
  std::string source_sha256;   ///< of the upstream file; empty: own records
  std::string license;
  std::string source;  ///< empty: not told
  int count = 0, families = 0;
  std::map<std::string, int> labels;  ///< target → records; empty: not told
};

/// One JSON object: subset name → manifest. Errors (usage) name file and JSON pointer.
std::map<std::string, Manifest> parse_manifests(std::string_view text, const std::string& where);

/// Differences between the plan's subsets and its manifest files: digest, record count, families,
/// and subsets that the manifest does not have. Fields are JSON pointers into the plan;
/// `registered` is the plan's value, `found` the manifest's. Manifest files that are absent are
/// left to check_lock().
std::vector<PlanDrift> check_manifests(Files& files, const OpenPlan& plan);

}  // namespace preval
