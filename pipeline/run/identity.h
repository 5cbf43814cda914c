#pragma once
// Whether two descriptions of a server, as it gave them itself, are of one and the same.
#include <string>

#include "base/json.h"

namespace preval {

/// "version: registered 0.32.0, found 0.33.0", of the first fact that differs; empty when none
/// does. A fact that only one of them has says nothing, since servers leave out what they cannot
/// tell just now, but for those that say who it is: engine, version, build, model and digest.
std::string identity_difference(const Json& registered, const Json& found);

/// The facts of a stored identity beside each other, whoever told them: the server, its replies, or
/// the plan's version command.
Json facts_of_identity(const Json& identity);

}  // namespace preval
