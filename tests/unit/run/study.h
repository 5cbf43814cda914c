#pragma once
// A study of its own in a folder of its own, for tests of whole runs: two subsets of four records,
// one small prompt file, and two arms on whatever backends a test gives them.
#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "../base/temporary_folder.h"
#include "../base/thrown.h"
#include "base/sha256.h"
#include "catch.h"
#include "run/pipeline.h"

namespace preval::test {

/// Hears everything and keeps the notices.
class Listener final : public RunEvents {
 public:
  void stage_started(std::string_view, std::string_view stage) override {
    if (on_stage) on_stage(stage);
  }
  void stage_ended(std::string_view, std::string_view stage, std::string_view outcome, double,
                   std::string_view detail) override {
    stages.push_back(fmt::format("{} {}: {}", stage, outcome, detail));
  }
  void progressed(const Progress& progress) override {
    last = progress;
    if (on_progress) on_progress(progress);
  }
  void subset_done(const Progress&, std::int64_t, std::int64_t) override { ++subsets; }
  void notice(std::string_view text) override { notices.emplace_back(text); }
  void detail(std::string_view text) override { details.emplace_back(text); }

  std::vector<std::string> stages, notices, details;
  Progress last;
  int subsets = 0;
  std::function<void(const Progress&)> on_progress;
  std::function<void(std::string_view)> on_stage;
};

class Level final : public Interrupt {
 public:
  int level() const override { return asked; }
  int asked = 0;
};

/// Two simulated arms, "a" and "b", unless plan() is changed before save() and lock().
class Study {
 public:
  Study() {
    std::filesystem::create_directories(folder_.path() / "prereg");
    write("prereg/prompt.json",
          R"json({"name":"test","opening":"Decide.","question":"{id}: {instructions}",
      "alternative":"{label}: {name} ({description})","alternative_bare":"{label}: {name}",
      "verdict":"{label}: {description}","verdict_bare":"{label}","closing":"One of {label_list}."})json");
    Json manifest = Json::object();
    for (const std::string subset : {"one", "two"}) {
      const std::string text = records(subset, 4);
      write("data/" + subset + "/all.jsonl", text);
      manifest[subset] = {
          {"dataset_sha256", sha256_hex(text)},    {"count", 4},           {"families", 2},
          {"labels", {{"True", 2}, {"False", 2}}}, {"license", "CC0 1.0"}, {"source", "test"}};
    }
    write("prereg/manifest.json", manifest.dump());
    plan_ = {{"preval_plan", 1},
             {"name", "test"},
             {"version", "1"},
             {"authors", {"A"}},
             {"hypotheses", Json::array()},
             {"datasets",
              {{{"id", "suite"},
                {"title", "Test"},
                {"scoring", "own"},
                {"data", "../data"},
                {"manifest", "manifest.json"},
                {"manifest_sha256", sha256_hex(manifest.dump())},
                {"variants", {"none"}},
                {"smoke", {{"records", 1}, {"concurrency", 1}}},
                {"subsets", Json::array()}}}},
             {"prompt",
              {{"file", "prompt.json"},
               {"sha256", sha256_hex(read("prereg/prompt.json"))},
               {"reasoning", false},
               {"state", "ascii"}}},
             {"checkpoints",
              {{{"id", "model"},
                {"name", "Model"},
                {"revision", "1"},
                {"weights_dtype", "none"},
                {"license", "none"},
                {"template", "chat"},
                {"files", Json::array()}}}},
             {"backends", {backend("exact", 1), backend("other", 2)}},
             {"arms", {arm("a", "exact"), arm("b", "other")}}};
    for (const auto& [subset, facts] : manifest.items()) {
      plan_["datasets"][0]["subsets"].push_back({{"id", subset},
                                                 {"type", "noul"},
                                                 {"records", 4},
                                                 {"families", 2},
                                                 {"sha256", facts["dataset_sha256"]}});
    }
    save();
  }

  static Json backend(const std::string& id, int seed) {
    return {
        {"id", id},
        {"kind", "simulated"},
        {"read", "exact"},
        {"context", 2048},
        {"slots", 1},
        {"concurrency", 2},
        {"kv_cache", "f16"},
        {"simulation", {{"accuracy", 0.75}, {"sharpness", 2.0}, {"missing", 0.0}, {"seed", seed}}}};
  }
  /// A backend that is found at `url` and read exactly.
  static Json served(const std::string& id, const std::string& kind, const std::string& url) {
    return {{"id", id},
            {"kind", kind},
            {"read", "exact"},
            {"url", url},
            {"context", 2048},
            {"slots", 1},
            {"concurrency", 1},
            {"kv_cache", ""},
            {"timeouts", {{"connect_s", 5}, {"first_byte_s", 5}, {"total_s", 10}}}};
  }
  /// Leaves one arm, "a", on this backend.
  void only(const Json& backend_spec) {
    plan_["backends"] = Json::array({backend_spec});
    plan_["arms"] = Json::array({arm("a", backend_spec["id"].get<std::string>())});
    save();
  }

  static Json arm(const std::string& id, const std::string& backend) {
    return {{"id", id},
            {"checkpoint", "model"},
            {"backend", backend},
            {"confirmatory", true},
            {"boot_limit_s", 5}};
  }

  static std::string records(const std::string& subset, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += fmt::format(
          R"({{"id": "{0}-{1}", "split": "s", "domain": "{0}", "family": "f{2}", "source_family": "f{2}", )"
          R"("input": {{"state": "text {1}", "questions": {{"decision": {{"type": "noul", "instructions": )"
          R"("Is it?", "criteria": {{"false": "no", "true": "yes"}}}}}}}}, "reference": {{"target": {3}}}}})"
          "\n",
          subset, i, i / 2, i % 2 == 0 ? "true" : "false");
    }
    return text;
  }

  /// Choice questions with so many options each, a family each; the first option is right.
  static std::string choices(const std::string& subset, const std::vector<int>& widths) {
    std::string text;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      Json criteria = Json::object();
      for (int o = 0; o < widths[i]; ++o) criteria[fmt::format("o{}", o)] = nullptr;
      text +=
          Json{{"id", fmt::format("{}-{}", subset, i)},
               {"family", fmt::format("f{}", i)},
               {"input",
                {{"state", fmt::format("text {}", i)},
                 {"questions",
                  {{"decision",
                    {{"type", "choice"}, {"instructions", "Which?"}, {"criteria", criteria}}}}}}},
               {"reference", {{"target", "o0"}}}}
              .dump() +
          "\n";
    }
    return text;
  }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) { return files_.read(folder_.path() / name); }
  void save() { write("prereg/plan.json", plan_.dump(1)); }
  OpenPlan open() { return open_plan(files_, folder_.path() / "prereg/plan.json"); }
  void lock() { lock_plan(files_, clock_, open(), "test", ""); }

  RunResult run(RunOptions options = {}) {
    if (options.logs.empty()) options.logs = folder_.path() / "logs";
    if (options.root.empty()) options.root = folder_.path();
    const OpenPlan plan = open();
    gate(files_, plan, options.exploratory);
    check_selection(plan.effective, options);
    Store store(open_store(db_path(), Db::Mode::create), *clock);
    const RunSeams seams{files_, *clock, listener, interrupt, [] { return make_curl_transport(); }};
    RunInfo info;
    info.tool_version = "test";
    info.simulated = plan.effective.backends.front().kind == "simulated";
    info.exploratory = options.exploratory;
    info.limit = options.limit;
    info.shard = options.shard;
    return run_pipeline(seams, store, plan, Json(), options, info);
  }

  /// Gives a subset these records, and registers them.
  void put_records(const std::string& subset, const std::string& type, const std::string& text,
                   int count, int families) {
    write("data/" + subset + "/all.jsonl", text);
    Json manifest = Json::parse(read("prereg/manifest.json"));
    manifest[subset]["dataset_sha256"] = sha256_hex(text);
    manifest[subset]["count"] = count;
    manifest[subset]["families"] = families;
    manifest[subset].erase("labels");
    write("prereg/manifest.json", manifest.dump());
    Json& group = plan_["datasets"][0];
    group["manifest_sha256"] = sha256_hex(manifest.dump());
    for (Json& each : group["subsets"]) {
      if (each["id"] != subset) continue;
      each["type"] = type;
      each["sha256"] = sha256_hex(text);
      each["records"] = count;
      each["families"] = families;
    }
    save();
  }

  const std::filesystem::path& folder() const { return folder_.path(); }
  std::filesystem::path db_path() const { return folder_.path() / db_name; }
  std::string value(const std::string& sql) {
    Db db = open_store(db_path(), Db::Mode::read_only);
    Stmt query(db, sql);
    REQUIRE(query.step());
    return query.text(0);
  }

  Json& plan() { return plan_; }
  SystemFiles& files() { return files_; }
  Listener listener;
  Level interrupt;
  std::string db_name = "results.db";  ///< the store that is run into and asked

 private:
  TemporaryFolder folder_;
  SystemFiles files_;
  ManualClock clock_;

 public:
  Clock* clock = &clock_;  ///< sleeping on it takes no time, unless it is replaced by a real one

 private:
  Json plan_;
};

}  // namespace preval::test
