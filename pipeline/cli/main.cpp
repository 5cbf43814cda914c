// The program: global options, one line per subcommand, and the place where errors become exit
// codes.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/version.h"

namespace {

/// CLI11 says of a misspelt command only that one is required.
std::string unknown_command(const CLI::App& app) {
  const std::vector<std::string> left = app.remaining();
  if (!app.get_subcommands().empty() || left.empty() || left.front().starts_with("-")) return {};
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return fmt::format("preval: there is no command \"{}\"{}\n  hint: commands: {}", left.front(),
                     preval::did_you_mean(left.front(), names), preval::join(names, ", "));
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
                       preval::did_you_mean(left.front(), names));
  } else if (is(CLI::ExitCodes::RequiredError)) {
    if (command == &app) what = "a command is needed";
    if (what == "plan is required") what = called + " needs a PLAN";
  }
  return fmt::format("preval: {}\n  hint: {} --help shows what it takes\n", preval::printable(what),
                     called);
}

/// Whoever starts a program without its standard streams (`preval run >&-`) would have the next
/// files that are opened take their numbers, and what is printed end up in a store. Reading from
/// these gives nothing, and writing to them is an error like any other.
void keep_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0 && nothing != stream) {
      dup2(nothing, stream);
      close(nothing);
    }
  }
}

/// The exit code, unless what was printed did not all arrive.
int written(int code) {
  std::cout.flush();
  if (std::cout) return code;
  // The stream only knows that some write failed. One more write tells how.
  const ssize_t one = write(STDOUT_FILENO, "\n", 1);
  const int reason = one < 0 ? errno : EIO;
  if (reason == EPIPE) return code;
  std::cerr << "preval: standard output could not be written: " << std::strerror(reason) << '\n';
  return code != 0 ? code : preval::exit_code(preval::ErrorKind::io);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace preval;
  keep_standard_streams();
  // A reader that goes away (`preval report | head`) is the end of the output, not of the program.
  std::signal(SIGPIPE, SIG_IGN);
  // A file size limit is a failed write like a full disk, not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);

  SystemFiles files;
  SystemClock clock;
  Context context{files, clock, std::cout, std::cerr};

  CLI::App app{
      "preval runs a preregistered evaluation: it reads labels from language models as\n"
      "a plan fixed before the first call says, keeps every answer in SQLite, and\n"
      "reports accuracy, agreement and calibration."};
  app.get_formatter()->column_width(26);
  app.name("preval");
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag(
      "--version", [] { return version_text(); }, "Versions of tool and libraries");
  app.add_option("--db", context.db, "The store")
      ->capture_default_str()
      ->check([](const std::string& name) {
        if (name.empty()) return std::string("a file name is needed");
        const bool no_file = name == ":memory:" || name.starts_with("file:");
        return no_file ? "\"" + name + "\" is no file name" : std::string();
      });
  app.add_option("--color", context.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  app.add_flag("-q,--quiet", context.quiet, "No progress and no talk; results are printed");
  app.add_flag("-v,--verbose", context.verbose, "Say more");
  app.footer(
      help_footer({"preval verify prereg/quickstart.json", "preval run prereg/quickstart.json",
                   "preval query \"select * from v_accuracy\""},
                  kExitCodes));
  add_verify(app, context);
  add_lock(app, context);
  add_deviate(app, context);
  add_run(app, context);
  add_rehearse(app, context);
  add_probe(app, context);
  add_score(app, context);
  add_report(app, context);
  add_audit(app, context);
  add_query(app, context);

  try {
    app.parse(argc, argv);
    return written(context.exit_code);
  } catch (const CLI::ParseError& error) {
    if (const std::string word = unknown_command(app); !word.empty()) {
      std::cerr << word << '\n';
      return exit_code(ErrorKind::usage);
    }
    if (error.get_exit_code() == 0) return written(app.exit(error, std::cout, std::cerr));
    std::cerr << usage_text(app, error);
    return exit_code(ErrorKind::usage);
  } catch (const Error& error) {
    std::cout.flush();
    std::cerr << "preval: " << preval::printable(error.message()) << '\n';
    if (!error.hint().empty()) std::cerr << "  hint: " << preval::printable(error.hint()) << '\n';
    return exit_code(error.kind());
  } catch (const std::exception& error) {
    std::cerr << "preval: internal error: " << error.what() << '\n';
    return exit_code(ErrorKind::check);
  }
}
