#pragma once
// The preregistration as a typed object: what will be asked of which checkpoint on which backend,
// how answers are read, and what will be claimed. prereg/FORMAT.md documents every field of the
// JSON form.
//
// A Plan is plain data. parse_plan() is the only way to make one from JSON: unknown keys, wrong
// types, dangling references and duplicate ids are errors that name file, JSON pointer and reason.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace preval {

enum class QuestionType { noul, choice, score };
enum class ReadMode { exact, top_k, text_top_k, native };
/// Which rules score a dataset group: the 13-subset suite (10 left-closed bins, macro and pooled
/// groups), the four tasks (15 right-closed bins), or own data (scored as the suite, never pooled
/// with it nor compared with its published figures).
enum class ScoringProfile { suite, tasks, own };
/// How a chat endpoint is told where the answer starts: with the answer lead as the beginning of
/// the assistant's message, which the server goes on with, or not at all.
enum class LeadForm { assistant, none };
/// What of a native reply is scored: the largest printed probability, or the choice that the server
/// names (printed numbers are rounded, so the two may differ).
enum class ScoredNative { probabilities, choice };
/// Which level a native score that is an expected value counts as. `none`: such a reply is a
/// failure.
enum class LevelRule { none, nearest, floor, ceiling };
/// How prompts are put into the model's form: its own chat template, or plain text without any.
enum class Template { chat, none };

std::string_view to_text(QuestionType value);
std::string_view to_text(ReadMode value);
std::string_view to_text(ScoringProfile value);
std::string_view to_text(Template value);
std::string_view to_text(LeadForm value);
std::string_view to_text(ScoredNative value);
std::string_view to_text(LevelRule value);

/// One claim, fixed before the first call.
struct Hypothesis {
  std::string id, statement;
  std::string metric;                ///< accuracy | agreement | ece10 | ece_after_50 | brier | nll
  std::string kind;                  ///< difference | equivalence | bound
  std::vector<std::string> arms;     ///< one or two arm ids; one is compared with `published`
  std::string dataset;               ///< dataset group id
  std::vector<std::string> subsets;  ///< empty: all of the group
  std::string direction;             ///< difference: greater | less (first arm against second)
  std::optional<double> margin;      ///< equivalence: half-width, in units of the metric
  std::optional<double> at_least;    ///< bound on accuracy or agreement: the least value claimed
  std::optional<double> at_most;  ///< bound on ece10, ece_after_50, brier or nll: the most claimed
  bool confirmatory = false;
};

/// One file of records, pinned by its bytes.
struct Subset {
  std::string id;
  QuestionType type = QuestionType::noul;
  std::string sha256;  ///< of the whole file, 64 hexadecimal digits
  int records = 0, families = 0;
};

/// A pass over part of a group: the first `records` of each subset at this concurrency.
struct Pass {
  int records = 0;  ///< 0: the pass is left out
  int concurrency = 1;
};

/// Subsets that are read and scored together.
struct DatasetGroup {
  std::string id, title;
  ScoringProfile scoring = ScoringProfile::suite;
  std::filesystem::path data;      ///< default folder of SUBSET/all.jsonl, relative to the plan
  std::filesystem::path manifest;  ///< manifest file, relative to the plan
  std::string manifest_sha256;
  std::vector<std::string> variants{"none"};  ///< none | reversed, read in this order
  Pass smoke, latency;
  std::vector<Subset> subsets;
};

/// Wording and rendering of prompts.
struct PromptSpec {
  std::filesystem::path file;  ///< relative to the plan
  std::string sha256;
  bool reasoning = false;   ///< whether the template's thinking mode is switched on
  bool state_ascii = true;  ///< JSON states as \uXXXX (the study's form) or raw UTF-8
};

struct CheckpointFile {
  std::string name, sha256;
  std::int64_t bytes = 0;  ///< 0: not registered, not checked
};

/// Model weights, pinned by revision and file digests.
struct Checkpoint {
  std::string id, name, revision, weights_dtype, license;
  std::vector<CheckpointFile>
      files;               ///< the first one is what a server command's {checkpoint} means
  std::int64_t bytes = 0;  ///< sum over all files; 0 when one of them is not registered
  Template chat_template = Template::chat;
  /// Terms that a user must accept before the checkpoint is fetched or served; empty: none.
  std::string terms_id, terms_url;
};

/// A server that preval starts itself. Placeholders in `command`: {port}, {checkpoint} (path of the
/// checkpoint's first file), {root} (the folder that holds the plan's folder), {context}, {slots},
/// {kv_cache}, {threads}.
struct ServerCommand {
  std::vector<std::string> command;
  std::vector<std::string> version_command;  ///< prints the engine's name and version on one line
};

/// Upper limits on waiting, in seconds.
struct Timeouts {
  double connect_s = 10, first_byte_s = 300, total_s = 600;
};

/// What the operator of a server allows. Nothing: no such limit.
struct RateLimits {
  std::optional<double> requests_per_minute, tokens_per_second;
};

/// How a simulated backend answers. It stands in for a model in rehearsals and tests; whatever it
/// touches is marked SIMULATED.
struct Simulation {
  double accuracy = 0.75;  ///< share of records whose predicted label is the target
  double sharpness = 2.0;  ///< > 1: more confident than right, 1: calibrated, < 1: less
  double missing = 0.0;    ///< top-k reads: share of labels outside the k best
  std::uint64_t seed = 1;
};

/// Exchanges that an earlier run has recorded, which a backend of kind replay answers from.
struct TranscriptSpec {
  std::string protocol;        ///< kind of the backend that was recorded
  std::filesystem::path file;  ///< relative to the plan
  std::string sha256;
};

/// A way of reading labels: a server protocol with its settings. The study says "platform".
struct BackendSpec {
  std::string id, kind;  ///< kind: llamacpp | vllm | … | replay | simulated
  ReadMode read = ReadMode::exact;
  int k = 0;           ///< top-k reads: how many log-probabilities are asked for
  int raw_probs = 64;  ///< llamacpp exact: log-probabilities of the first, raw read
  LeadForm lead = LeadForm::assistant;                ///< text-top-k reads of chat endpoints
  std::vector<std::string> spellings{"{label}"};      ///< text-top-k: token texts that mean a label
  ScoredNative scored = ScoredNative::probabilities;  ///< native reads
  LevelRule score_level = LevelRule::none;            ///< native reads
  bool sentinel_is_zero = false;  ///< exact: a label at minus infinity is p = 0, not a failure
  std::optional<TranscriptSpec> transcript;  ///< kind replay only
  std::optional<ServerCommand> server;
  int replicas = 1;  ///< how many of `server` are started, each on a port of its own
  std::string url;   ///< of a server that somebody else runs; empty when `server`
  std::vector<std::string> replica_urls;  ///< further servers like the one at `url`
  std::string key_env;                    ///< environment variable of the bearer key; empty: none
  std::string model;     ///< name the server knows the model by; empty: whatever it serves
  std::string kv_cache;  ///< f16 | q8_0 | …, recorded and passed through {kv_cache}
  int context = 2048;    ///< tokens, {context}
  int slots = 1;         ///< sequences the server decodes at once, {slots}
  int threads = 0;       ///< server threads, {threads}; 0: as many as the machine has
  int concurrency = 1;   ///< requests in flight, per server
  RateLimits rate;       ///< of all servers together
  Timeouts timeouts;
  int attempts = 4;  ///< tries per request, the first one included
  int breaker = 8;   ///< consecutive server failures that stop the arm
  std::optional<double> usd_per_hour, usd_per_million_input_tokens;
  Simulation simulation;  ///< kind simulated only

  /// Whether a server answers: nobody is asked for simulated and for replayed answers.
  bool asks_server() const;
};

/// A checkpoint on a backend.
struct Arm {
  std::string id, checkpoint, backend;
  bool confirmatory = true;
  std::string fallback_group;  ///< of the arms of one group the first that serves is run
  double boot_limit_s = 1500;
};

struct CalibrationSpec {
  int suite_bins = 10, task_bins = 15;
  std::uint64_t split_seed = 20260923;  ///< split k uses split_seed + k
  int splits = 20;
  int labels = 50;  ///< labels that the temperature is fitted on
};

/// Figures that somebody else published, and that the report sets beside its own.
struct PublishedSpec {
  std::filesystem::path file;  ///< relative to the plan
  std::string sha256;
};

struct Plan {
  std::string name, version, description;
  std::vector<std::string> authors;
  std::vector<Hypothesis> hypotheses;
  std::vector<DatasetGroup> datasets;
  PromptSpec prompt;
  std::vector<Checkpoint> checkpoints;
  std::vector<BackendSpec> backends;
  std::vector<Arm> arms;
  int repeats = 1;
  CalibrationSpec calibration;
  std::map<std::string, double> margins;  ///< by metric, for equivalence claims
  std::optional<double> budget_usd, budget_hours;
  std::optional<PublishedSpec> published;

  const Checkpoint& checkpoint(std::string_view id) const;  ///< throws std::out_of_range
  const BackendSpec& backend(std::string_view id) const;
  const Arm& arm(std::string_view id) const;
};

/// Typed form of a plan's JSON. `where` names the file in errors.
Plan parse_plan(const Json& json, const std::string& where);

/// Everything of an arm's plan that can change one of its answers, as canonical JSON: checkpoint
/// (revision, file digests, dtype, template), backend (kind, read mode, k, KV cache, context,
/// slots, concurrency, server command or addresses) and prompt (file digest, reasoning, state
/// form). Time limits, rates, prices, hypotheses, data, how many servers of one command are
/// started, and everything else that cannot change an answer stay out.
Json answer_settings(const Plan& plan, const Arm& arm);

}  // namespace preval
