#pragma once
// "{name}" in wording and in server commands. One syntax for both, so that people learn it once.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace preval {

/// Names and what they stand for.
using Placeholders = std::vector<std::pair<std::string_view, std::string_view>>;

/// Replaces every {name} by its value; "{{" and "}}" stand for braces. Values are put in as they
/// are: braces in them mean nothing. Throws usage errors that begin with `where` for an unknown
/// name (naming the known ones) and for a brace that stands alone.
std::string fill_placeholders(std::string_view text, const Placeholders& values,
                              std::string_view where);

}  // namespace preval
