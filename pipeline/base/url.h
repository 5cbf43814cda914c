#pragma once
// Addresses of servers, checked by the library that will use them.
#include <string>

namespace preval {

/// What is wrong with the address of a server ("holds a query"), or empty when nothing is: http or
/// https, a host, perhaps a port and a path; no user, no query, no fragment.
std::string url_problem(const std::string& url);

/// The path of an address that is well, "/" when it has none.
std::string url_path(const std::string& url);

}  // namespace preval
