#pragma once
// What is wrong with a call, in one form with all other errors: CLI11's own words name neither the
// command nor what was probably meant.
#include <CLI/CLI.hpp>
#include <string>

namespace preval {

/// The lines to print for a call that `app` could not parse, each with its line end; empty for one
/// that asked for help or the version and for nothing that is not there.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace preval
