// The program: global options, one line per subcommand, and the place where errors become exit
// codes.
#include <csignal>
#include <iostream>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/streams.h"
#include "cli/usage.h"
#include "cli/version.h"

namespace {

/// What is wrong with the name of a store; empty: nothing. SQLite would take some for no file.
std::string store_name(const std::string& name) {
  if (name.empty()) return "a file name is needed";
  const bool no_file = name == ":memory:" || name.starts_with("file:");
  return no_file ? "\"" + name + "\" is no file name" : std::string();
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
  app.add_option("--db", context.db, "The store")->capture_default_str()->check(store_name);
  app.add_option("--color", context.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  app.add_flag("-q,--quiet", context.quiet, "No progress and no talk; results are printed");
  app.add_flag("-v,--verbose", context.verbose,
               "Say more: what preflight finds, attempts that fail");
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
  add_merge(app, context);
  add_score(app, context);
  add_report(app, context);
  add_audit(app, context);
  add_query(app, context);

  try {
    app.parse(argc, argv);
    return written(context.exit_code);
  } catch (const CLI::ParseError& error) {
    const std::string text = usage_error(app, error);
    if (text.empty()) return written(app.exit(error, std::cout, std::cerr));
    std::cerr << text;
    return exit_code(ErrorKind::usage);
  } catch (const Error& error) {
    std::cout.flush();
    std::cerr << "preval: " << printable(error.message()) << '\n';
    if (!error.hint().empty()) std::cerr << "  hint: " << printable(error.hint()) << '\n';
    return exit_code(error.kind());
  } catch (const std::exception& error) {
    std::cerr << "preval: internal error: " << error.what() << '\n';
    return exit_code(ErrorKind::check);
  }
}
