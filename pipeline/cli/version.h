#pragma once
// What this binary is, for --version and for the provenance of every run.
#include <string>

namespace preval {

/// "0.1.0"
std::string tool_version();

/// Commit the binary was built from, with "-dirty" when the tree had changes; empty when unknown.
std::string build_commit();

/// Version, commit and library versions, several lines, as --version prints them.
std::string version_text();

/// Processor, cores and operating system of this machine, one line.
std::string host_text();

}  // namespace preval
