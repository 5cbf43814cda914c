#pragma once
// The evidence: opening a store, registering what a plan names, and writing what servers answered.
// Scores are written by score/, read by report/.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "plan/lock.h"
#include "store/db.h"
#include "store/row_digest.h"
#include "suite/shard.h"
#include "suite/verify.h"

namespace preval {

inline constexpr int kSchemaVersion = 8;
/// "Prev" as a 32-bit number: SQLite's application_id of our files.
inline constexpr std::int64_t kApplicationId = 0x50726576;

/// Who may write a store: an advisory lock on a file beside it ("results.db.lock") that
/// names the holder's pid and host. Held for the life of the object. The lock belongs to the
/// process and not to the file descriptor, so that it ends with the process however it ends, and
/// children that outlive it for a moment (a server being stopped) do not keep it. The price of such
/// a lock: one per store and process, and nothing else of the process may open the lock file.
class StoreLock {
 public:
  /// Throws usage when somebody else holds it, io when the lock file cannot be made.
  explicit StoreLock(const std::filesystem::path& store);
  ~StoreLock();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

  /// Who writes this store now ("pid 7 on host"); empty: no other process.
  static std::string holder(const std::filesystem::path& store);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

/// A deviation that the store was run under and that the plan's ledger has no more, or otherwise.
struct LostDeviation {
  std::int64_t number = 0;
  std::string stored, found;  ///< SHA-256 of the entry; found: empty when it is gone
};
std::vector<LostDeviation> lost_deviations(Db& db, const OpenPlan& plan);

/// A table, index, trigger or view that is not as preval makes it.
struct SchemaDifference {
  std::string name;                           ///< "view v_accuracy"
  std::optional<std::string> shipped, found;  ///< its SQL; nothing: there is none
};
/// Those that are missing or other first, then those that are not preval's. `compared`, when given,
/// becomes the number of those that preval makes.
std::vector<SchemaDifference> schema_differences(Db& db, std::size_t* compared = nullptr);

/// What answers are kept under: the digest of an arm's settings and of who answers.
std::string configuration_sha256(const Json& settings, const Json& identity);

/// Creates the tables and views in a new or empty file (mode create), or checks that the file is a
/// store of this schema. A file that is not ours or of a newer schema (usage) or torn (drift) is
/// refused and left as it is; so is a missing file unless it may be created. Writers log ahead.
Db open_store(const std::filesystem::path& path, Db::Mode mode);

/// What a run says about itself.
struct RunInfo {
  std::string tool_version, git_commit, host;
  bool exploratory = false, simulated = false;
  std::optional<int> limit;
  std::optional<Shard> shard;
  std::string command;  ///< what was called, as a reader would repeat it: without folders
};

/// What was asked of servers, and what it cost; nothing: a price is not known.
struct Usage {
  std::int64_t calls = 0, prompt_tokens = 0;
  double seconds = 0;
  std::optional<double> usd;
};

/// A prediction that is already there, or is still to be made.
struct ItemKey {
  std::int64_t prompt = 0;  ///< prompt.id
  int repeat = 0;
};

/// The writer's side. Prompts, predictions and failures gather in memory and are committed
/// together: by the put_ call that finds kBatchRows of them or the oldest older than kBatchAge, and
/// by flush(), which the caller calls before it waits for something. Everything else is committed
/// at once. No transaction is open between calls, so none is open over a network wait.
class Store {
 public:
  static constexpr std::size_t kBatchRows = 256;
  static constexpr std::chrono::milliseconds kBatchAge{200};

  Store(Db db, Clock& clock);
  /// Commits what has gathered, as far as the disk allows: call flush() to hear of errors.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  Db& db() { return db_; }
  std::int64_t run() const { return run_; }  ///< run.id, 0 before begin_run()

  /// Registers the plan (one per store: another plan is refused, usage, with a hint at --db; so are
  /// simulated answers among measured ones), its arms, subsets, deviations and published figures,
  /// and opens a run. Runs that never ended (killed) are marked by an event "resume". Returns
  /// run.id.
  std::int64_t begin_run(const OpenPlan& plan, const Json& published, const RunInfo& info);
  void end_run(const std::string& outcome, int exit_code);

  /// What verify found. A file that is merely absent now does not undo an earlier verification of
  /// the same registered bytes: what was read from them still counts.
  void record_check(const SubsetCheck& check);
  /// Registers the records of a verified subset as the current ones. Returns record.id by position.
  std::vector<std::int64_t> put_records(const std::string& dataset, const std::string& subset,
                                        const std::vector<Record>& records);
  /// Registers a prompt as the current one of its record, variant and form. `sha256`: 64
  /// hexadecimal digits. Returns prompt.id.
  std::int64_t put_prompt(std::int64_t record, std::string_view variant, PromptForm form,
                          const std::string& sha256);

  /// "not run" and "failed" do not undo "started" while the arm has answers that count: the reason
  /// then goes to an event.
  void arm_status(const std::string& arm, std::string_view status, std::string_view reason = {});
  /// Registers who answers. Where answers of another configuration count, a new one takes their
  /// place with its first answer and not before, so that a server that is refused hides nothing
  /// that another one has answered. Returns configuration.id.
  std::int64_t put_configuration(const std::string& arm, const Json& settings,
                                 const Json& identity);
  /// What this configuration answered counts from now on, and nothing else of its arm.
  void make_current(std::int64_t configuration);
  /// Moves this run's answers of a configuration to one of their own that never counts: `identity`
  /// says who gave them, as far as that can be told. Returns how many there were.
  std::int64_t set_aside(std::int64_t configuration, const Json& identity);

  /// Whether there is an answer under this configuration, prompt and repeat, of this run's kind
  /// (registered or exploratory).
  bool has_prediction(std::int64_t configuration, std::int64_t prompt, int repeat) const;
  /// Whether an earlier run of this kind had its last word on it in a failure.
  bool gave_up(std::int64_t configuration, std::int64_t prompt, int repeat) const;
  void put_prediction(std::int64_t configuration, const ItemKey& key, const Item& item,
                      const Answer& answer);
  void put_failure(std::int64_t configuration, const ItemKey& key, const Item& item, int attempt,
                   bool final, const Failure& failure);
  /// Of an exchange that was no read. `stage`: what it was for.
  void put_failure(const std::string& arm, std::string_view stage, int attempt, bool final,
                   const Failure& failure);

  /// Whether a question of the latency pass has been timed, by this run's kind.
  bool has_timing(std::int64_t configuration, std::int64_t prompt) const;
  void put_timing(std::int64_t configuration, std::int64_t prompt, const Item& item,
                  const Answer& answer);

  /// Who turns prompts into tokens, by everything that can change them. Returns tokeniser.id.
  std::int64_t put_tokeniser(const Json& what);
  std::optional<TokenPrompt> find_tokens(std::int64_t tokeniser, std::int64_t prompt) const;
  void put_tokens(std::int64_t tokeniser, std::int64_t prompt, const TokenPrompt& tokens);

  /// What this run has used for an arm so far; committed with what has gathered.
  void put_usage(const std::string& arm, const Usage& usage);
  /// What all runs before this one have used.
  Usage usage_before();

  std::int64_t begin_stage(const std::string& arm, std::string_view name);  ///< arm may be empty
  void end_stage(std::int64_t stage, std::string_view outcome, std::string_view detail = {});
  void event(const std::string& arm, std::string_view kind, std::string_view detail);
  void finding(const std::string& arm, const Finding& finding);

  /// Commits what has gathered.
  void flush();
  /// Commits if the oldest of it is kBatchAge old: for loops that wait often and shortly, so that a
  /// fast server does not cost a disk sync per answer. They wait at most kBatchAge at a time.
  void flush_if_due();

 private:
  struct Statements;
  struct Batch;

  /// The names that a configuration has in row digests.
  struct Named {
    std::string arm, sha256;
  };

  std::string now();
  const Named& named(std::int64_t configuration);
  /// What every row digest of a read begins with.
  TypedRow read_row(std::int64_t configuration, const Item& item);
  std::int64_t arm_id(const std::string& arm);
  std::int64_t option_set(const Question& question, const std::string& digest);
  void gathered_one();
  void write_batch();
  void write_failures();
  void make_only_one_current(std::int64_t configuration);
  void count_what_is_left(std::int64_t configuration);

  Db db_;
  Clock& clock_;
  std::unique_ptr<Statements> statements_;
  std::unique_ptr<Batch> batch_;
  std::map<std::string, std::int64_t> option_sets_;  // digest of the keys → option_set.id
  std::map<std::int64_t, std::chrono::nanoseconds> stage_starts_;
  std::map<std::int64_t, Named> named_;
  std::set<std::int64_t> current_;  // configurations that this run has made current
  std::int64_t run_ = 0;
  std::int64_t next_prompt_ = 0;
  bool exploratory_ = false;
};

}  // namespace preval
