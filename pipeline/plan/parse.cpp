// The JSON form of a plan, field by field. What a field means and may hold is here; whether the
// parts fit together is in references.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/placeholders.h"
#include "base/text.h"
#include "base/url.h"
#include "plan/plan.h"
#include "plan/reader.h"
#include "plan/references.h"

namespace preval {
namespace {

/// What a shell takes as the name of an environment variable.
bool is_variable_name(std::string_view name) {
  const auto word = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), word) &&
         (name.front() < '0' || name.front() > '9');
}

constexpr int kPlanFormat = 1;
// A day. What waits longer is not waiting but forgotten, and every clock can count to it.
constexpr Range kWait{0, 86'400, true};
constexpr double kMostHours = 87'600;  // ten years
// Requests at once, and threads: more than any server takes, few enough for any machine to hold.
constexpr double kMostAtOnce = 4096;
// Tokens of a context or of a vocabulary: sixteen times what the largest models have, and far below
// where such counts overflow when they are added up.
constexpr Range kTokens{1, 16'777'216};
constexpr Range kFileBytes{1, 1'125'899'906'842'624};  // 2^50
constexpr std::int64_t kCheckpointBytes = std::int64_t{1} << 53;

const std::vector<std::string> kMetrics{"accuracy",     "agreement", "ece10",
                                        "ece_after_50", "brier",     "nll"};
const std::vector<std::string> kProtocols{"llamacpp",    "vllm",   "sglang",
                                          "openai-chat", "ollama", "systemone"};
const std::vector<std::string> kBackendKinds{"llamacpp", "vllm",      "sglang", "openai-chat",
                                             "ollama",   "systemone", "replay", "simulated"};
const std::vector<std::string> kPlaceholders{"port",  "checkpoint", "root",   "context",
                                             "slots", "kv_cache",   "threads"};

void refuse(const ObjectReader& in, std::initializer_list<std::string_view> keys,
            const std::string& reason) {
  for (const auto key : keys) {
    if (in.has(key)) in.fail(key, reason, "leave it out");
  }
}

void check_bound(const ObjectReader& in, const Hypothesis& hypothesis) {
  const bool more_is_better = hypothesis.metric == "accuracy" || hypothesis.metric == "agreement";
  const auto* needed = more_is_better ? "at_least" : "at_most";
  const auto* wrong = more_is_better ? "at_most" : "at_least";
  refuse(in, {wrong},
         fmt::format("a bound on {} is claimed with \"{}\"", hypothesis.metric, needed));
  if (!in.has(needed)) {
    in.fail(needed, fmt::format("a bound on {} needs \"{}\"", hypothesis.metric, needed));
  }
  const std::size_t arms = hypothesis.metric == "agreement" ? 2 : 1;
  if (hypothesis.arms.size() != arms) {
    in.fail("arms", fmt::format("a bound on {} is about {} arm(s), found {}", hypothesis.metric,
                                arms, hypothesis.arms.size()));
  }
}

void check_comparison(const ObjectReader& in, const Hypothesis& hypothesis) {
  if (hypothesis.metric == "agreement") {
    in.fail("kind",
            fmt::format("agreement has no {}: it is already about two arms", hypothesis.kind),
            "claim a bound: \"kind\": \"bound\" with \"at_least\"");
  }
  refuse(in, {"at_least", "at_most"}, "belongs to hypotheses of kind bound");
  if (hypothesis.kind == "difference") {
    refuse(in, {"margin"}, "belongs to hypotheses of kind equivalence");
    if (!in.has("direction")) in.fail("direction", "a difference needs its direction");
  } else {
    refuse(in, {"direction"}, "belongs to hypotheses of kind difference");
  }
}

Hypothesis read_hypothesis(ObjectReader& in) {
  Hypothesis hypothesis;
  hypothesis.id = in.identifier("id");
  hypothesis.statement = in.text("statement");
  hypothesis.metric = in.word("metric", kMetrics);
  hypothesis.kind = in.word("kind", {"difference", "equivalence", "bound"});
  hypothesis.arms = in.texts("arms", 1);
  hypothesis.dataset = in.text("dataset");
  hypothesis.subsets = in.texts_or("subsets", {});
  hypothesis.direction = in.word_or("direction", "", {"greater", "less"});
  hypothesis.margin = in.number_if("margin", any_positive);
  hypothesis.at_least = in.number_if("at_least", share);
  hypothesis.at_most = in.number_if("at_most", not_negative);
  hypothesis.confirmatory = in.flag("confirmatory");
  in.finish();
  if (hypothesis.arms.size() > 2) in.fail("arms", "at most two arms can be compared");
  if (hypothesis.kind == "bound") {
    refuse(in, {"direction", "margin"}, "belongs to other kinds of hypotheses");
    check_bound(in, hypothesis);
  } else {
    check_comparison(in, hypothesis);
  }
  return hypothesis;
}

Pass read_pass(ObjectReader& in) {
  Pass pass;
  pass.records = in.integer("records", not_negative);
  pass.concurrency = in.integer_or("concurrency", 1, Range{1, kMostAtOnce});
  return pass;
}

DatasetGroup read_group(ObjectReader& in) {
  DatasetGroup group;
  group.id = in.identifier("id");
  group.title = in.text("title");
  group.scoring =
      in.one_of("scoring", {ScoringProfile::suite, ScoringProfile::tasks, ScoringProfile::own});
  group.data = in.relative_path("data");
  group.manifest = in.relative_path("manifest");
  group.manifest_sha256 = in.digest("manifest_sha256");
  group.variants = in.texts_or("variants", {"none"});
  in.object_if("smoke", [&](ObjectReader& pass) { group.smoke = read_pass(pass); });
  in.object_if("latency", [&](ObjectReader& pass) { group.latency = read_pass(pass); });
  in.objects("subsets", 1, [&](ObjectReader& subset) {
    Subset read;
    read.id = subset.identifier("id");
    read.type =
        subset.one_of("type", {QuestionType::noul, QuestionType::choice, QuestionType::score});
    read.sha256 = subset.digest("sha256");
    read.records = subset.integer("records", at_least_one);
    read.families = subset.integer("families", at_least_one);
    subset.finish();
    if (read.families > read.records) subset.fail("families", "more families than records");
    group.subsets.push_back(std::move(read));
  });
  in.finish();
  std::set<std::string> seen;
  for (const std::string& variant : group.variants) {
    const std::vector<std::string> allowed{"none", "reversed"};
    if (std::find(allowed.begin(), allowed.end(), variant) == allowed.end()) {
      in.fail("variants",
              fmt::format("unknown value \"{}\"{}", variant, did_you_mean(variant, allowed)),
              "allowed here: none, reversed");
    }
    if (!seen.insert(variant).second) in.fail("variants", fmt::format("\"{}\" twice", variant));
  }
  if (!seen.contains("none")) {
    in.fail("variants", "\"none\" must be among them: accuracy is scored on it");
  }
  return group;
}

PromptSpec read_prompt(ObjectReader& in) {
  PromptSpec prompt;
  prompt.file = in.relative_path("file");
  prompt.sha256 = in.digest("sha256");
  prompt.reasoning = in.flag_or("reasoning", false);
  prompt.state_ascii = in.word_or("state", "ascii", {"ascii", "utf-8"}) == "ascii";
  return prompt;
}

Checkpoint read_checkpoint(ObjectReader& in) {
  Checkpoint checkpoint;
  checkpoint.id = in.identifier("id");
  checkpoint.name = in.text("name");
  checkpoint.revision = in.text("revision");
  checkpoint.weights_dtype = in.text("weights_dtype");
  checkpoint.license = in.text("license");
  checkpoint.chat_template =
      in.one_of_or("template", Template::chat, {Template::chat, Template::none});
  bool all_sizes_known = true;
  in.objects("files", 0, [&](ObjectReader& file) {
    CheckpointFile read;
    read.name = file.relative_path("name");
    read.sha256 = file.digest("sha256");
    read.bytes = file.integer_or<std::int64_t>("bytes", 0, kFileBytes);
    file.finish();
    if (read.name.find("..") != std::string::npos) file.fail("name", "must not hold \"..\"");
    for (const CheckpointFile& other : checkpoint.files) {
      if (other.name == read.name) file.fail("name", fmt::format("file \"{}\" twice", read.name));
    }
    if (read.bytes > kCheckpointBytes - checkpoint.bytes) {
      file.fail("bytes",
                fmt::format("all files together must have at most {} bytes", kCheckpointBytes));
    }
    all_sizes_known = all_sizes_known && read.bytes > 0;
    checkpoint.bytes += read.bytes;
    checkpoint.files.push_back(std::move(read));
  });
  if (!all_sizes_known) checkpoint.bytes = 0;
  in.object_if("terms", [&](ObjectReader& terms) {
    checkpoint.terms_id = terms.identifier("id");
    checkpoint.terms_url = terms.text("url");
  });
  return checkpoint;
}

/// Placeholders are checked here and not only when the server is started, because then the plan is
/// locked and the machine may cost money.
void check_placeholders(const ObjectReader& in, std::string_view key,
                        const std::vector<std::string>& command) {
  Placeholders known;
  for (const std::string& name : kPlaceholders) known.emplace_back(name, "");
  const std::string place = fmt::format("{}: {}", in.where(), in.pointer(key));
  for (const std::string& word : command) fill_placeholders(word, known, place);
}

ServerCommand read_server(ObjectReader& in) {
  ServerCommand server;
  server.command = in.texts("command", 1);
  server.version_command = in.texts_or("version_command", {});
  in.finish();
  check_placeholders(in, "command", server.command);
  check_placeholders(in, "version_command", server.version_command);
  const bool says_port =
      std::any_of(server.command.begin(), server.command.end(),
                  [](const auto& word) { return word.find("{port}") != std::string::npos; });
  if (!says_port) {
    in.fail("command", "{port} is missing: the server would listen where nobody asks");
  }
  return server;
}

Timeouts read_timeouts(ObjectReader& in) {
  Timeouts timeouts;
  timeouts.connect_s = in.number_or("connect_s", timeouts.connect_s, kWait);
  timeouts.first_byte_s = in.number_or("first_byte_s", timeouts.first_byte_s, kWait);
  timeouts.total_s = in.number_or("total_s", timeouts.total_s, kWait);
  return timeouts;
}

Simulation read_simulation(ObjectReader& in) {
  Simulation simulation;
  simulation.accuracy = in.number_or("accuracy", simulation.accuracy, share);
  simulation.sharpness = in.number_or("sharpness", simulation.sharpness, Range{0, 1000, true});
  simulation.missing = in.number_or("missing", simulation.missing, share);
  simulation.seed = in.integer_or<std::uint64_t>("seed", simulation.seed, not_negative);
  return simulation;
}

TranscriptSpec read_transcript(ObjectReader& in) {
  TranscriptSpec transcript;
  transcript.protocol = in.word("protocol", kProtocols);
  transcript.file = in.relative_path("file");
  transcript.sha256 = in.digest("sha256");
  return transcript;
}

/// A spelling is the text of one token: "{label}", " {label}", …
std::vector<std::string> read_spellings(ObjectReader& in) {
  std::vector<std::string> spellings = in.texts_or("spellings", BackendSpec{}.spellings);
  if (spellings.empty()) in.fail("spellings", "at least one is needed", "the usual one is {label}");
  const std::string place = fmt::format("{}: {}", in.where(), in.pointer("spellings"));
  for (const std::string& spelling : spellings) {
    if (fill_placeholders(spelling, {{"label", "A"}}, place) ==
        fill_placeholders(spelling, {{"label", "B"}}, place)) {
      in.fail("spellings", fmt::format("\"{}\" does not hold {{label}}", spelling));
    }
  }
  return spellings;
}

void check_transcript(const ObjectReader& in, const BackendSpec& backend) {
  if (backend.kind != "replay") {
    return refuse(in, {"transcript"}, "belongs to backends of kind replay");
  }
  if (!backend.transcript) in.fail("transcript", "a replay needs what was recorded");
  refuse(in, {"server", "url", "key_env"}, "a replay has no server");
}

void check_backend(const ObjectReader& in, const BackendSpec& backend) {
  const bool top_k = backend.read == ReadMode::top_k || backend.read == ReadMode::text_top_k;
  if (top_k && backend.k == 0) {
    in.fail("k", fmt::format("{} reads need k, the number of log-probabilities asked for",
                             to_text(backend.read)));
  }
  if (!top_k) refuse(in, {"k"}, fmt::format("{} reads have no k", to_text(backend.read)));
  if (backend.read != ReadMode::text_top_k) {
    refuse(in, {"lead", "spellings"}, "belongs to text-top-k reads");
  }
  if (backend.read != ReadMode::native) {
    refuse(in, {"scored", "score_level"}, "belongs to native reads");
  }
  if (backend.read != ReadMode::exact) refuse(in, {"sentinel_is_zero"}, "belongs to exact reads");
  check_transcript(in, backend);
  if (backend.kind == "replay") return;
  if (backend.kind == "simulated") {
    refuse(in, {"server", "url"}, "a simulated backend has no server");
    return;
  }
  refuse(in, {"simulation"}, "belongs to backends of kind simulated");
  if (backend.server && !backend.url.empty()) {
    in.fail("url", "a backend is either started (\"server\") or found (\"url\"), not both");
  }
  if (!backend.server && backend.url.empty()) {
    in.fail("server", "a backend needs \"server\" (preval starts it) or \"url\" (it runs already)");
  }
  if (!backend.server) refuse(in, {"replicas"}, "belongs to servers that preval starts");
  if (backend.url.empty()) {
    refuse(in, {"replica_urls"}, "belongs to backends with a url");
    return;
  }
  const auto check_url = [&](const char* key, const std::string& url) {
    const std::string problem = url_problem(url);
    if (problem.empty()) return;
    in.fail(key, problem, "keys stand nowhere in a plan: name their variable with \"key_env\"");
  };
  check_url("url", backend.url);
  const std::string path = url_path(backend.url);
  std::set<std::string> addresses{backend.url};
  for (const std::string& each : backend.replica_urls) {
    check_url("replica_urls", each);
    if (url_path(each) != path) {
      in.fail("replica_urls", fmt::format("{} has another path than {}", each, backend.url));
    }
    if (!addresses.insert(each).second) {
      in.fail("replica_urls", fmt::format("{} is there already", each));
    }
  }
  const bool either = backend.kind == "openai-chat" || backend.kind == "systemone";
  if (!either && (path.ends_with("/v1") || path.ends_with("/v1/"))) {
    in.fail("url",
            fmt::format("ends in /v1: backends of kind {} are named by their root", backend.kind));
  }
}

BackendSpec read_backend(ObjectReader& in) {
  BackendSpec backend;
  backend.id = in.identifier("id");
  backend.kind = in.word("kind", kBackendKinds);
  backend.read =
      in.one_of("read", {ReadMode::exact, ReadMode::top_k, ReadMode::text_top_k, ReadMode::native});
  backend.k = in.integer_or("k", 0, kTokens);
  backend.raw_probs = in.integer_or("raw_probs", backend.raw_probs, kTokens);
  backend.lead = in.one_of_or("lead", backend.lead, {LeadForm::assistant, LeadForm::none});
  backend.spellings = read_spellings(in);
  backend.scored =
      in.one_of_or("scored", backend.scored, {ScoredNative::probabilities, ScoredNative::choice});
  backend.score_level =
      in.one_of_or("score_level", backend.score_level,
                   {LevelRule::none, LevelRule::nearest, LevelRule::floor, LevelRule::ceiling});
  backend.sentinel_is_zero = in.flag_or("sentinel_is_zero", false);
  in.object_if("transcript",
               [&](ObjectReader& what) { backend.transcript = read_transcript(what); });
  in.object_if("server", [&](ObjectReader& server) { backend.server = read_server(server); });
  backend.replicas = in.integer_or("replicas", backend.replicas, Range{1, 256});
  backend.url = in.text_or("url", "");
  backend.replica_urls = in.texts_or("replica_urls", {});
  backend.key_env = in.text_or("key_env", "");
  if (backend.key_env.empty() ? in.has("key_env") : !is_variable_name(backend.key_env)) {
    in.fail("key_env", fmt::format("\"{}\" is no name of an environment variable", backend.key_env),
            "letters, digits and _, no digit first: TYPESAFE_API_KEY");
  }
  backend.model = in.text_or("model", "");
  backend.kv_cache = in.text_or("kv_cache", "");
  backend.context = in.integer_or("context", backend.context, kTokens);
  backend.slots = in.integer_or("slots", backend.slots, Range{1, kMostAtOnce});
  backend.threads = in.integer_or("threads", backend.threads, Range{0, kMostAtOnce});
  backend.concurrency = in.integer_or("concurrency", backend.concurrency, Range{1, kMostAtOnce});
  in.object_if("timeouts", [&](ObjectReader& limits) { backend.timeouts = read_timeouts(limits); });
  backend.attempts = in.integer_or("attempts", backend.attempts, Range{1, 1000});
  backend.breaker = in.integer_or("breaker", backend.breaker, at_least_one);
  in.object_if("rate", [&](ObjectReader& rate) {
    backend.rate.requests_per_minute = rate.number_if("requests_per_minute", any_positive);
    backend.rate.tokens_per_second = rate.number_if("tokens_per_second", any_positive);
  });
  in.object_if("price", [&](ObjectReader& price) {
    backend.usd_per_hour = price.number_if("usd_per_hour", not_negative);
    backend.usd_per_million_input_tokens =
        price.number_if("usd_per_million_input_tokens", not_negative);
  });
  in.object_if("simulation", [&](ObjectReader& how) { backend.simulation = read_simulation(how); });
  in.finish();
  check_backend(in, backend);
  return backend;
}

Arm read_arm(ObjectReader& in) {
  Arm arm;
  arm.id = in.identifier("id");
  arm.checkpoint = in.text("checkpoint");
  arm.backend = in.text("backend");
  arm.confirmatory = in.flag("confirmatory");
  arm.fallback_group = in.text_or("fallback_group", "");
  arm.boot_limit_s = in.number_or("boot_limit_s", arm.boot_limit_s, kWait);
  return arm;
}

CalibrationSpec read_calibration(ObjectReader& in) {
  constexpr Range bins{1, 10000};
  CalibrationSpec calibration;
  calibration.suite_bins = in.integer_or("suite_bins", calibration.suite_bins, bins);
  calibration.task_bins = in.integer_or("task_bins", calibration.task_bins, bins);
  calibration.split_seed =
      in.integer_or<std::uint64_t>("split_seed", calibration.split_seed, not_negative);
  calibration.splits = in.integer_or("splits", calibration.splits, bins);
  calibration.labels = in.integer_or("labels", calibration.labels, at_least_one);
  return calibration;
}

}  // namespace

Plan parse_plan(const Json& json, const std::string& where) {
  ObjectReader in(json, where);
  Plan plan;
  const int format = in.integer("preval_plan", not_negative);
  if (in.has("preval_plan") && format != kPlanFormat) {
    in.fail("preval_plan", fmt::format("plan format {} is not known", format),
            fmt::format("this preval reads plan format {}", kPlanFormat));
  }
  plan.name = in.identifier("name");
  plan.version = in.text("version");
  plan.description = in.text_or("description", "");
  plan.authors = in.texts("authors", 1);
  in.objects("hypotheses", 0,
             [&](auto& item) { plan.hypotheses.push_back(read_hypothesis(item)); });
  in.objects("datasets", 1, [&](auto& item) { plan.datasets.push_back(read_group(item)); });
  in.object("prompt", [&](auto& item) { plan.prompt = read_prompt(item); });
  in.objects("checkpoints", 1,
             [&](auto& item) { plan.checkpoints.push_back(read_checkpoint(item)); });
  in.objects("backends", 1, [&](auto& item) { plan.backends.push_back(read_backend(item)); });
  in.objects("arms", 1, [&](auto& item) { plan.arms.push_back(read_arm(item)); });
  plan.repeats = in.integer_or("repeats", plan.repeats, Range{1, 1000});
  in.object_if("calibration", [&](auto& item) { plan.calibration = read_calibration(item); });
  plan.margins = in.numbers_or("margins", any_positive, kMetrics);
  in.object_if("budget", [&](auto& item) {
    plan.budget_usd = item.number_if("usd", not_negative);
    plan.budget_hours = item.number_if("hours", Range{0, kMostHours});
  });
  in.object_if("published", [&](auto& item) {
    PublishedSpec published;
    published.file = item.relative_path("file");
    published.sha256 = item.digest("sha256");
    plan.published = std::move(published);
  });
  in.finish();
  check_references(plan, where);
  return plan;
}

}  // namespace preval
