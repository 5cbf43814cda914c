// What a run would ask, without asking: reads per arm, and about what they would take.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backend/protocols.h"
#include "run/arm.h"
#include "run/pipeline.h"
#include "run/suite_index.h"

namespace preval {

namespace {

// Of English and German prompts under the tokenisers of current models, with a chat template: good
// for a guess at the cost, and no bound.
constexpr double kTokensPerByte = 0.3;
constexpr double kPerPrompt = 30;

/// Reads of the selected subsets, in all and of those that are here.
struct Reads {
  std::int64_t registered = 0, here = 0, too_wide = 0;
  double bytes = 0, native_bytes = 0;  ///< of the prompts of those that are here
  Json names = Json::array();          ///< of the subsets that are here
};

class Counter {
 public:
  Counter(const Plan& plan, const RunOptions& options, const PromptFile& wording)
      : plan_(plan), options_(options), wording_(wording) {
    for (const DatasetGroup& group : plan.datasets) {
      for (const Subset& subset : group.subsets) {
        if (selected(options.subsets, subset.id)) {
          reads_.registered += reads_of(group, subset, about_ours(records_of(subset.records)));
        }
      }
    }
  }

  void add(const DatasetGroup& group, const Subset& subset, const std::vector<Record>& records) {
    if (!selected(options_.subsets, subset.id)) return;
    reads_.names.push_back(subset.id);
    const std::int64_t wanted = records_of(subset.records);
    std::int64_t ours = 0;
    for (std::int64_t i = 0; i < wanted; ++i) {
      const Record& record = records[static_cast<std::size_t>(i)];
      if (options_.shard && !options_.shard->holds(record.sha256)) continue;
      const auto times =
          static_cast<std::int64_t>(times_of(group, subset)) + (i < group.latency.records ? 1 : 0);
      ours += times;
      reads_.native_bytes +=
          static_cast<double>(times) * static_cast<double>(record.input.dump().size());
      if (is_too_wide(record)) {
        reads_.too_wide += times;
      } else {
        const Prompt prompt =
            prompt_for(wording_, plan_.prompt, record, "none", PromptForm::messages);
        reads_.bytes += static_cast<double>(times) *
                        static_cast<double>(prompt.system.size() + prompt.user.size());
      }
    }
    reads_.here += ours;
    reads_.registered += ours - reads_of(group, subset, about_ours(wanted));
  }

  const Reads& reads() const { return reads_; }

 private:
  /// Of so many records the shard's, as far as can be told without looking at them.
  std::int64_t about_ours(std::int64_t records) const {
    if (!options_.shard) return records;
    return (records + options_.shard->of / 2) / options_.shard->of;
  }
  std::int64_t records_of(std::int64_t registered) const {
    return std::min<std::int64_t>(registered, options_.limit.value_or(registered));
  }
  std::int64_t times_of(const DatasetGroup& group, const Subset& subset) const {
    return plan_.repeats * std::ssize(variants_of(group, subset.type));
  }
  std::int64_t reads_of(const DatasetGroup& group, const Subset& subset,
                        std::int64_t records) const {
    return records * times_of(group, subset) +
           std::min<std::int64_t>(records, group.latency.records);
  }

  const Plan& plan_;
  const RunOptions& options_;
  const PromptFile& wording_;
  Reads reads_;
};

/// Answers and timings that are there already, of the settings that the plan has now.
std::int64_t stored_reads(Db& store, const std::string& arm, const std::string& settings,
                          const RunOptions& options, const Json& names) {
  std::int64_t stored = 0;
  for (const char* table : {"prediction", "timing"}) {
    Stmt each(
        store,
        fmt::format("SELECT lower(hex(substr(r.sha256, 1, 8))) FROM {} p JOIN configuration c ON "
                    "c.id = p.configuration_id "
                    "JOIN arm a ON a.id = c.arm_id JOIN prompt q ON q.id = p.prompt_id JOIN record "
                    "r ON r.id = q.record_id JOIN subset s ON s.id = r.subset_id WHERE a.name = ? "
                    "AND c.current = 1 AND c.settings = ? AND q.current = 1 AND r.current = 1 AND "
                    "p.exploratory = ? AND r.position < ? AND s.name IN (SELECT value FROM "
                    "json_each(?))",
                    table));
    each.bind(1, arm).bind(2, settings).bind(3, options.exploratory);
    each.bind(4, options.limit.value_or(std::numeric_limits<int>::max()));
    each.bind(5, names.dump());
    while (each.step()) {
      stored += !options.shard || options.shard->holds(each.text(0)) ? 1 : 0;
    }
  }
  return stored;
}

/// Seconds that the servers of an arm were up per request so far; nothing before the first run.
std::optional<double> seconds_per_call(Db& store, const std::string& arm) {
  Stmt sum(store,
           "SELECT sum(u.seconds) / sum(u.calls) FROM usage u JOIN arm a ON a.id = u.arm_id WHERE "
           "a.name = ? AND u.calls > 0");
  sum.bind(1, arm).step();
  return sum.real_or_null(0);
}

void estimate(ArmPlan& arm, const BackendSpec& backend, const Reads& reads, Db* store) {
  if (!backend.asks_server() || reads.here == 0) return;
  const auto to_ask = static_cast<double>(arm.to_ask());
  const bool native = backend.read == ReadMode::native;
  const double bytes =
      (native ? reads.native_bytes : reads.bytes) / static_cast<double>(reads.here);
  arm.calls = static_cast<std::int64_t>(to_ask * find_protocol(backend.kind)->exchanges);
  arm.tokens = static_cast<std::int64_t>(to_ask * (bytes * kTokensPerByte + kPerPrompt));
  if (!has_price(backend)) return;
  double usd =
      static_cast<double>(arm.tokens) / 1e6 * backend.usd_per_million_input_tokens.value_or(0);
  if (backend.usd_per_hour.value_or(0) > 0) {
    const auto pace = store == nullptr ? std::nullopt : seconds_per_call(*store, arm.arm);
    if (!pace) return;  // nobody knows yet how long it will take
    usd += *pace * to_ask / 3600 * *backend.usd_per_hour * backend.replicas;
  }
  arm.usd = usd;
}

}  // namespace

std::vector<ArmPlan> dry_run(Files& files, const OpenPlan& plan, const RunOptions& options,
                             Db* store) {
  const Plan& effective = plan.effective;
  const std::filesystem::path path = plan.resolve(effective.prompt.file);
  const PromptFile wording = parse_prompt_file(files.read(path), path.string());
  Counter counter(effective, options, wording);
  verify_data(
      files, plan, options.data, [](const std::string&) {},
      [&](const DatasetGroup& group, const Subset& subset, std::vector<Record>&& records) {
        counter.add(group, subset, records);
      });
  const Reads& reads = counter.reads();
  std::vector<ArmPlan> arms;
  for (const Arm& arm : effective.arms) {
    if (!selected(options.arms, arm.id)) continue;
    const BackendSpec& backend = effective.backend(arm.backend);
    ArmPlan each;
    each.arm = arm.id;
    each.state = not_run_reason(effective, arm, options);
    each.confirmatory = arm.confirmatory && !options.exploratory;
    each.registered = reads.registered;
    each.left_out = reads.registered - reads.here;
    if (backend.read != ReadMode::native) each.left_out += reads.too_wide;
    if (store != nullptr) {
      each.stored = std::min(stored_reads(*store, arm.id, answer_settings(effective, arm).dump(),
                                          options, reads.names),
                             each.registered - each.left_out);
    }
    estimate(each, backend, reads, store);
    arms.push_back(std::move(each));
  }
  return arms;
}

}  // namespace preval
