#pragma once
// A study small enough to count by hand, written through the Store as a run would write it.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../base/temporary_folder.h"
#include "base/json.h"
#include "base/sha256.h"
#include "read/distribution.h"
#include "store/store.h"

namespace preval::test {

/// A plan with one suite group; `subsets` as in a plan, `arms` of checkpoints "one" and "two" on
/// backends "exact" and "top".
inline Json small_plan(Json subsets, Json arms) {
  const std::string digest(64, 'a');
  Json plan = Json::parse(R"({
    "preval_plan": 1, "name": "small", "version": "1.0.0", "description": "d", "authors": ["A"],
    "hypotheses": [],
    "datasets": [{"id": "suite", "title": "Small suite", "scoring": "suite", "data": "data",
                  "manifest": "m.json", "variants": ["none", "reversed"]}],
    "prompt": {"file": "p.json"},
    "checkpoints": [
      {"id": "one", "name": "Model One", "revision": "r1", "weights_dtype": "Q4_1", "license": "MIT", "files": []},
      {"id": "two", "name": "Model Two", "revision": "r2", "weights_dtype": "bf16", "license": "MIT", "files": []}],
    "backends": [
      {"id": "exact", "kind": "vllm", "read": "exact", "url": "http://host:1"},
      {"id": "top", "kind": "vllm", "read": "top-k", "k": 32, "url": "http://host:2"}]
  })");
  plan["datasets"][0]["manifest_sha256"] = digest;
  plan["datasets"][0]["subsets"] = std::move(subsets);
  plan["prompt"]["sha256"] = digest;
  plan["arms"] = std::move(arms);
  return plan;
}

inline Json small_subset(const std::string& id, const std::string& type, int records) {
  return {{"id", id},
          {"type", type},
          {"records", records},
          {"families", 1},
          {"sha256", sha256_hex("bytes of " + id)}};
}

inline Json small_arm(const std::string& id, const std::string& checkpoint,
                      const std::string& backend) {
  return {{"id", id}, {"checkpoint", checkpoint}, {"backend", backend}, {"confirmatory", true}};
}

/// Two subsets (yes/no and choice) of 3 and 2 records, three arms: a and b of one checkpoint, c of
/// another.
inline Json two_subset_plan() {
  return small_plan(
      Json::array({small_subset("boolq", "noul", 3), small_subset("massive", "choice", 2)}),
      Json::array({small_arm("a", "one", "exact"), small_arm("b", "one", "top"),
                   small_arm("c", "two", "exact")}));
}

inline OpenPlan opened(const Json& json) {
  OpenPlan plan;
  plan.json = plan.effective_json = json;
  plan.sha256 = plan.effective_sha256 = canonical_sha256(json);
  plan.effective = parse_plan(json, "small.json");
  return plan;
}

inline std::vector<Record> small_records(const std::string& subset, QuestionType type,
                                         const std::vector<std::string>& keys,
                                         const std::vector<int>& targets) {
  std::vector<Record> records;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    Record record;
    record.id = subset + "-" + std::to_string(i + 1);
    record.subset = subset;
    record.family = "family";
    record.line = static_cast<int>(i) + 1;
    record.sha256 = sha256_hex(record.id);
    record.question.id = "decision";
    record.question.type = type;
    for (const std::string& key : keys) record.question.alternatives.push_back({key, ""});
    record.target = targets[i];
    records.push_back(std::move(record));
  }
  return records;
}

/// An exact read with these probabilities, in the order presented, which are `mass` of all.
inline Answer answer_of(const std::vector<double>& probabilities, double mass = 0.9) {
  Answer answer;
  Distribution& read = answer.distribution;
  for (const double p : probabilities) {
    read.labels.push_back({p > 0 ? std::log(p * mass) : -1000.0, p, LabelSource::exact});
    if (p > read.labels[static_cast<std::size_t>(read.predicted)].probability) {
      read.predicted = static_cast<int>(read.labels.size()) - 1;
    }
  }
  read.label_mass = mass;
  read.labels_returned = static_cast<int>(probabilities.size());
  answer.prompt_tokens = 10;
  answer.requests = 1;
  answer.latency_ms = 5;
  return answer;
}

/// A top-k read of this list, in which the labels are tokens 0, 1, … in the order presented.
inline Answer top_answer(const std::vector<TokenLogprob>& top, int n_labels) {
  Answer answer;
  std::vector<TokenId> labels;
  for (int i = 0; i < n_labels; ++i) labels.push_back(static_cast<TokenId>(i));
  answer.distribution = read_top_k(top, labels);
  answer.requests = 1;
  return answer;
}

inline Prompt prompt_of(const Record& record, bool reversed = false) {
  Prompt prompt;
  const auto count = static_cast<int>(record.question.alternatives.size());
  for (int i = 0; i < count; ++i) prompt.options.push_back(reversed ? count - 1 - i : i);
  prompt.sha256 = sha256_hex(record.id + (reversed ? " reversed" : ""));
  return prompt;
}

/// A store in a folder of its own, with the calls of a run in the order a run makes them.
class SmallStudy {
 public:
  explicit SmallStudy(Json plan = two_subset_plan()) : plan_(opened(plan)) { open(); }

  const std::filesystem::path path() const { return folder_.path() / "small.db"; }
  Store& store() { return *store_; }
  Db& db() { return store_->db(); }
  ManualClock& clock() { return clock_; }
  OpenPlan& plan() { return plan_; }

  void open() { store_ = std::make_unique<Store>(open_store(path(), Db::Mode::create), clock_); }
  void close() { store_.reset(); }

  std::int64_t begin(RunInfo info = {}, const Json& published = Json()) {
    info.tool_version = "0.1.0";
    info.host = "test host";
    if (info.command.empty()) info.command = "preval run PLAN";
    return store_->begin_run(plan_, published, info);
  }

  void check(const std::string& subset, SubsetStatus status, const std::string& problem = {}) {
    SubsetCheck check;
    check.group = "suite";
    check.subset = subset;
    check.status = status;
    check.problem = problem;
    if (status != SubsetStatus::missing) check.found_sha256 = sha256_hex("bytes of " + subset);
    store_->record_check(check);
  }

  /// Registers the records of a verified subset and a prompt for each. Returns prompt ids.
  std::vector<std::int64_t> add_records(const std::string& subset,
                                        const std::vector<Record>& records) {
    check(subset, SubsetStatus::ok);
    std::vector<std::int64_t> prompts;
    const std::vector<std::int64_t> ids = store_->put_records("suite", subset, records);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      prompts.push_back(
          store_->put_prompt(ids[i], "none", PromptForm::messages, prompt_of(records[i]).sha256));
    }
    return prompts;
  }

  std::int64_t start(const std::string& arm) {
    store_->arm_status(arm, "started");
    return store_->put_configuration(
        arm, answer_settings(plan_.effective, plan_.effective.arm(arm)), {{"engine", "test"}});
  }

  /// The server said once more who it is, as it does at the end of a run.
  void confirm(const std::string& arm) {
    store_->end_stage(store_->begin_stage(arm, "identity"), "ok");
  }

  void answer(std::int64_t configuration, std::int64_t prompt, const Record& record,
              const Answer& answer, int repeat = 0) {
    const Prompt rendered = prompt_of(record);
    store_->put_prediction(configuration, {prompt, repeat}, {&record, &rendered, "none", repeat},
                           answer);
  }

  void fail(std::int64_t configuration, std::int64_t prompt, const Record& record, int attempt,
            bool final, const Failure& failure) {
    const Prompt rendered = prompt_of(record);
    store_->put_failure(configuration, {prompt, 0}, {&record, &rendered, "none", 0}, attempt, final,
                        failure);
  }

 private:
  TemporaryFolder folder_;
  ManualClock clock_;
  OpenPlan plan_;
  std::unique_ptr<Store> store_;
};

/// The hand-counted case. boolq (targets true, false, true): a answers right, right, wrong; b
/// right, wrong, nothing. massive (targets alarm, play): a wrong, right; b right, right. c was not
/// run.
inline void fill(SmallStudy& study) {
  study.begin();
  const auto boolq = small_records("boolq", QuestionType::noul, {"true", "false"}, {0, 1, 0});
  const auto massive = small_records("massive", QuestionType::choice, {"play", "alarm"}, {1, 0});
  const auto boolq_prompts = study.add_records("boolq", boolq);
  const auto massive_prompts = study.add_records("massive", massive);
  const std::int64_t a = study.start("a");
  study.answer(a, boolq_prompts[0], boolq[0], answer_of({0.9, 0.1}));
  study.answer(a, boolq_prompts[1], boolq[1], answer_of({0.25, 0.75}));
  study.answer(a, boolq_prompts[2], boolq[2], answer_of({0.4, 0.6}));
  study.answer(a, massive_prompts[0], massive[0], answer_of({0.8, 0.2}));
  study.answer(a, massive_prompts[1], massive[1], answer_of({0.5, 0.5}));
  const std::int64_t b = study.start("b");
  study.answer(b, boolq_prompts[0], boolq[0], answer_of({0.7, 0.3}));
  study.answer(b, boolq_prompts[1], boolq[1], answer_of({0.6, 0.4}));
  study.answer(b, massive_prompts[0], massive[0], answer_of({0.1, 0.9}));
  study.answer(b, massive_prompts[1], massive[1], answer_of({0.8, 0.2}));
  Failure failure;
  failure.error_class = "timeout";
  failure.message = "no reply within 600 s";
  study.fail(b, boolq_prompts[2], boolq[2], 4, true, failure);
  study.confirm("a");
  study.confirm("b");
  study.store().arm_status("c", "not run", "terms not accepted");
  study.store().end_run("incomplete", 4);
}

/// For fill_absent: one subset, an exact arm and a top-k arm.
inline Json absent_plan(const std::string& scoring = "suite") {
  Json plan =
      small_plan(Json::array({small_subset("massive", "choice", 4)}),
                 Json::array({small_arm("a", "one", "exact"), small_arm("b", "one", "top")}));
  plan["datasets"][0]["scoring"] = scoring;
  return plan;
}

/// Four top-k answers to "massive" (targets 0, 2, 1, 0 of three) on arm b: a right one without
/// label 2; a wrong one that is its only label; a complete right one; and a wrong one whose only
/// label is the lowest of the list.
inline void fill_absent(SmallStudy& study) {
  study.begin();
  const auto records =
      small_records("massive", QuestionType::choice, {"play", "alarm", "news"}, {0, 2, 1, 0});
  const auto prompts = study.add_records("massive", records);
  const std::int64_t b = study.start("b");
  study.answer(b, prompts[0], records[0], top_answer({{0, -0.2}, {1, -2.0}, {9, -3.0}}, 3));
  study.answer(b, prompts[1], records[1], top_answer({{1, -0.5}, {9, -1.5}}, 3));
  study.answer(b, prompts[2], records[2], top_answer({{1, -0.7}, {0, -1.0}, {2, -2.5}}, 3));
  study.answer(b, prompts[3], records[3], top_answer({{9, -0.1}, {2, -4.0}}, 3));
  study.store().end_run("incomplete", 4);
}

/// Every row of a query, values joined by '|' and rows by line feeds; `null` stands for NULL.
inline std::string rows_of(Db& db, const std::string& sql, std::string_view null = "-") {
  Stmt query(db, sql);
  std::string rows;
  while (query.step()) {
    if (!rows.empty()) rows += '\n';
    for (int i = 0; i < query.columns(); ++i) {
      if (i > 0) rows += '|';
      rows += query.is_null(i) ? std::string(null) : query.text(i);
    }
  }
  return rows;
}

}  // namespace preval::test
