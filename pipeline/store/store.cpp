#include "store/store.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/bytes.h"

namespace preval {

namespace {

constexpr std::size_t kBodyHeadBytes = 500;

std::optional<double> finite_or_null(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> status_or_null(const Failure& failure) {
  return failure.http_status == 0 ? std::nullopt
                                  : std::optional(static_cast<std::int64_t>(failure.http_status));
}

std::string prompt_key(std::int64_t record, std::string_view variant, std::string_view form,
                       std::string_view sha256) {
  return fmt::format("{} {} {} {}", record, variant, form, sha256);
}

/// Ids as LEB128 numbers: seven bits a byte, the low ones first, the high bit on all but the last.
std::string packed(const std::vector<TokenId>& ids) {
  std::string bytes;
  for (const TokenId id : ids) {
    auto left = static_cast<std::uint32_t>(id);
    for (; left > 0x7F; left >>= 7) bytes += static_cast<char>((left & 0x7F) | 0x80);
    bytes += static_cast<char>(left);
  }
  return bytes;
}

std::vector<TokenId> unpacked(std::string_view bytes) {
  std::vector<TokenId> ids;
  std::uint32_t id = 0;
  int shift = 0;
  for (const char byte : bytes) {
    const auto bits = static_cast<unsigned char>(byte);
    id |= std::uint32_t{bits & 0x7FU} << shift;
    shift += 7;
    if ((bits & 0x80U) != 0 && shift < 32) continue;
    ids.push_back(static_cast<TokenId>(id));
    id = 0;
    shift = 0;
  }
  return ids;
}

std::string prediction_key(std::int64_t configuration, std::int64_t prompt, int repeat) {
  return fmt::format("{} {} {}", configuration, prompt, repeat);
}

}  // namespace

struct Store::Batch {
  struct PromptRow {
    std::int64_t id, record;
    std::string variant;
    PromptForm form;
    std::string sha256;
  };

  struct LabelRow {
    int option;
    double logprob, probability;
    int source;
  };

  struct PredictionRow {
    std::int64_t configuration, prompt;
    int repeat, predicted;
    bool tied, tied_at_bound;
    double label_mass;
    std::optional<double> entropy;
    std::optional<bool> argmax_is_label;
    int labels_returned;
    std::optional<double> floor, bound;
    int prompt_tokens, requests;
    double latency_ms;
    std::optional<NativeFacts> native;
    std::vector<LabelRow> labels;
    std::string row_sha256;

    std::string digest(TypedRow row, bool exploratory) const;
  };

  struct FailureRow {
    std::int64_t arm;  // 0: that of the configuration
    std::string stage;
    std::optional<std::int64_t> configuration, prompt;
    std::optional<int> repeat;
    int attempt;
    bool final;
    Failure failure;
    std::string at;
    std::string row_sha256;  // empty: no read
  };

  std::vector<PromptRow> prompts;
  std::vector<PredictionRow> predictions;
  struct TimingRow {
    std::int64_t configuration, prompt;
    double latency_ms;
    int requests, predicted;
  };

  struct TokensRow {
    std::int64_t tokeniser, prompt;
    std::string tokens, labels;
  };

  std::vector<FailureRow> failures;
  std::vector<TimingRow> timings;
  std::vector<TokensRow> tokens;
  std::map<std::int64_t, Usage> usage;  // by arm: what it has come to
  // What is gathered, for questions about what is there.
  std::unordered_map<std::string, std::int64_t> prompt_ids;
  std::unordered_set<std::string> answered;
  std::chrono::nanoseconds oldest{0};

  std::size_t size() const {
    return prompts.size() + predictions.size() + failures.size() + timings.size() + tokens.size() +
           usage.size();
  }
};

/// In the order of kPredictionEvidence.
std::string Store::Batch::PredictionRow::digest(TypedRow row, bool exploratory) const {
  const PredictionRow& answer = *this;
  row.integer(exploratory ? 1 : 0).integer(answer.predicted).integer(answer.tied ? 1 : 0);
  row.integer(answer.tied_at_bound ? 1 : 0).real(finite_or_null(answer.label_mass));
  row.real(answer.entropy);
  const auto flag = [&](const std::optional<bool>& value) {
    row.integer(value ? std::optional<std::int64_t>(*value ? 1 : 0) : std::nullopt);
  };
  flag(answer.argmax_is_label);
  row.integer(answer.labels_returned).real(answer.floor).real(answer.bound);
  row.integer(answer.prompt_tokens).integer(answer.requests);
  if (answer.native) {
    row.real(answer.native->printed_sum).integer(answer.native->sum_is_off ? 1 : 0);
    row.integer(answer.native->choice_differs ? 1 : 0).real(answer.native->value);
  } else {
    row.null().null().null().null();
  }
  for (const Batch::LabelRow& label : answer.labels) {
    row.integer(label.option).real(finite_or_null(label.logprob)).real(label.probability);
    row.integer(label.source);
  }
  return row.sha256();
}

struct Store::Statements {
  explicit Statements(Db& db)
      : find_prompt(
            db,
            "SELECT id, current FROM prompt WHERE record_id = ? AND variant = ? AND form = ? AND "
            "sha256 = ?"),
        retire_prompts(
            db,
            "UPDATE prompt SET current = 0 WHERE record_id = ? AND variant = ? AND form = ? AND "
            "current = 1"),
        put_prompt(
            db,
            "INSERT INTO prompt (id, record_id, variant, form, sha256, current) VALUES (?, ?, ?, "
            "?, ?, 1) ON CONFLICT (record_id, variant, form, sha256) DO UPDATE SET current = 1"),
        find_prediction(db,
                        "SELECT 1 FROM prediction WHERE configuration_id = ? AND prompt_id = ? AND "
                        "repeat = ? AND exploratory = ?"),
        find_final_failure(
            db,
            "SELECT 1 FROM failure f JOIN run u ON u.id = f.run_id WHERE f.configuration_id = ? "
            "AND f.prompt_id = ? AND f.repeat = ? AND u.exploratory = ? AND f.final = 1"),
        put_prediction(
            db,
            "INSERT INTO prediction (configuration_id, prompt_id, repeat, exploratory, run_id, "
            "predicted, tied, tied_at_bound, label_mass, entropy, argmax_is_label, "
            "labels_returned, floor, bound, prompt_tokens, requests, latency_ms, printed_sum, "
            "sum_is_off, choice_differs, value, row_sha256) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
        put_label(
            db,
            "INSERT INTO label (prediction_id, position, option, logprob, probability, source) "
            "VALUES (?, ?, ?, ?, ?, ?)"),
        put_failure(
            db,
            "INSERT INTO failure (run_id, arm_id, stage, configuration_id, prompt_id, repeat, "
            "attempt, final, class, http_status, message, body_sha256, body_head, at, row_sha256) "
            "VALUES (?1, "
            "coalesce((SELECT arm_id FROM configuration WHERE id = ?4), ?2), ?3, ?4, ?5, ?6, ?7, "
            "?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"),
        find_timing(db,
                    "SELECT 1 FROM timing WHERE configuration_id = ? AND prompt_id = ? AND "
                    "exploratory = ?"),
        put_timing(
            db,
            "INSERT OR IGNORE INTO timing (configuration_id, prompt_id, exploratory, run_id, "
            "latency_ms, requests, predicted) VALUES (?, ?, ?, ?, ?, ?, ?)"),
        find_tokens(db,
                    "SELECT tokens, labels FROM tokens WHERE tokeniser_id = ? AND prompt_id = ?"),
        put_tokens(db, "INSERT OR IGNORE INTO tokens VALUES (?, ?, ?, ?)"),
        put_usage(db,
                  "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run_id, arm_id) DO "
                  "UPDATE SET calls = excluded.calls, prompt_tokens = excluded.prompt_tokens, "
                  "seconds = excluded.seconds, usd = excluded.usd") {}
  Stmt find_prompt, retire_prompts, put_prompt, find_prediction, find_final_failure, put_prediction,
      put_label, put_failure, find_timing, put_timing, find_tokens, put_tokens, put_usage;
};

Store::Store(Db db, Clock& clock)
    : db_(std::move(db)),
      clock_(clock),
      statements_(std::make_unique<Statements>(db_)),
      batch_(std::make_unique<Batch>()),
      next_prompt_(query_integer(db_, "SELECT coalesce(max(id), 0) + 1 FROM prompt")) {}

Store::~Store() {
  try {
    flush();
  } catch (const Error&) {
    // A destructor has nobody to tell. What could not be written is asked again on resume.
  }
}

std::string Store::now() { return utc_text(clock_.now()); }

std::int64_t Store::arm_id(const std::string& arm) {
  Stmt find(db_, "SELECT id FROM arm WHERE name = ?");
  find.bind(1, arm);
  if (!find.step()) throw std::logic_error(fmt::format("arm {} is not registered", arm));
  return find.integer(0);
}

const Store::Named& Store::named(std::int64_t configuration) {
  const auto known = named_.find(configuration);
  if (known != named_.end()) return known->second;
  Stmt find(db_,
            "SELECT a.name, c.sha256 FROM configuration c JOIN arm a ON a.id = c.arm_id WHERE c.id "
            "= ?");
  find.bind(1, configuration);
  if (!find.step()) throw std::logic_error("a configuration that nobody registered");
  return named_[configuration] = {find.text(0), find.text(1)};
}

TypedRow Store::read_row(std::int64_t configuration, const Item& item) {
  const Named& who = named(configuration);
  TypedRow row;
  row.text(who.arm).text(who.sha256).text(item.record->id);
  row.blob(bytes_of_hex(item.record->sha256)).text(item.variant);
  row.blob(bytes_of_hex(item.prompt->sha256)).integer(item.repeat);
  return row;
}

void Store::gathered_one() {
  if (batch_->size() == 1) batch_->oldest = clock_.monotonic();
  if (batch_->size() >= kBatchRows) return flush();
  flush_if_due();
}

std::int64_t Store::put_prompt(std::int64_t record, std::string_view variant, PromptForm form,
                               const std::string& sha256) {
  const std::string digest = bytes_of_hex(sha256);
  const std::string key = prompt_key(record, variant, to_text(form), sha256);
  if (const auto waiting = batch_->prompt_ids.find(key); waiting != batch_->prompt_ids.end()) {
    return waiting->second;
  }
  Stmt& find = statements_->find_prompt;
  find.bind(1, record).bind(2, variant).bind(3, to_text(form)).bind_blob(4, digest);
  const bool known = find.step();
  const std::int64_t id = known ? find.integer(0) : next_prompt_;
  const bool current = known && find.integer(1) == 1;
  find.reset();
  if (current) return id;
  if (!known) ++next_prompt_;
  batch_->prompts.push_back({id, record, std::string(variant), form, digest});
  batch_->prompt_ids.emplace(key, id);
  gathered_one();
  return id;
}

bool Store::gave_up(std::int64_t configuration, std::int64_t prompt, int repeat) const {
  Stmt& find = statements_->find_final_failure;
  find.bind(1, configuration).bind(2, prompt).bind(3, repeat).bind(4, exploratory_);
  const bool found = find.step();
  find.reset();
  return found;
}

bool Store::has_prediction(std::int64_t configuration, std::int64_t prompt, int repeat) const {
  if (!batch_->answered.empty() &&
      batch_->answered.contains(prediction_key(configuration, prompt, repeat))) {
    return true;
  }
  Stmt& find = statements_->find_prediction;
  find.bind(1, configuration).bind(2, prompt).bind(3, repeat).bind(4, exploratory_);
  const bool found = find.step();
  find.reset();
  return found;
}

void Store::put_prediction(std::int64_t configuration, const ItemKey& key, const Item& item,
                           const Answer& answer) {
  const Distribution& read = answer.distribution;
  const std::vector<int>& options = item.prompt->options;
  const bool expected_level = answer.native && answer.native->value;
  if (read.labels.size() != options.size() && !(expected_level && read.labels.empty())) {
    throw std::logic_error(
        fmt::format("{} labels for {} options", read.labels.size(), options.size()));
  }
  Batch::PredictionRow row{configuration,
                           key.prompt,
                           key.repeat,
                           options.at(static_cast<std::size_t>(read.predicted)),
                           read.tied,
                           read.tied_at_bound,
                           read.label_mass,
                           read.entropy,
                           read.argmax_is_label,
                           read.labels_returned,
                           read.floor,
                           read.bound,
                           answer.prompt_tokens,
                           answer.requests,
                           answer.latency_ms,
                           answer.native,
                           {},
                           {}};
  row.labels.reserve(read.labels.size());
  for (std::size_t i = 0; i < read.labels.size(); ++i) {
    const LabelProbability& label = read.labels[i];
    row.labels.push_back(
        {options[i], label.logprob, label.probability, static_cast<int>(label.source)});
  }
  row.row_sha256 = row.digest(read_row(configuration, item), exploratory_);
  batch_->predictions.push_back(std::move(row));
  batch_->answered.insert(prediction_key(configuration, key.prompt, key.repeat));
  gathered_one();
}

void Store::put_failure(std::int64_t configuration, const ItemKey& key, const Item& item,
                        int attempt, bool final, const Failure& failure) {
  TypedRow row = read_row(configuration, item);
  row.integer(exploratory_ ? 1 : 0).text(failure.error_class).integer(status_or_null(failure));
  batch_->failures.push_back({0, "read", configuration, key.prompt, key.repeat, attempt, final,
                              failure, now(), row.sha256()});
  gathered_one();
}

void Store::put_failure(const std::string& arm, std::string_view stage, int attempt, bool final,
                        const Failure& failure) {
  batch_->failures.push_back(
      {arm_id(arm), std::string(stage), {}, {}, {}, attempt, final, failure, now(), {}});
  gathered_one();
}

bool Store::has_timing(std::int64_t configuration, std::int64_t prompt) const {
  Stmt& find = statements_->find_timing;
  find.bind(1, configuration).bind(2, prompt).bind(3, exploratory_);
  const bool found = find.step();
  find.reset();
  return found;
}

void Store::put_timing(std::int64_t configuration, std::int64_t prompt, const Item& item,
                       const Answer& answer) {
  const auto predicted = static_cast<std::size_t>(answer.distribution.predicted);
  batch_->timings.push_back({configuration, prompt, answer.latency_ms, answer.requests,
                             item.prompt->options.at(predicted)});
  gathered_one();
}

std::int64_t Store::put_tokeniser(const Json& what) {
  const std::string digest = canonical_sha256(what);
  Stmt(db_, "INSERT OR IGNORE INTO tokeniser (sha256) VALUES (?)").bind(1, digest).run();
  Stmt find(db_, "SELECT id FROM tokeniser WHERE sha256 = ?");
  find.bind(1, digest).step();
  return find.integer(0);
}

std::optional<TokenPrompt> Store::find_tokens(std::int64_t tokeniser, std::int64_t prompt) const {
  Stmt& find = statements_->find_tokens;
  find.bind(1, tokeniser).bind(2, prompt);
  std::optional<TokenPrompt> found;
  if (find.step()) found = TokenPrompt{unpacked(find.blob(0)), unpacked(find.blob(1))};
  find.reset();
  return found;
}

void Store::put_tokens(std::int64_t tokeniser, std::int64_t prompt, const TokenPrompt& tokens) {
  batch_->tokens.push_back({tokeniser, prompt, packed(tokens.tokens), packed(tokens.labels)});
  gathered_one();
}

void Store::put_usage(const std::string& arm, const Usage& usage) {
  batch_->usage[arm_id(arm)] = usage;
  if (batch_->size() == 1) batch_->oldest = clock_.monotonic();
}

Usage Store::usage_before() {
  Stmt sum(
      db_,
      "SELECT coalesce(sum(calls), 0), coalesce(sum(prompt_tokens), 0), coalesce(sum(seconds), "
      "0.0), coalesce(sum(usd), 0.0) FROM usage WHERE run_id <> ?");
  sum.bind(1, run_).step();
  return {sum.integer(0), sum.integer(1), sum.real(2), sum.real(3)};
}

void Store::make_current(std::int64_t configuration) {
  flush();
  make_only_one_current(configuration);
}

void Store::make_only_one_current(std::int64_t configuration) {
  if (exploratory_) {
    // What was tried out does not decide which registered answers count.
    Stmt registered(db_,
                    "SELECT 1 FROM configuration c JOIN prediction p ON p.configuration_id = c.id "
                    "WHERE c.current = 1 AND c.id <> ?1 AND p.exploratory = 0 AND c.arm_id = "
                    "(SELECT arm_id FROM configuration WHERE id = ?1) LIMIT 1");
    registered.bind(1, configuration);
    if (registered.step()) return;
  }
  Stmt(db_,
       "UPDATE configuration SET current = (id = ?1) WHERE arm_id = (SELECT arm_id FROM "
       "configuration WHERE id = ?1) AND current <> (id = ?1)")
      .bind(1, configuration)
      .run();
}

void Store::flush_if_due() {
  if (batch_->size() > 0 && clock_.monotonic() - batch_->oldest >= kBatchAge) flush();
}

void Store::flush() {
  if (batch_->size() == 0) return;
  if (const std::string what = db_.what_became_of_file(); !what.empty()) {
    throw Error(ErrorKind::io, fmt::format("{} was {}", db_.path().string(), what),
                "what is in it is lost with it: run again");
  }
  Tx tx(db_);
  write_batch();
  tx.commit();
  for (const Batch::PredictionRow& row : batch_->predictions) current_.insert(row.configuration);
  *batch_ = Batch();
}

void Store::write_batch() {
  for (const Batch::PromptRow& row : batch_->prompts) {
    const std::string_view form = to_text(row.form);
    statements_->retire_prompts.bind(1, row.record).bind(2, row.variant).bind(3, form).run();
    Stmt& put = statements_->put_prompt;
    put.bind(1, row.id).bind(2, row.record).bind(3, row.variant).bind(4, form);
    put.bind_blob(5, row.sha256).run();
  }
  for (const Batch::PredictionRow& row : batch_->predictions) {
    if (!current_.contains(row.configuration)) make_only_one_current(row.configuration);
    Stmt& put = statements_->put_prediction;
    put.bind(1, row.configuration).bind(2, row.prompt).bind(3, row.repeat).bind(4, exploratory_);
    put.bind(5, run_).bind(6, row.predicted).bind(7, row.tied).bind(8, row.tied_at_bound);
    put.bind(9, finite_or_null(row.label_mass)).bind(10, row.entropy).bind(11, row.argmax_is_label);
    put.bind(12, row.labels_returned).bind(13, row.floor).bind(14, row.bound);
    put.bind(15, row.prompt_tokens).bind(16, row.requests).bind(17, row.latency_ms);
    if (row.native) {
      put.bind(18, row.native->printed_sum).bind(19, row.native->sum_is_off);
      put.bind(20, row.native->choice_differs).bind(21, row.native->value);
    } else {
      put.bind_null(18).bind_null(19).bind_null(20).bind_null(21);
    }
    put.bind_blob(22, row.row_sha256).run();
    const std::int64_t prediction = db_.last_insert_rowid();
    for (std::size_t i = 0; i < row.labels.size(); ++i) {
      const Batch::LabelRow& label = row.labels[i];
      Stmt& add = statements_->put_label;
      add.bind(1, prediction).bind(2, static_cast<int>(i)).bind(3, label.option);
      add.bind(4, finite_or_null(label.logprob))
          .bind(5, label.probability)
          .bind(6, label.source)
          .run();
    }
  }
  write_failures();
  for (const Batch::TimingRow& row : batch_->timings) {
    Stmt& put = statements_->put_timing;
    put.bind(1, row.configuration).bind(2, row.prompt).bind(3, exploratory_).bind(4, run_);
    put.bind(5, row.latency_ms).bind(6, row.requests).bind(7, row.predicted).run();
  }
  for (const Batch::TokensRow& row : batch_->tokens) {
    Stmt& put = statements_->put_tokens;
    put.bind(1, row.tokeniser).bind(2, row.prompt);
    put.bind_blob(3, row.tokens).bind_blob(4, row.labels).run();
  }
  for (const auto& [arm, row] : batch_->usage) {
    Stmt& put = statements_->put_usage;
    put.bind(1, run_).bind(2, arm).bind(3, row.calls).bind(4, row.prompt_tokens);
    put.bind(5, row.seconds).bind(6, row.usd).run();
  }
}

void Store::write_failures() {
  for (const Batch::FailureRow& row : batch_->failures) {
    const Failure& failure = row.failure;
    Stmt& put = statements_->put_failure;
    put.bind(1, run_).bind(2, row.arm).bind(3, row.stage).bind(4, row.configuration);
    put.bind(5, row.prompt).bind(6, row.repeat).bind(7, row.attempt).bind(8, row.final);
    put.bind(9, failure.error_class);
    put.bind(10, status_or_null(failure));
    put.bind(11, made_valid(failure.message));
    if (failure.body.empty()) {
      put.bind_null(12).bind_null(13);
    } else {
      put.bind(12, sha256_hex(failure.body)).bind(13, head_of(failure.body, kBodyHeadBytes));
    }
    put.bind(14, row.at);
    if (row.row_sha256.empty()) {
      put.bind_null(15);
    } else {
      put.bind_blob(15, row.row_sha256);
    }
    put.run();
  }
}

}  // namespace preval
