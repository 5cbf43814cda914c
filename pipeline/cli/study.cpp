#include "cli/study.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "base/error.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/version.h"
#include "report/copy.h"
#include "report/model.h"
#include "run/json_events.h"
#include "run/progress.h"
#include "score/score.h"

namespace preval {

namespace {

constexpr char kGemmaTerms[] = "gemma";

int terminal_width(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 100;
}

bool environment_says_yes(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

RunOptions run_options(const OpenPlan& plan, const StudyOptions& given) {
  RunOptions options;
  if (!given.data.empty()) options.data = given.data;
  options.arms = given.arms;
  options.subsets = given.subsets;
  options.limit = given.limit;
  if (given.shard) options.shard = parse_shard(*given.shard);
  options.max_usd = given.max_cost;
  options.exploratory = given.exploratory;
  options.retry_failed = given.retry_failed == "yes";
  options.accepted_terms = {given.accepted_terms.begin(), given.accepted_terms.end()};
  options.named_terms = given.accepted_terms;
  if (given.accept_gemma || environment_says_yes("PREVAL_ACCEPT_GEMMA_TERMS")) {
    options.accepted_terms.insert(kGemmaTerms);
  }
  options.root = root_of(plan.path);
  options.checkpoints = given.checkpoints.empty() ? checkpoint_folder(plan.path)
                                                  : std::filesystem::path(given.checkpoints);
  options.logs =
      given.logs.empty() ? options.root / ".local/logs" : std::filesystem::path(given.logs);
  options.record = given.record;
  return options;
}

void make_folder(const std::filesystem::path& folder, std::string_view option) {
  std::error_code refused;
  std::filesystem::create_directories(folder, refused);
  if (!refused) return;
  throw Error(std::filesystem::exists(folder) ? ErrorKind::usage : ErrorKind::io,
              fmt::format("cannot make the folder {}: {}", folder.string(), refused.message()),
              fmt::format("name another one with {}", option));
}

Json published_figures(Files& files, const OpenPlan& plan) {
  if (!plan.effective.published) return Json();
  const std::filesystem::path path = plan.resolve(plan.effective.published->file);
  return parse_json(files.read(path), path.string());
}

void print_dry_run(Context& context, const OpenPlan& plan, const RunOptions& options) {
  std::optional<Db> store;
  if (context.files.exists(context.db)) store.emplace(open_store(context.db, Db::Mode::read_only));
  const std::vector<ArmPlan> arms =
      dry_run(context.files, plan, options, store ? &*store : nullptr);
  context.out << fmt::format("{:<28} {:>10} {:>8} {:>8} {:>8} {:>9} {:>10} {:>9}\n", "arm",
                             "registered", "left out", "stored", "to ask", "~ calls", "~ tokens",
                             "~ USD");
  std::int64_t left_out = 0;
  for (const ArmPlan& arm : arms) {
    const std::string state = !arm.state.empty() ? "not run: " + arm.state
                              : arm.confirmatory ? "confirmatory"
                                                 : "exploratory";
    const std::string usd = arm.usd ? fmt::format("{:.2f}", *arm.usd) : std::string("–");
    context.out << fmt::format("{:<28} {:>10} {:>8} {:>8} {:>8} {:>9} {:>10} {:>9}  {}\n", arm.arm,
                               grouped(arm.registered), grouped(arm.left_out), grouped(arm.stored),
                               grouped(arm.to_ask()), grouped(arm.calls), grouped(arm.tokens), usd,
                               state);
    left_out = std::max(left_out, arm.left_out);
  }
  if (left_out > 0 && !context.quiet) {
    context.err << "left out: subsets that are not here or not what was registered (preval verify "
                   "names them), and questions too wide for the arm\n";
    if (options.shard) {
      context.err << fmt::format(
          "of a subset that is not here, one record in {} is taken for this "
          "shard's\n",
          options.shard->of);
    }
  }
}

void score_and_report(Context& context) {
  Db db = open_store(context.db, Db::Mode::read_write);
  recompute_scores(db, context.clock, tool_version());
  report_results(context, db, seal_store(db, context.files, context.clock));
}

void say_what_is_missing(Context& context, const OpenPlan& plan,
                         const std::vector<std::string>& wanted, const RunResult& result) {
  std::size_t registered = 0;
  for (const DatasetGroup& group : plan.effective.datasets) {
    for (const Subset& subset : group.subsets) registered += selected(wanted, subset.id) ? 1 : 0;
  }
  const std::size_t absent = result.missing_subsets.size() + result.dropped_subsets.size();
  if (absent > 0) {
    context.err << fmt::format("{} of {} {}subsets", registered - absent, registered,
                               wanted.empty() ? "" : "selected ");
    if (!result.missing_subsets.empty()) {
      context.err << "; missing: " << join(result.missing_subsets, ", ");
    }
    if (!result.dropped_subsets.empty()) {
      context.err << "; dropped: " << join(result.dropped_subsets, ", ");
    }
    context.err << '\n';
  }
  if (!result.withheld.empty()) context.err << result.withheld << '\n';
  if (!result.arms_not_begun.empty()) {
    context.err << fmt::format("arms not begun: {}\n", join(result.arms_not_begun, ", "));
  }
  if (!result.refused_arms.empty()) {
    context.err << fmt::format("arms that cannot be run as the plan and the call say: {}\n",
                               join(result.refused_arms, ", "));
  }
  if (!result.broken_arms.empty()) {
    context.err << fmt::format("arms whose server kept failing: {}\n",
                               join(result.broken_arms, ", "));
  }
  if (!result.unserved_arms.empty()) {
    context.err << fmt::format(
        "arms that did not serve, or could not be asked at the end who they are: {}\n",
        join(result.unserved_arms, ", "));
  }
  if (result.missing_reads > 0) {
    const bool to_mend = !result.drift.empty() || !result.refused_arms.empty() ||
                         !result.broken_arms.empty() || !result.unserved_arms.empty();
    context.err << fmt::format("{} {} missing: {}the same command asks for what is missing\n",
                               counted(result.missing_reads, "read"),
                               result.missing_reads == 1 ? "is" : "are",
                               to_mend ? "once that is mended, " : "");
  }
}

/// A word as a shell takes it.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./:=+,").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// What was called, without what belongs to this machine only: folders and the store.
std::string command_text(const StudyOptions& given, const std::optional<Simulation>& simulated) {
  std::string text = simulated ? "preval rehearse PLAN" : "preval run PLAN";
  if (!given.data.empty()) text += " --data DIR";
  for (const std::string& arm : given.arms) text += " --arm " + quoted(arm);
  for (const std::string& subset : given.subsets) text += " --subset " + quoted(subset);
  if (given.limit) text += fmt::format(" --limit {}", *given.limit);
  if (given.shard) text += " --shard " + parse_shard(*given.shard).text();
  if (given.exploratory) text += " --exploratory";
  if (given.max_cost) text += " --max-cost " + shortest(*given.max_cost);
  if (given.retry_failed != "yes") text += " --retry-failed " + given.retry_failed;
  for (const std::string& terms : given.accepted_terms) text += " --accept-terms " + quoted(terms);
  if (given.accept_gemma) text += " --accept-gemma-terms";
  if (!simulated) return text;
  const Simulation usual;
  const auto add = [&](std::string_view option, auto value, auto otherwise) {
    if (value != otherwise) text += fmt::format(" {} {}", option, value);
  };
  add("--accuracy", simulated->accuracy, usual.accuracy);
  add("--sharpness", simulated->sharpness, usual.sharpness);
  add("--missing", simulated->missing, usual.missing);
  add("--seed", simulated->seed, usual.seed);
  return text;
}

}  // namespace

std::filesystem::path root_of(const std::filesystem::path& plan) {
  return std::filesystem::absolute(plan).lexically_normal().parent_path().parent_path();
}

std::filesystem::path checkpoint_folder(const std::filesystem::path& plan) {
  return root_of(plan) / ".local/checkpoints";
}

void report_results(Context& context, Db& db, const Seal& seal) {
  const ReportModel model = build_report(db);
  RenderOptions look;
  look.color = use_color(context, STDOUT_FILENO);
  look.width = terminal_width(STDOUT_FILENO);
  look.brief = true;  // the whole report is in the files
  context.out << render(model, ReportFormat::table, look) << std::flush;
  for (const auto& [format, ending] : kReportCopies) {
    context.files.replace(report_path(context.db, ending), render(model, format, {}));
  }
  if (!context.quiet) {
    context.err << fmt::format("store   {}\nseal    {}: {}\nreport  {}\n        {}\n",
                               context.db.string(), seal_path(context.db).string(), seal.digest,
                               report_path(context.db, "md").string(),
                               report_path(context.db, "json").string());
  }
}

void add_study_options(CLI::App& command, StudyOptions& options) {
  command.add_option("plan", options.plan, "The plan")->required()->type_name("PLAN");
  command.add_option("--data", options.data, "Folder of SUBSET/all.jsonl, instead of the plan's")
      ->type_name("DIR");
  command.add_option("--arm", options.arms, "Only this arm (repeatable)")->type_name("A");
  command.add_option("--subset", options.subsets, "Only this subset (repeatable)")->type_name("S");
  command.add_option("--limit", options.limit, "Only the first N records of each subset; noted")
      ->type_name("N");
  command
      .add_option("--shard", options.shard,
                  "Only part I of N of the records, for N machines; preval merge unites them")
      ->type_name("I/N");
  command
      .add_option("--retry-failed", options.retry_failed,
                  "yes, or no: leave what earlier runs gave up")
      ->check(CLI::IsMember({"yes", "no"}))
      ->capture_default_str();
  command
      .add_option("--json-events", options.json_events,
                  "Append what happens to this file, a line of JSON each")
      ->type_name("FILE");
  command.add_option("--logs", options.logs, "Folder of server logs (.local/logs)")
      ->type_name("DIR");
}

void run_study(Context& context, const StudyOptions& given,
               const std::optional<Simulation>& simulated) {
  OpenPlan plan = open_plan(context.files, given.plan);
  if (simulated) {
    for (BackendSpec& backend : plan.effective.backends) {
      backend.kind = "simulated";
      backend.server.reset();
      backend.url.clear();
      backend.replica_urls.clear();
      backend.replicas = 1;
      backend.rate = {};
      backend.key_env.clear();
      backend.transcript.reset();
      backend.simulation = *simulated;
    }
  } else {
    gate(context.files, plan, given.exploratory);
  }
  const RunOptions options = run_options(plan, given);
  check_selection(plan.effective, options);
  if (given.dry_run) return print_dry_run(context, plan, options);

  RunInfo info;
  info.tool_version = tool_version();
  info.git_commit = build_commit();
  info.host = host_text();
  info.exploratory = given.exploratory;
  info.limit = given.limit;
  info.shard = options.shard;
  info.command = command_text(given, simulated);
  info.simulated =
      std::any_of(plan.effective.backends.begin(), plan.effective.backends.end(),
                  [](const BackendSpec& backend) { return backend.kind == "simulated"; });

  make_folder(options.logs, "--logs");
  if (!options.record.empty()) make_folder(options.record, "--record");
  const StoreLock lock(context.db);
  const SignalInterrupt interrupt;
  ProgressPrinter::Look look;
  look.terminal = isatty(STDERR_FILENO) == 1;
  look.color = use_color(context, STDERR_FILENO);
  look.quiet = context.quiet;
  look.verbose = context.verbose;
  look.width = terminal_width(STDERR_FILENO);
  look.simulated = info.simulated;
  ProgressPrinter progress(context.err, context.clock, look);
  JsonEvents json(context.files, context.clock, given.json_events);
  EventTee events({&progress, &json});
  RunResult result;
  {
    Store store(open_store(context.db, Db::Mode::create), context.clock);
    const RunSeams seams{context.files, context.clock, events, interrupt,
                         [] { return make_curl_transport(); }};
    result =
        run_pipeline(seams, store, plan, published_figures(context.files, plan), options, info);
  }
  context.exit_code = result.exit_code();
  json.ended(result.outcome(), result.exit_code(), result.missing_reads);
  try {
    score_and_report(context);
  } catch (const Error& error) {
    // The reads are stored, and how they went is what the exit code says.
    if (context.exit_code == 0) throw;
    context.err << fmt::format("preval: no report: {}\n", error.what());
  }
  say_what_is_missing(context, plan, given.subsets, result);
  if (result.interrupted) {
    context.err << "interrupted: what was answered is stored; the same command goes on\n";
  }
}

}  // namespace preval
