// preval probe: what can this server do?
#include "backend/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "base/url.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "decision_prompt.h"
#include "plan/lock.h"
#include "probe_records.h"
#include "run/key.h"
#include "suite/verify.h"

namespace preval {
namespace {

struct ProbeOptions {
  std::string url, kind, plan, arm, data, read, model;
  std::optional<std::string> key_env;
  bool plain = false, json = false;
};

struct Subject {
  BackendSpec backend;
  Checkpoint checkpoint;
  PromptSpec prompt;
  ProbeFor purpose = ProbeFor::knowledge;
  PromptFile wording;
  std::vector<Record> records;
};

std::vector<Record> built_in_records() {
  return read_records(embedded::probe_records, "probe", "built-in records", [](auto&&) {});
}

const Arm& arm_of(const Plan& plan, const ProbeOptions& given) {
  std::vector<std::string> names;
  for (const Arm& arm : plan.arms) {
    const bool wanted =
        given.arm.empty() ? plan.backend(arm.backend).kind == given.kind : arm.id == given.arm;
    if (wanted && plan.backend(arm.backend).kind != given.kind) {
      throw Error(ErrorKind::usage,
                  fmt::format("arm {} is on a backend of kind {}, --kind says {}", arm.id,
                              plan.backend(arm.backend).kind, given.kind));
    }
    if (wanted) return arm;
    names.push_back(arm.id);
  }
  throw Error(
      ErrorKind::usage,
      given.arm.empty()
          ? fmt::format("the plan has no arm on a backend of kind {}", given.kind)
          : fmt::format("the plan has no arm '{}'{}", given.arm, did_you_mean(given.arm, names)),
      "it has: " + join(names, ", "));
}

/// The first record of every subset that is there and can be read so, so that every set of labels
/// is tried.
std::vector<Record> first_records(Files& files, const OpenPlan& plan, const ProbeOptions& given,
                                  bool by_token) {
  const std::optional<std::filesystem::path> data =
      given.data.empty() ? std::nullopt : std::optional<std::filesystem::path>(given.data);
  std::vector<Record> records;
  verify_data(
      files, plan, data, [](const std::string&) {},
      [&](const DatasetGroup&, const Subset&, std::vector<Record>&& all) {
        const auto first = std::find_if(all.begin(), all.end(), [&](const Record& record) {
          return !by_token || !is_too_wide(record);
        });
        if (first != all.end()) records.push_back(std::move(*first));
      });
  return records;
}

/// A key goes to the server that its plan names, and elsewhere only when the user says so.
void check_key_belongs(const BackendSpec& backend, const std::string& url) {
  if (!backend.url.empty() && base_address(backend.url) == base_address(url)) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("the key in {} belongs to {}, not to {}", backend.key_env,
                  backend.url.empty() ? "the server that the plan starts" : backend.url, url),
      fmt::format("--key-env {} sends it there all the same; --key-env '' sends none",
                  backend.key_env));
}

Subject subject_of(Context& context, const ProbeOptions& given) {
  if (const std::string problem = url_problem(given.url); !problem.empty()) {
    throw Error(ErrorKind::usage, fmt::format("{}: {}", given.url, problem),
                "the base address of a server, http://HOST:PORT");
  }
  Subject subject;
  if (given.plan.empty()) {
    const std::vector<ReadMode> modes = read_modes(given.kind);
    if (modes.empty()) {
      throw Error(ErrorKind::usage,
                  fmt::format("unknown kind \"{}\"{}", given.kind,
                              did_you_mean(given.kind, backend_kinds())),
                  "known kinds: " + join(backend_kinds(), ", "));
    }
    subject.backend.id = "probe";
    subject.backend.kind = given.kind;
    subject.backend.read = modes.front();
    subject.backend.k = modes.front() == ReadMode::text_top_k ? 5 : 0;
    subject.checkpoint.chat_template = given.plain ? Template::none : Template::chat;
    subject.wording = parse_prompt_file(embedded::decision_prompt, "built-in prompt file");
  } else {
    const OpenPlan plan = open_plan(context.files, given.plan);
    const Arm& arm = arm_of(plan.effective, given);
    subject.backend = plan.effective.backend(arm.backend);
    subject.checkpoint = plan.effective.checkpoint(arm.checkpoint);
    subject.prompt = plan.effective.prompt;
    subject.purpose = ProbeFor::plan;
    const auto path = plan.resolve(subject.prompt.file);
    subject.wording = parse_prompt_file(context.files.read(path), path.string());
    subject.records =
        first_records(context.files, plan, given, subject.backend.read != ReadMode::native);
  }
  if (subject.records.empty()) subject.records = built_in_records();
  if (!subject.backend.key_env.empty() && !given.key_env) {
    check_key_belongs(subject.backend, given.url);
  }
  subject.backend.server.reset();
  subject.backend.url = given.url;
  // Without a plan somebody sits and waits: a server that says nothing for so long is not one.
  if (given.plan.empty()) subject.backend.timeouts = {5, 30, 60};
  if (!given.model.empty()) subject.backend.model = given.model;
  if (given.key_env) subject.backend.key_env = *given.key_env;
  return subject;
}

ProbeResult run_probe(const Subject& subject) {
  Endpoint endpoint;
  endpoint.base_url = base_address(subject.backend.url);
  endpoint.timeouts = subject.backend.timeouts;
  endpoint.bearer_key = bearer_key(subject.backend.key_env);
  std::vector<Prompt> prompts;
  for (const Record& record : subject.records) {
    prompts.push_back(
        prompt_form(subject.backend.read) == PromptForm::native
            ? native_prompt(record, "none")
            : render_prompt(subject.wording, record, "none", subject.prompt.state_ascii));
  }
  std::vector<Item> items;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    items.push_back({&subject.records[i], &prompts[i], "none", 0});
  }
  const std::unique_ptr<Transport> transport = make_curl_transport();
  return probe(subject.backend, subject.checkpoint, subject.prompt, items, subject.purpose,
               asker(*transport, endpoint));
}

Json number_or_null(const std::optional<int>& value) { return value ? Json(*value) : Json(); }

Json probe_json(const ProbeOptions& given, const ProbeResult& found) {
  Json findings = Json::array();
  for (const Finding& finding : found.findings) {
    findings.push_back({{"capability", finding.capability},
                        {"ok", finding.ok},
                        {"verdict", finding.verdict},
                        {"evidence", finding.evidence}});
  }
  Json broke;
  if (found.broke) broke = {{"class", found.broke->error_class}, {"message", found.broke->message}};
  const Capabilities& can = found.can;
  return {{"url", given.url},
          {"kind", given.kind},
          {"verdict", can.verdict()},
          {"capabilities",
           {{"exact", can.by_id},
            {"most_ids", number_or_null(can.most_ids)},
            {"top_k", can.top_k},
            {"most_k", number_or_null(can.most_k)},
            {"text", can.text},
            {"most_text", number_or_null(can.most_text)},
            {"native", can.native}}},
          {"identity", found.identity.facts},
          {"findings", std::move(findings)},
          {"broke", std::move(broke)}};
}

void print_findings(std::ostream& out, const ProbeResult& found) {
  std::size_t width = 0;
  for (const Finding& finding : found.findings) width = std::max(width, finding.capability.size());
  for (const Finding& finding : found.findings) {
    out << fmt::format("{:<4}{:<{}}  {}\n", finding.ok ? "ok" : "NO", finding.capability, width,
                       finding.text());
  }
  out << fmt::format("can read: {}\n", found.can.verdict());
}

/// What to do about a server that could not be asked; empty where its own words say it.
std::string hint_for(const Failure& broke) {
  if (broke.http_status == 503 || broke.http_status == 429) {
    return "it may still be loading its model, or be busy: try again in a while";
  }
  if (broke.http_status == 401 || broke.http_status == 403) {
    return "--key-env VAR names the environment variable of its key";
  }
  if (broke.error_class == "connect_failed") return "is it running, and is this its address?";
  return {};
}

void probe_server(Context& context, const ProbeOptions& given) {
  const ProbeResult found = run_probe(subject_of(context, given));
  if (given.json) {
    context.out << probe_json(given, found).dump(2) << '\n';
  } else {
    print_findings(context.out, found);
  }
  const bool all_well = std::all_of(found.findings.begin(), found.findings.end(),
                                    [](const Finding& finding) { return finding.ok; });
  if (found.broke) {
    context.err << fmt::format("preval: {}: {}: {}\n", given.url, found.broke->error_class,
                               found.broke->message);
    if (const std::string hint = hint_for(*found.broke); !hint.empty()) {
      context.err << "  hint: " << hint << '\n';
    }
    context.exit_code = exit_code(ErrorKind::backend);
  } else if (!all_well || !found.can.anything()) {
    context.exit_code = exit_code(ErrorKind::check);
  }
}

}  // namespace

void add_probe(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("probe", "Tries what a server can do: reads, limits, steadiness");
  const auto options = std::make_shared<ProbeOptions>();
  command->add_option("url", options->url, "Base address, http://HOST:PORT")
      ->required()
      ->type_name("URL");
  command->add_option("--kind", options->kind, "Protocol (an unknown one lists them)")
      ->required()
      ->type_name("KIND");
  command->add_option("--plan", options->plan, "Judge by this plan, with its labels")
      ->type_name("PLAN");
  command->add_option("--arm", options->arm, "The plan's arm (the first of this kind)")
      ->type_name("A");
  command->add_option("--data", options->data, "Folder of SUBSET/all.jsonl, instead of the plan's")
      ->type_name("DIR");
  command->add_option("--model", options->model, "Name that the server knows the model by")
      ->type_name("NAME");
  command->add_option("--key-env", options->key_env, "Environment variable of the bearer key")
      ->type_name("VAR");
  command->add_flag("--plain", options->plain, "The model has no chat template");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      help_footer({"preval probe http://127.0.0.1:8080 --kind llamacpp",
                   "preval probe http://127.0.0.1:8000 --kind vllm --plan prereg/cross-engine.json",
                   "preval probe https://api.typesafe.ai --kind systemone --key-env KEY"},
                  kExitCodes));
  command->callback([options, &context] { probe_server(context, *options); });
}

}  // namespace preval
