#pragma once
// What exactly changed between two JSON documents, named by JSON pointer: a digest says that
// something is different, people need to know what.
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace preval {

/// One difference between what was registered and what is there.
struct PlanDrift {
  std::string field;              ///< JSON pointer, or a file's path
  std::string registered, found;  ///< JSON values or digests; "(absent)" where there is none
};

/// Every value that differs, depth first, in the order of `registered` and then of keys that only
/// `found` has. The order of an object's keys is no difference; 1 and 1.0 are equal. Long values
/// are shortened. Array elements are compared by position.
std::vector<PlanDrift> json_differences(const Json& registered, const Json& found);

/// Equal as canonical JSON.
bool same_json(const Json& a, const Json& b);

/// "FIELD: registered A, found B", one per line, at most `limit` of them and then how many more.
std::string describe(const std::vector<PlanDrift>& drifts, std::size_t limit = 10);

}  // namespace preval
