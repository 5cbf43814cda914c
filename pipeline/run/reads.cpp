#include "run/reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"

namespace preval {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::size_t kLatencyWindow = 101;
constexpr std::chrono::seconds kWorthSaying{10};  // a pause that a user would wonder about
// Servers round log-probabilities, some to 1/64; no rounding makes more of it.
constexpr double kMostMass = 1.05;

double seconds_since(Clock& clock, nanoseconds start) {
  return std::chrono::duration<double>(clock.monotonic() - start).count();
}

/// The texts of one subset at a time. A file that changed since it was verified stops the run: its
/// records are no longer those that the store has registered.
class SubsetTexts {
 public:
  SubsetTexts(Files& files, const std::vector<SubsetIndex>& subsets)
      : files_(files), subsets_(subsets) {}

  std::shared_ptr<const Record> record(std::size_t subset, std::size_t position) {
    if (!records_ || subset != loaded_) {
      const SubsetIndex& index = subsets_[subset];
      const std::string bytes = read_again(index.path);
      if (sha256_hex(bytes) != index.subset->sha256) {
        throw Error(ErrorKind::drift,
                    fmt::format("{} changed while the run was going on", index.path.string()),
                    "restore the file and run again: what is stored stays");
      }
      records_ = std::make_shared<const std::vector<Record>>(
          read_records(bytes, index.subset->id, index.path.string(), [](const std::string&) {}));
      loaded_ = subset;
    }
    return {records_, &(*records_)[position]};
  }

 private:
  std::string read_again(const std::filesystem::path& path) {
    try {
      return files_.read(path);
    } catch (const Error& error) {
      throw Error(ErrorKind::io,
                  fmt::format("{} was there and cannot be read any more: {}", path.string(),
                              error.message()),
                  "restore the file and run again: what is stored stays");
    }
  }

  Files& files_;
  const std::vector<SubsetIndex>& subsets_;
  std::shared_ptr<const std::vector<Record>> records_;
  std::size_t loaded_ = 0;
};

/// Counts what has come back and tells the listener.
class Tally {
 public:
  Tally(const ReadContext& context, ReadList& list)
      : context_(context),
        list_(list),
        start_(context.seams.clock.monotonic()),
        given_up_(list.total.size()) {
    progress_.arm = context.arm.id;
    for (std::size_t i = 0; i < list.total.size(); ++i) {
      progress_.total += list.total[i];
      progress_.done += list.done[i];
    }
  }

  void answered(std::size_t subset, double latency_ms) {
    latencies_.push_back(latency_ms);
    if (latencies_.size() > kLatencyWindow) latencies_.pop_front();
    ++progress_.done;
    ++list_.done[subset];
    finished(subset);
  }

  void gave_up(std::size_t subset) {
    ++progress_.failed;
    ++given_up_[subset];
    finished(subset);
  }

  void retried() { ++progress_.retries; }

 private:
  void finished(std::size_t subset) {
    ++progress_.asked;
    progress_.subset = context_.subsets[subset].subset->id;
    progress_.seconds = seconds_since(context_.seams.clock, start_);
    std::vector<double> sorted(latencies_.begin(), latencies_.end());
    std::nth_element(sorted.begin(),
                     sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
    progress_.median_ms = sorted.empty() ? 0 : sorted[sorted.size() / 2];
    context_.seams.events.progressed(progress_);
    if (list_.done[subset] + given_up_[subset] == list_.total[subset]) {
      context_.seams.events.subset_done(progress_, list_.done[subset], list_.total[subset]);
    }
  }

  const ReadContext& context_;
  ReadList& list_;
  nanoseconds start_;
  Progress progress_;
  std::vector<std::int64_t> given_up_;  // per subset
  std::deque<double> latencies_;
};

std::string smoke_problem(const Record& record, const Answer& answer, ReadMode mode) {
  const auto labels = static_cast<int>(answer.distribution.labels.size());
  const int returned = answer.distribution.labels_returned;
  if (answer.native && answer.native->value) return {};  // an expected level has no labels
  const int wanted = mode == ReadMode::exact ? labels : 1;
  if (returned >= wanted) return {};
  return fmt::format("record {} came back with {} of {} labels, at least {} must", record.id,
                     returned, labels, wanted);
}

}  // namespace

ReadList missing_reads(const Store& store, std::int64_t configuration,
                       const std::vector<SubsetIndex>& subsets, PromptForm form, int repeats,
                       std::optional<int> limit) {
  ReadList list;
  for (std::size_t s = 0; s < subsets.size(); ++s) {
    list.total.push_back(0);
    list.done.push_back(0);
    for (int repeat = 0; repeat < repeats; ++repeat) {
      for (const std::string& variant : variants_of(*subsets[s].group, subsets[s].subset->type)) {
        const std::vector<std::int64_t>& prompts = subsets[s].prompts.at({form, variant});
        const std::size_t count =
            limit ? std::min(prompts.size(), static_cast<std::size_t>(*limit)) : prompts.size();
        const auto known = std::find(subsets[s].group->variants.begin(),
                                     subsets[s].group->variants.end(), variant);
        for (std::size_t i = 0; i < count; ++i) {
          if (prompts[i] == 0) continue;  // no prompt of this form (left_out()), or another shard's
          ++list.total[s];
          if (store.has_prediction(configuration, prompts[i], repeat)) {
            ++list.done[s];
          } else {
            list.pending.push_back({s, i, *known, prompts[i], repeat});
          }
        }
      }
    }
  }
  return list;
}

std::int64_t leave_failed(ReadList& list, const Store& store, std::int64_t configuration) {
  const auto rest =
      std::stable_partition(list.pending.begin(), list.pending.end(), [&](const PendingRead& read) {
        return !store.gave_up(configuration, read.prompt, read.repeat);
      });
  for (auto read = rest; read != list.pending.end(); ++read) --list.total[read->subset];
  const auto left = static_cast<std::int64_t>(list.pending.end() - rest);
  list.pending.erase(rest, list.pending.end());
  return left;
}

std::vector<PendingRead> take_smoke_reads(ReadList& list, const std::vector<SubsetIndex>& subsets) {
  const auto rest =
      std::stable_partition(list.pending.begin(), list.pending.end(), [&](const PendingRead& read) {
        return read.position >= subsets[read.subset].smoke_end || read.variant != "none" ||
               read.repeat != 0;
      });
  std::vector<PendingRead> smoke(rest, list.pending.end());
  list.pending.erase(rest, list.pending.end());
  return smoke;
}

ReadOutcome ask(const ReadContext& context, const Backend& backend, Transport& transport,
                const Endpoint& endpoint, ReadList& list, const std::vector<PendingRead>& pending,
                int concurrency, bool smoke,
                const std::function<std::optional<std::string>()>& server_ended) {
  ReadOutcome outcome;
  SubsetTexts texts(context.seams.files, context.subsets);
  Tally tally(context, list);
  Backoff backoff;
  std::size_t upcoming = 0;

  ScheduleHooks hooks;
  hooks.next = [&]() -> std::optional<Job> {
    if (upcoming == pending.size() || !outcome.first_problem.empty()) return std::nullopt;
    const PendingRead& read = pending[upcoming];
    Job job;
    job.record = texts.record(read.subset, read.position);
    job.prompt =
        std::make_shared<const Prompt>(prompt_for(context.wording, context.plan.prompt, *job.record,
                                                  read.variant, prompt_form(context.spec.read)));
    job.variant = read.variant;
    job.prompt_key = read.prompt;
    job.repeat = read.repeat;
    job.position = upcoming++;
    return job;
  };
  hooks.refusal = [&](const Answer& answer) -> std::optional<Failure> {
    const Distribution& read = answer.distribution;
    if (!answer.native && read.label_mass > kMostMass) {
      return Failure{"impossible_mass",
                     fmt::format("the labels have a probability of {:.3f} together: these are not "
                                 "log-probabilities of one token",
                                 read.label_mass)};
    }
    const std::string& expected = context.answered_by;
    if (expected.empty() || answer.model.empty() || answer.model == expected) return std::nullopt;
    return Failure{"identity_changed",
                   fmt::format("answered by {}, where {} answered before", answer.model, expected)};
  };
  hooks.answered = [&](const Job& job, const Answer& answer) {
    context.store.put_prediction(context.configuration, {job.prompt_key, job.repeat}, job.item(),
                                 answer);
    ++outcome.answered;
    if (smoke && outcome.first_problem.empty()) {
      outcome.first_problem = smoke_problem(*job.record, answer, context.spec.read);
    }
    tally.answered(pending[job.position].subset, answer.latency_ms);
  };
  hooks.failed = [&](const Job& job, const Failure& failure, int attempt, bool final) {
    context.store.put_failure(context.configuration, {job.prompt_key, job.repeat}, job.item(),
                              attempt, final, failure);
    context.seams.events.detail(fmt::format("record {}, attempt {}{}: {}: {}", job.record->id,
                                            attempt, final ? ", given up" : "", failure.error_class,
                                            failure.message));
    if (!final) {
      tally.retried();
      return;
    }
    ++outcome.failed;
    if (smoke && failure.error_class != "record_refused" && outcome.first_problem.empty()) {
      outcome.first_problem = fmt::format("record {} failed ({}): {}", job.record->id,
                                          failure.error_class, failure.message);
    }
    tally.gave_up(pending[job.position].subset);
  };
  std::chrono::milliseconds longest_told{0};
  hooks.asked_to_wait = [&](std::chrono::milliseconds pause) {
    // Once per length: a server that says "a minute" to every read says it a hundred times.
    if (pause < kWorthSaying || pause <= longest_told) return;
    longest_told = pause;
    context.seams.events.notice(fmt::format("arm {}: the server asks to wait for {:.0f} s",
                                            context.arm.id,
                                            std::chrono::duration<double>(pause).count()));
  };
  bool told = false;
  hooks.stop = [&] {
    const int level = context.seams.interrupt.level();
    if (level > 0 && !std::exchange(told, true)) {
      context.seams.events.notice(
          "finishing what is in flight; Ctrl-C once more stops at once. Both can be resumed");
    }
    return level;
  };
  hooks.idle = [&] { context.store.flush_if_due(); };
  hooks.server_ended = server_ended;

  const ScheduleLimits limits{concurrency, context.spec.attempts, context.spec.breaker};
  outcome.end =
      run_schedule(backend, transport, endpoint, context.seams.clock, backoff, limits, hooks);
  context.store.flush();
  return outcome;
}

}  // namespace preval
