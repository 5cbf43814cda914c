#include "run/arm.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/dialogue.h"
#include "backend/probe.h"
#include "base/error.h"
#include "base/text.h"
#include "run/arm_server.h"
#include "run/identity.h"
#include "run/key.h"
#include "run/reads.h"
#include "run/remedy.h"
#include "run/retry.h"
#include "run/stage.h"

namespace preval {

namespace {

constexpr double kBriefly = 2;  // seconds

/// What the store holds for an arm as the current configuration.
struct StoredConfiguration {
  std::int64_t id = 0;
  Json settings, identity;
};

std::optional<StoredConfiguration> stored_configuration(Store& store, const std::string& arm) {
  Stmt query(
      store.db(),
      "SELECT c.id, c.settings, c.identity FROM configuration c JOIN arm a ON a.id = c.arm_id "
      "WHERE a.name = ? AND c.current = 1");
  query.bind(1, arm);
  if (!query.step()) return std::nullopt;
  const auto stored = [&](int column, const char* what) {
    try {
      return parse_json(query.text(column), what);
    } catch (const Error& error) {
      throw Error(ErrorKind::drift,
                  fmt::format("{}: {}", store.db().path().string(), error.message()),
                  "no run writes this; restore a copy of the store");
    }
  };
  return StoredConfiguration{query.integer(0), stored(1, "configuration.settings"),
                             stored(2, "configuration.identity")};
}

class ArmRun {
 public:
  ArmRun(const RunSeams& seams, Store& store, const OpenPlan& plan, const PromptFile& wording,
         const std::vector<SubsetIndex>& subsets, const RunOptions& options, Budget& budget,
         const Arm& arm)
      : seams_(seams),
        store_(store),
        plan_(plan),
        wording_(wording),
        subsets_(subsets),
        options_(options),
        budget_(budget),
        arm_(arm),
        spec_(plan.effective.backend(arm.backend)),
        checkpoint_(plan.effective.checkpoint(arm.checkpoint)),
        settings_(answer_settings(plan.effective, arm)),
        context_{seams, store, plan, options, arm, spec_, checkpoint_},
        server_(context_) {}

  ArmResult run() {
    if (const std::string reason = not_run_reason(plan_.effective, arm_, options_);
        !reason.empty()) {
      return not_run(reason);
    }
    if (const std::string reason = key_not_given(spec_.key_env); !reason.empty()) {
      return not_run(reason, true);
    }
    for (const SubsetIndex& index : subsets_)
      context_.tell(left_out(index, prompt_form(spec_.read)));
    try {
      if (nothing_left_to_ask()) {
        ArmResult result;
        result.missing_reads = still_missing();
        return result;
      }
      if (spec_.kind != "simulated") server_.check_checkpoint();
      store_.arm_status(arm_.id, "started");
      budget_.begin_arm(spec_);
      backend_ = make_backend(spec_, checkpoint_, plan_.effective.prompt);
      server_.boot(*backend_);
      facts_ = who_answers("identity");
      compare_replicas("identity");
      if (!options_.record.empty() && spec_.kind != "simulated") {
        server_.record(*make_backend(spec_, checkpoint_, plan_.effective.prompt), facts_);
        facts_ = who_answers("identity");
      }
      preflight();
      ArmResult result = read();
      server_.stop();
      end_account();
      return result;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::io) throw;
      return failed(error);
    }
  }

 private:
  ArmResult not_run(const std::string& reason, bool needed = false) {
    store_.arm_status(arm_.id, "not run", reason);
    seams_.events.notice(fmt::format("arm {}: not run: {}", arm_.id, reason));
    ArmResult result;
    result.status = ArmResult::Status::not_run;
    result.reason = reason;
    result.needed = needed;
    return result;
  }

  ArmResult failed(const Error& error) {
    ArmResult result;
    result.status = error.kind() == ErrorKind::interrupted ? ArmResult::Status::interrupted
                                                           : ArmResult::Status::failed;
    result.reason = error.what();
    result.drift = error.kind() == ErrorKind::drift;
    result.refused = error.kind() == ErrorKind::usage;
    result.booted = server_.booted();
    result.served = served_ || (configuration_ != 0 && has_answers(configuration_));
    result.breaker = breaker_;
    result.withheld = withheld_;
    result.missing_reads = still_missing();
    if (result.status == ArmResult::Status::failed) {
      store_.arm_status(arm_.id, withheld_ ? "not run" : "failed",
                        result.reason);  // unless it has answers that count
      store_.event(arm_.id,
                   result.drift ? "drift"
                   : withheld_  ? "budget"
                                : "failed",
                   result.reason);
      const std::string hint = error.hint().empty() ? "" : "\n  hint: " + error.hint();
      if (!hint.empty()) store_.event(arm_.id, "hint", error.hint());
      seams_.events.notice(fmt::format("arm {}: {}{}", arm_.id, result.reason, hint));
    }
    end_account();
    store_.flush();
    return result;
  }

  void end_account() {
    if (!server_.booted()) return;
    store_.put_usage(arm_.id, budget_.arm());
    budget_.end_arm();
    store_.flush();
  }

  bool has_answers(std::int64_t configuration) {
    store_.flush();
    Stmt query(store_.db(), "SELECT 1 FROM prediction WHERE configuration_id = ? LIMIT 1");
    query.bind(1, configuration);
    return query.step();
  }

  /// Of what counts: the server's own configuration, or that of an earlier run until it is known.
  std::int64_t still_missing() {
    const bool answered = configuration_ != 0 && has_answers(configuration_);
    const std::optional<StoredConfiguration> stored = stored_configuration(store_, arm_.id);
    const std::int64_t configuration = answered || options_.exploratory          ? configuration_
                                       : stored && stored->settings == settings_ ? stored->id
                                                                                 : 0;
    return list_of(configuration).missing();
  }

  ReadList list_of(std::int64_t configuration) {
    return missing_reads(store_, configuration, subsets_, prompt_form(spec_.read),
                         plan_.effective.repeats, options_.limit);
  }

  /// Everything stored, by the same settings and the same engine: no server has to be started.
  bool nothing_left_to_ask() {
    if (!spec_.url.empty()) return false;
    const std::optional<StoredConfiguration> stored = stored_configuration(store_, arm_.id);
    if (!stored || stored->settings != settings_) return false;
    ReadList list = list_of(stored->id);
    const std::int64_t failed = options_.retry_failed ? 0 : leave_failed(list, store_, stored->id);
    if (list.missing() > 0) return false;
    if (stored->identity.value("engine", "") != server_.engine_version()) return false;
    store_.arm_status(arm_.id, "started");
    StageScope stage(seams_, store_, arm_.id, "reads");
    stage.done(failed == 0 ? std::string("everything is stored already: nothing asked")
                           : fmt::format("everything but {} that earlier runs gave up is stored: "
                                         "nothing asked",
                                         counted(failed, "read")));
    return true;
  }

  Json who_answers(const std::string& what, std::size_t replica = 0) {
    auto answer = converse(*backend_->identify(), server_.patient(what, replica));
    if (auto* failure = std::get_if<Failure>(&answer)) throw_failure(what, *failure);
    return std::get<Identity>(std::move(answer)).facts;
  }

  /// Replicas share an arm's reads, so they have to be one server in everything but their address.
  void compare_replicas(const std::string& what) {
    for (std::size_t i = 1; i < server_.endpoints().size(); ++i) {
      const std::string difference = identity_difference(facts_, who_answers(what, i));
      if (difference.empty()) continue;
      throw Error(ErrorKind::drift,
                  fmt::format("{} of arm {}: server {} ({}) is not what the first one is: {}", what,
                              arm_.id, i + 1, server_.endpoints()[i].base_url, difference),
                  "the replicas of a backend have to serve the same model in the same way");
    }
  }

  /// A server that was replaced while it was read from has answered under a wrong name. Nobody
  /// knows when that was, so whatever it answered in this run is set aside.
  void check_identity() {
    StageScope stage(seams_, store_, arm_.id, "identity");
    if (spec_.kind != "simulated") {
      same_as_before(who_answers("identity after the reads"));
      compare_replicas("identity after the reads");
    }
    stage.done("as before the reads");
  }

  void same_as_before(const Json& now) {
    if (const std::string difference = identity_difference(facts_, now); !difference.empty()) {
      changed(difference, now);
    }
  }

  [[noreturn]] void changed(const std::string& difference, const Json& now) {
    const std::int64_t aside = store_.set_aside(
        configuration_, {{"before", facts_}, {"after", now}, {"run", store_.run()}});
    throw Error(ErrorKind::drift,
                fmt::format("the server changed while it was read from: {}", difference),
                fmt::format("its {} answers of this run are kept and do not count, since nobody "
                            "knows which of them the other server gave: run again, with one server",
                            aside));
  }

  /// After reads that broke off, without patience. Where a server cannot be asked any more, its
  /// answers count, and the report says of them that nobody confirmed who gave them.
  void check_identity_briefly() {
    if (spec_.kind == "simulated" || configuration_ == 0) return;
    StageScope stage(seams_, store_, arm_.id, "identity");
    if (seams_.interrupt.level() > 1 || server_.ended()) return;
    Endpoint impatient = server_.endpoints().front();
    impatient.timeouts = {kBriefly, kBriefly, kBriefly};
    const auto answer = converse(*backend_->identify(), asker(server_.transport(), impatient));
    const auto* identity = std::get_if<Identity>(&answer);
    if (identity == nullptr) return;
    same_as_before(identity->facts);
    stage.done("as before the reads");
  }

  [[noreturn]] void throw_failure(const std::string& what, const Failure& failure) {
    // What is worth another try has had all of them.
    store_.put_failure(arm_.id, what, failure.retry ? spec_.attempts : 1, true, failure);
    std::string hint = hint_for(failure);
    if (hint.empty()) hint = server_.log_hint();
    throw Error(
        ErrorKind::backend,
        fmt::format("{} of arm {}: {}: {}", what, arm_.id, failure.error_class, failure.message),
        hint);
  }

  /// What the user can do about a refusal, where that is known.
  std::string hint_for(const Failure& failure) const {
    if (failure.http_status == 401 || failure.http_status == 403) {
      return spec_.key_env.empty()
                 ? fmt::format(
                       "this server wants a key: name its variable in the plan, "
                       "\"key_env\" of backend {}",
                       spec_.id)
                 : fmt::format("the key in {} was refused: set another one and run again",
                               spec_.key_env);
    }
    if (failure.http_status == 404) {
      return fmt::format("no such path or model there: look at \"url\" and \"model\" of backend {}",
                         spec_.id);
    }
    return {};
  }

  /// What the probe found is stored, whatever it is. A finding that contradicts the plan ends the
  /// arm.
  void preflight() {
    StageScope stage(seams_, store_, arm_.id, "preflight");
    std::vector<Record> records;
    std::vector<Prompt> prompts;
    for (const SubsetIndex& index : subsets_) {
      auto first = first_record(seams_.files, index, prompt_form(spec_.read));
      if (!first) continue;
      prompts.push_back(
          prompt_for(wording_, plan_.effective.prompt, *first, "none", prompt_form(spec_.read)));
      records.push_back(std::move(*first));
    }
    std::vector<Item> items;
    for (std::size_t i = 0; i < records.size(); ++i) {
      items.push_back({&records[i], &prompts[i], "none", 0});
    }
    const ProbeResult found = probe(spec_, checkpoint_, plan_.effective.prompt, items,
                                    ProbeFor::plan, server_.patient("preflight"));
    for (const Finding& finding : found.findings) {
      store_.finding(arm_.id, finding);
      seams_.events.detail(fmt::format("{}: {}", finding.capability, finding.text()));
    }
    if (found.broke) throw_failure("preflight", *found.broke);
    std::vector<Finding> problems;
    std::copy_if(found.findings.begin(), found.findings.end(), std::back_inserter(problems),
                 [](const Finding& finding) { return !finding.ok; });
    if (!problems.empty()) contradiction(problems, found);
    stage.done(fmt::format("{} findings, none against the plan; can read: {}",
                           found.findings.size(), found.can.verdict()));
    register_configuration(found.answered_by);
  }

  [[noreturn]] void contradiction(const std::vector<Finding>& problems, const ProbeResult& found) {
    std::vector<std::string> said;
    for (const Finding& each : problems) {
      said.push_back(fmt::format("{}: {}", each.capability, each.text()));
    }
    std::string hint = fmt::format("this server reads: {}", found.can.verdict());
    if (const std::string command = remedy(plan_, spec_, problems, found); !command.empty()) {
      hint += "; to read it as it is, register that: " + command;
    }
    throw Error(ErrorKind::backend,
                fmt::format("preflight of arm {}: {}", arm_.id, join(said, "; ")), hint);
  }

  /// Who has answered the preflight's reads is who answers from now on.
  void register_configuration(const std::string& answered_by) {
    answered_by_ = answered_by;
    Json identity = Json::object();
    identity["engine"] = server_.engine_version();
    identity["server"] = facts_;
    if (!answered_by.empty()) identity["answered_by"] = answered_by;
    const std::optional<StoredConfiguration> stored = stored_configuration(store_, arm_.id);
    configuration_ = store_.put_configuration(arm_.id, settings_, identity);
    if (has_answers(configuration_)) store_.make_current(configuration_);
    if (!stored || stored->id == configuration_ || !has_answers(stored->id)) return;
    const std::string text = fmt::format(
        "this is not the server that gave the stored answers ({}): {}",
        identity_difference(facts_of_identity(stored->identity), facts_of_identity(identity)),
        options_.exploratory ? "what it answers is tried out beside them"
                             : "they are kept, and stop counting with its first answer");
    store_.event(arm_.id, "another server", text);
    seams_.events.notice(fmt::format("arm {}: {}", arm_.id, text));
  }

  ArmResult read() {
    ReadList list = list_of(configuration_);
    if (!options_.retry_failed) {
      if (const std::int64_t failed = leave_failed(list, store_, configuration_); failed > 0) {
        context_.tell(
            fmt::format("{} that earlier runs gave up: not asked again", counted(failed, "read")));
      }
    }
    Tally tally(seams_.events, seams_.clock, arm_.id, subsets_, list.counts, &budget_);
    const ReadContext context{seams_,   store_,         plan_.effective, wording_,
                              subsets_, arm_,           spec_,           budget_,
                              tally,    configuration_, answered_by_,    tokeniser()};
    const ReadServer server{*backend_, server_.transport(), server_.endpoints(),
                            [this] { return server_.ended(); }};
    if (const auto smoke = take_smoke_reads(list, subsets_); !smoke.empty()) {
      StageScope stage(seams_, store_, arm_.id, "smoke");
      const int concurrency = subsets_[smoke.front().subset].group->smoke.concurrency;
      const ReadOutcome outcome =
          ask(context, server, {ReadPass::Kind::smoke, "smoke", concurrency, smoke});
      if (outcome.end.kind != ScheduleEnd::Kind::done) throw_end(outcome.end);
      if (!outcome.first_problem.empty()) {
        throw Error(ErrorKind::backend, fmt::format("smoke reads: {}", outcome.first_problem),
                    fmt::format("nothing more is asked of this arm; preval query --db {} \"select "
                                "* from v_failure\"",
                                store_.db().path().generic_string()));
      }
      stage.done(fmt::format("{} reads, every one usable", outcome.answered));
    }
    served_ = true;
    for (const ReadPass& pass : passes_of(list, subsets_, spec_.concurrency)) {
      StageScope stage(seams_, store_, arm_.id, pass.stage);
      const ReadOutcome outcome = ask(context, server, pass);
      if (outcome.end.kind != ScheduleEnd::Kind::done) throw_end(outcome.end);
      stage.done(fmt::format("{} {}, {} given up", outcome.answered,
                             pass.kind == ReadPass::Kind::timings ? "timed" : "answered",
                             outcome.failed));
    }
    ArmResult result;
    result.missing_reads = still_missing();
    check_identity();
    return result;
  }

  /// Tokens are kept where another read will want them: a repeat, a latency pass, or another arm
  /// whose prompts go through the same tokeniser. 0: nowhere.
  std::int64_t tokeniser() {
    const Plan& plan = plan_.effective;
    const bool timed = std::any_of(plan.datasets.begin(), plan.datasets.end(),
                                   [](const auto& group) { return group.latency.records > 0; });
    const bool shared = std::any_of(plan.arms.begin(), plan.arms.end(), [&](const Arm& other) {
      return other.id != arm_.id && other.checkpoint == arm_.checkpoint &&
             plan.backend(other.backend).kind == spec_.kind;
    });
    if (spec_.kind == "simulated" || (plan.repeats == 1 && !timed && !shared)) return 0;
    Json engine = facts_;
    for (const char* key : {"context", "slots", "kv_cache"}) engine.erase(key);  // not of prompts
    return store_.put_tokeniser({{"checkpoint", settings_["checkpoint"]},
                                 {"prompt", settings_.value("prompt", Json())},
                                 {"kind", spec_.kind},
                                 {"url", spec_.url},
                                 {"version", server_.engine_version()},
                                 {"engine", std::move(engine)}});
  }

  [[noreturn]] void throw_end(const ScheduleEnd& end) {
    breaker_ = end.kind == ScheduleEnd::Kind::breaker;
    withheld_ = end.kind == ScheduleEnd::Kind::withheld;
    const std::string error_class = end.failure ? end.failure->error_class : std::string();
    if (error_class == "identity_changed") changed(end.reason, end.reason);
    check_identity_briefly();
    if (end.kind == ScheduleEnd::Kind::interrupted) {
      throw Error(ErrorKind::interrupted, end.reason);
    }
    if (withheld_) {
      throw Error(ErrorKind::incomplete, end.reason,
                  "what is stored stays: the same command goes on, with a higher cap");
    }
    const std::string hint = end.failure ? hint_for(*end.failure) : std::string();
    throw Error(ErrorKind::backend, end.reason,
                hint.empty() ? "what is stored stays: the same command goes on" : hint);
  }

  const RunSeams& seams_;
  Store& store_;
  const OpenPlan& plan_;
  const PromptFile& wording_;
  const std::vector<SubsetIndex>& subsets_;
  const RunOptions& options_;
  Budget& budget_;
  const Arm& arm_;
  const BackendSpec& spec_;
  const Checkpoint& checkpoint_;
  Json settings_;
  const ArmContext context_;
  ArmServer server_;

  std::unique_ptr<Backend> backend_;
  Json facts_;               // of the server, before the first read
  std::string answered_by_;  // the model that its replies name
  bool breaker_ = false, withheld_ = false;
  bool served_ = false;             // it answered the smoke reads, or had no more of them to answer
  std::int64_t configuration_ = 0;  // 0, which has no answers, until the server is known
};

}  // namespace

std::string not_run_reason(const Plan& plan, const Arm& arm, const RunOptions& options) {
  const Checkpoint& checkpoint = plan.checkpoint(arm.checkpoint);
  if (!plan.backend(arm.backend).asks_server()) return {};  // no checkpoint is served
  if (!checkpoint.terms_id.empty() && !options.accepted_terms.contains(checkpoint.terms_id)) {
    return "terms not accepted";
  }
  return {};
}

ArmResult run_arm(const RunSeams& seams, Store& store, const OpenPlan& plan,
                  const PromptFile& wording, const std::vector<SubsetIndex>& subsets,
                  const RunOptions& options, Budget& budget, const Arm& arm) {
  return ArmRun(seams, store, plan, wording, subsets, options, budget, arm).run();
}

}  // namespace preval
