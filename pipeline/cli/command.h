#pragma once
// How a subcommand plugs into the program: one file per subcommand, one function each, which adds
// the command to the CLI11 tree and sets what happens when it is chosen.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/file.h"

namespace preval {

/// What every subcommand gets: the seams, the global options, and where to put its exit code.
struct Context {
  Files& files;
  Clock& clock;
  std::ostream& out;  ///< data
  std::ostream& err;  ///< talk and progress
  std::filesystem::path db = "results.db";
  std::string color = "auto";
  bool quiet = false, verbose = false;
  int exit_code = 0;
};

void add_verify(CLI::App& app, Context& context);
void add_lock(CLI::App& app, Context& context);
void add_deviate(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_rehearse(CLI::App& app, Context& context);
void add_probe(CLI::App& app, Context& context);
void add_merge(CLI::App& app, Context& context);
void add_score(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_audit(CLI::App& app, Context& context);
void add_query(CLI::App& app, Context& context);

/// The foot of a command's help: three examples and the exit codes.
std::string help_footer(std::initializer_list<std::string_view> examples,
                        std::string_view exit_codes);

/// Whether to colour this stream: --color, NO_COLOR, CLICOLOR_FORCE, and whether it is a terminal.
bool use_color(const Context& context, int fd);

}  // namespace preval
