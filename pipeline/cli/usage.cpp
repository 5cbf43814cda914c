#include "cli/usage.h"

#include <fmt/format.h>

#include <sstream>
#include <vector>

#include "base/text.h"

namespace preval {

namespace {

/// CLI11 says of a misspelt command only that one is required.
std::string unknown_command(const CLI::App& app) {
  const std::vector<std::string> left = app.remaining();
  if (!app.get_subcommands().empty() || left.empty() || left.front().starts_with("-")) return {};
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return fmt::format("preval: there is no command \"{}\"{}\n  hint: commands: {}\n", left.front(),
                     did_you_mean(left.front(), names), join(names, ", "));
}

/// The words that CLI11 could not place, in the order of the call: its message has them reversed,
/// and nothing else has them once the parse was given up.
std::vector<std::string> words_left(std::string_view message) {
  std::vector<std::string> words;
  const std::size_t colon = message.find(": ");
  std::istringstream list(std::string(colon == message.npos ? "" : message.substr(colon + 2)));
  for (std::string word; list >> word;) words.insert(words.begin(), word);
  return words;
}

/// What is wrong with a call, in one form with all other errors.
std::string usage_text(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
  const std::string called = command == &app ? "preval" : "preval " + command->get_name();
  const auto is = [&](CLI::ExitCodes code) {
    return error.get_exit_code() == static_cast<int>(code);
  };
  std::string what = error.what();
  if (const auto left = words_left(what); is(CLI::ExitCodes::ExtrasError) && !left.empty()) {
    std::vector<std::string> names;
    for (const CLI::App* each : {command, &app}) {
      for (const CLI::Option* option : each->get_options()) names.push_back(option->get_name());
    }
    what = fmt::format("{} does not take \"{}\"{}", called, left.front(),
                       did_you_mean(left.front(), names));
  } else if (is(CLI::ExitCodes::RequiredError)) {
    if (command == &app) what = "a command is needed";
    if (what == "plan is required") what = called + " needs a PLAN";
    if (what == "output is required" || what == "inputs is required")
      what = called + " needs OUT.db, which it makes, and the stores to unite";
  }
  return fmt::format("preval: {}\n  hint: {} --help shows what it takes\n", printable(what),
                     called);
}

}  // namespace

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  if (std::string text = unknown_command(app); !text.empty()) return text;
  return error.get_exit_code() == 0 ? std::string() : usage_text(app, error);
}

}  // namespace preval
