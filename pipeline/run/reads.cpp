#include "run/reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"

namespace preval {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kBaseVariant = "none";
constexpr double kAccountEvery = 1;               // seconds
constexpr std::chrono::seconds kWorthSaying{10};  // a pause that a user would wonder about
// Servers round log-probabilities, some to 1/64; no rounding makes more of it.
constexpr double kMostMass = 1.05;

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
  list.counts.resize(subsets.size());
  const auto first_of = [&](const std::vector<std::int64_t>& prompts, std::size_t wanted) {
    return std::min(
        {prompts.size(), wanted, limit ? static_cast<std::size_t>(*limit) : prompts.size()});
  };
  const auto add = [&](std::vector<PendingRead>& reads, const PendingRead& read, bool is_done) {
    if (read.prompt == 0) return;  // no prompt of this form (left_out()), or another shard's
    ++list.counts[read.subset].total;
    if (is_done) {
      ++list.counts[read.subset].done;
    } else {
      reads.push_back(read);
    }
  };
  // Subsets come in the order of the plan, so those of one group stand together.
  for (std::size_t begin = 0, end = 0; begin < subsets.size(); begin = end) {
    const DatasetGroup& group = *subsets[begin].group;
    while (end < subsets.size() && subsets[end].group == &group) ++end;
    for (const std::string& variant : group.variants) {
      for (std::size_t s = begin; s < end; ++s) {
        const auto prompts = subsets[s].prompts.find({form, variant});
        if (prompts == subsets[s].prompts.end()) continue;  // a variant that this type has not
        for (int repeat = 0; repeat < repeats; ++repeat) {
          const std::size_t count = first_of(prompts->second, prompts->second.size());
          for (std::size_t i = 0; i < count; ++i) {
            const std::int64_t prompt = prompts->second[i];
            add(list.pending, {s, i, variant, prompt, repeat},
                prompt != 0 && store.has_prediction(configuration, prompt, repeat));
          }
        }
      }
    }
    for (std::size_t s = begin; s < end; ++s) {
      const std::vector<std::int64_t>& prompts = subsets[s].prompts.at({form, "none"});
      const std::size_t count = first_of(prompts, static_cast<std::size_t>(group.latency.records));
      for (std::size_t i = 0; i < count; ++i) {
        add(list.timings, {s, i, kBaseVariant, prompts[i], repeats},
            prompts[i] != 0 && store.has_timing(configuration, prompts[i]));
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
  for (auto read = rest; read != list.pending.end(); ++read) --list.counts[read->subset].total;
  const auto left = static_cast<std::int64_t>(list.pending.end() - rest);
  list.pending.erase(rest, list.pending.end());
  return left;
}

std::vector<PendingRead> take_smoke_reads(ReadList& list, const std::vector<SubsetIndex>& subsets) {
  const auto rest =
      std::stable_partition(list.pending.begin(), list.pending.end(), [&](const PendingRead& read) {
        return read.position >= subsets[read.subset].smoke_end || read.variant != kBaseVariant ||
               read.repeat != 0;
      });
  std::vector<PendingRead> smoke(rest, list.pending.end());
  list.pending.erase(rest, list.pending.end());
  return smoke;
}

std::vector<ReadPass> passes_of(const ReadList& list, const std::vector<SubsetIndex>& subsets,
                                int concurrency) {
  std::vector<ReadPass> passes;
  const auto group_of = [&](const PendingRead& read) { return subsets[read.subset].group; };
  const auto take_group = [&](std::span<const PendingRead>& reads, const auto& belongs) {
    const auto end = std::find_if_not(reads.begin(), reads.end(), belongs);
    const auto taken = reads.first(static_cast<std::size_t>(end - reads.begin()));
    reads = reads.subspan(taken.size());
    return taken;
  };
  std::span<const PendingRead> pending = list.pending, timings = list.timings;
  for (const SubsetIndex& subset : subsets) {
    const DatasetGroup* group = subset.group;
    while (!pending.empty() && group_of(pending.front()) == group) {
      const std::string_view variant = pending.front().variant;
      ReadPass pass;
      pass.stage = variant == kBaseVariant ? group->id : fmt::format("{} {}", group->id, variant);
      pass.concurrency = concurrency;
      pass.reads = take_group(pending, [&](const PendingRead& read) {
        return group_of(read) == group && read.variant == variant;
      });
      passes.push_back(std::move(pass));
    }
    const auto timed =
        take_group(timings, [&](const PendingRead& read) { return group_of(read) == group; });
    if (timed.empty()) continue;
    passes.push_back(
        {ReadPass::Kind::timings, group->id + " latency", group->latency.concurrency, timed});
  }
  return passes;
}

namespace {

/// One pass on its way: what the schedule asks of it, and where it puts what comes.
class Asking {
 public:
  Asking(const ReadContext& context, const ReadPass& pass)
      : context_(context), pass_(pass), texts_(context.seams.files, context.subsets) {}

  ReadOutcome run(const ReadServer& server) {
    const ScheduleLimits limits{pass_.concurrency, context_.spec.attempts, context_.spec.breaker};
    Backoff backoff;
    outcome_.end = run_schedule(server.backend, server.transport, server.endpoints,
                                context_.seams.clock, backoff, limits, hooks(server));
    keep_account();
    context_.store.flush();
    return std::move(outcome_);
  }

 private:
  ScheduleHooks hooks(const ReadServer& server) {
    ScheduleHooks hooks;
    hooks.next = [this] { return next(); };
    hooks.withheld = [this](const Job& job) {
      return context_.budget.reserve(most_tokens(*job.prompt));
    };
    if (context_.tokeniser != 0) {
      hooks.known_tokens = [this](const Job& job) { return known_tokens(job); };
      hooks.tokenised = [this](const Job& job, const TokenPrompt& tokens) {
        if (tokens.tokens.empty()) return;
        context_.store.put_tokens(context_.tokeniser, job.prompt_key, tokens);
      };
    }
    hooks.refusal = [this](const Answer& answer) { return refusal(answer); };
    hooks.answered = [this](const Job& job, const Answer& answer) { answered(job, answer); };
    hooks.failed = [this](const Job& job, const Failure& failure, int attempt, bool final) {
      failed(job, failure, attempt, final);
    };
    hooks.asked_to_wait = [this](milliseconds pause) { asked_to_wait(pause); };
    hooks.stop = [this] { return stop(); };
    hooks.idle = [this] {
      if (seconds_since_account() > kAccountEvery) keep_account();
      context_.store.flush_if_due();
    };
    hooks.server_ended = server.ended;
    return hooks;
  }

  std::optional<Job> next() {
    if (upcoming_ == pass_.reads.size() || !outcome_.first_problem.empty()) return std::nullopt;
    const PendingRead& read = pass_.reads[upcoming_];
    Job job;
    job.record = texts_.record(read.subset, read.position);
    job.prompt = std::make_shared<const Prompt>(prompt_for(context_.wording, context_.plan.prompt,
                                                           *job.record, read.variant,
                                                           prompt_form(context_.spec.read)));
    job.variant = read.variant;
    job.prompt_key = read.prompt;
    job.repeat = read.repeat;
    job.position = upcoming_++;
    return job;
  }

  std::optional<TokenPrompt> known_tokens(const Job& job) const {
    auto known = context_.store.find_tokens(context_.tokeniser, job.prompt_key);
    if (known && known->labels.size() != job.prompt->labels.size()) return std::nullopt;
    return known;
  }

  std::optional<Failure> refusal(const Answer& answer) const {
    const Distribution& read = answer.distribution;
    if (!answer.native && read.label_mass > kMostMass) {
      return Failure{"impossible_mass",
                     fmt::format("the labels have a probability of {:.3f} together: these are not "
                                 "log-probabilities of one token",
                                 read.label_mass)};
    }
    const std::string& expected = context_.answered_by;
    if (expected.empty() || answer.model.empty() || answer.model == expected) return std::nullopt;
    return Failure{"identity_changed",
                   fmt::format("answered by {}, where {} answered before", answer.model, expected)};
  }

  void answered(const Job& job, const Answer& answer) {
    const std::int64_t reserved = most_tokens(*job.prompt);
    context_.budget.settle(reserved, answer.requests,
                           answer.prompt_tokens > 0 ? answer.prompt_tokens : reserved,
                           answer.latency_ms);
    if (timed()) {
      context_.store.put_timing(context_.configuration, job.prompt_key, job.item(), answer);
    } else {
      context_.store.put_prediction(context_.configuration, {job.prompt_key, job.repeat},
                                    job.item(), answer);
    }
    ++outcome_.answered;
    if (smoke() && outcome_.first_problem.empty()) {
      outcome_.first_problem = smoke_problem(*job.record, answer, context_.spec.read);
    }
    context_.tally.answered(pass_.reads[job.position].subset, answer.latency_ms);
  }

  void failed(const Job& job, const Failure& failure, int attempt, bool final) {
    // A refusal costs nothing; what came back unusable, or not at all, may have been read.
    const std::int64_t reserved = most_tokens(*job.prompt);
    const bool refused = failure.http_status >= 400 || failure.error_class == "connect_failed";
    context_.budget.settle(reserved, 1, refused ? 0 : reserved, 0);
    if (timed()) {
      context_.store.put_failure(context_.arm.id, "latency", attempt, final, failure);
    } else {
      context_.store.put_failure(context_.configuration, {job.prompt_key, job.repeat}, job.item(),
                                 attempt, final, failure);
    }
    context_.seams.events.detail(fmt::format("record {}, attempt {}{}: {}: {}", job.record->id,
                                             attempt, final ? ", given up" : "",
                                             failure.error_class, failure.message));
    if (!final) {
      context_.tally.retried();
      return;
    }
    ++outcome_.failed;
    if (smoke() && failure.error_class != "record_refused" && outcome_.first_problem.empty()) {
      outcome_.first_problem = fmt::format("record {} failed ({}): {}", job.record->id,
                                           failure.error_class, failure.message);
    }
    context_.tally.gave_up(pass_.reads[job.position].subset);
  }

  /// Once per length: a server that says "a minute" to every read says it a hundred times.
  void asked_to_wait(milliseconds pause) {
    if (pause < kWorthSaying || pause <= longest_pause_told_) return;
    longest_pause_told_ = pause;
    context_.seams.events.notice(fmt::format("arm {}: the server asks to wait for {:.0f} s",
                                             context_.arm.id,
                                             std::chrono::duration<double>(pause).count()));
  }

  int stop() {
    const int level = context_.seams.interrupt.level();
    if (level > 0 && !std::exchange(stop_told_, true)) {
      context_.seams.events.notice(
          "finishing what is in flight; Ctrl-C once more stops at once. Both can be resumed");
    }
    return level;
  }

  double seconds_since_account() {
    return std::chrono::duration<double>(context_.seams.clock.monotonic() - accounted_).count();
  }

  void keep_account() {
    context_.store.put_usage(context_.arm.id, context_.budget.arm());
    accounted_ = context_.seams.clock.monotonic();
  }

  bool smoke() const { return pass_.kind == ReadPass::Kind::smoke; }
  bool timed() const { return pass_.kind == ReadPass::Kind::timings; }

  const ReadContext& context_;
  const ReadPass& pass_;
  SubsetTexts texts_;
  ReadOutcome outcome_;
  std::size_t upcoming_ = 0;
  milliseconds longest_pause_told_{0};
  std::chrono::nanoseconds accounted_{0};
  bool stop_told_ = false;
};

}  // namespace

ReadOutcome ask(const ReadContext& context, const ReadServer& server, const ReadPass& pass) {
  return Asking(context, pass).run(server);
}

}  // namespace preval
