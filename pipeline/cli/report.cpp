// preval report: what the store says, for people and programs; and whether a copy still says the
// same.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <map>
#include <ostream>

#include "base/error.h"
#include "cli/command.h"
#include "report/copy.h"
#include "report/model.h"
#include "store/store.h"

namespace preval {

namespace {

constexpr int kWidth = 100;

struct ReportCommand {
  std::string format, output, check;
  bool json = false;
};

const std::map<std::string, ReportFormat> kFormats = {
    {"table", ReportFormat::table}, {"md", ReportFormat::markdown}, {"json", ReportFormat::json}};

/// The format asked for; without one, that of the named file's ending.
ReportFormat format_of(const ReportCommand& options) {
  if (options.json) return ReportFormat::json;
  if (!options.format.empty()) return kFormats.at(options.format);
  const std::filesystem::path named = options.check.empty() ? options.output : options.check;
  const std::string ending = named.extension().string();
  if (named.empty() || ending.empty() || ending == ".txt") return ReportFormat::table;
  const auto by_ending = kFormats.find(ending.substr(1));
  if (by_ending != kFormats.end()) return by_ending->second;
  throw Error(ErrorKind::usage, fmt::format("no report format for the ending {}", ending),
              "endings: .md, .json, .txt (table); or say --format");
}

/// A report must not take the place of what it is about.
void check_output(const Context& context, const std::filesystem::path& output) {
  for (const char* part : {"", "-wal", "-shm", ".lock"}) {
    std::error_code unknown;
    const std::filesystem::path guarded = context.db.string() + part;
    if (guarded == output || std::filesystem::equivalent(guarded, output, unknown)) {
      throw Error(
          ErrorKind::usage,
          fmt::format("{} is the store: a report cannot be written over it", output.string()),
          "name another file with -o");
    }
  }
  const std::string name = output.filename().string();
  if (name.ends_with(".lock.json") || name.ends_with(".deviations.jsonl")) {
    throw Error(ErrorKind::usage, fmt::format("{} belongs to a plan", output.string()),
                "name another file with -o");
  }
}

int terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kWidth;
}

void check(Context& context, const std::string& file, const std::string& report) {
  const auto different = compare_copy(context.files.read(file), report);
  if (!different) {
    if (!context.quiet)
      context.err << fmt::format("{} says what {} says\n", file, context.db.string());
    return;
  }
  const std::string remedy =
      fmt::format("preval report --db {} -o {} writes it anew", context.db.generic_string(), file);
  throw Error(ErrorKind::drift,
              different->line == 0
                  ? fmt::format("{} differs from the report: {}", file, different->copy)
                  : fmt::format("{} differs from the report in line {}\n  file:  {}\n  store: {}",
                                file, different->line, different->copy, different->report),
              remedy);
}

void report(Context& context, const ReportCommand& options) {
  if (!options.output.empty()) check_output(context, options.output);
  const ReportFormat format = format_of(options);
  Db db = open_store(context.db, Db::Mode::read_only);
  const bool to_terminal = options.output.empty() && options.check.empty();
  RenderOptions look;
  look.width = to_terminal ? terminal_width() : kWidth;
  look.color = to_terminal && use_color(context, STDOUT_FILENO);
  const std::string text = render(build_report(db), format, look);
  if (!options.check.empty()) return check(context, options.check, text);
  if (options.output.empty()) {
    context.out << text;
    return;
  }
  context.files.replace(options.output, text);
  if (!context.quiet) context.err << fmt::format("wrote {}\n", options.output);
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("report", "Reports what the store holds, or checks a copy");
  const auto options = std::make_shared<ReportCommand>();
  auto* format = command
                     ->add_option("--format", options->format,
                                  "table, md or json (default: by the file's ending)")
                     ->check(CLI::IsMember({"table", "md", "json"}));
  command->add_flag("--json", options->json, "Short for --format json")->excludes(format);
  auto* output =
      command->add_option("-o,--output", options->output, "Write to this file")->type_name("FILE");
  command
      ->add_option("--check", options->check, "Compare with this file; name the first difference")
      ->type_name("FILE")
      ->excludes(output);
  command->footer(help_footer(
      {"preval report", "preval report -o report.md", "preval report --check report.md"},
      "0 reported, or the copy is the same, 1 a file could not be written,\n"
      "  2 no such store, 3 the copy differs"));
  command->callback([options, &context] { report(context, *options); });
}

}  // namespace preval
