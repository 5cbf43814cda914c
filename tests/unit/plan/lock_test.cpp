#include "plan/lock.h"

#include "base/clock.h"
#include "catch.h"
#include "example_plan.h"
#include "expect_error.h"

using namespace preval;
using namespace preval::test;

namespace {

/// The example study, unlocked, with what tests do to it.
struct Study {
  MemoryFiles files;
  ManualClock clock;
  Json plan = example_study(files);

  OpenPlan open() { return open_plan(files, "study/plan.json"); }
  bool lock() { return lock_plan(files, clock, open(), "preval 0.1.0", "c0ffee"); }
  void edit(const char* patch) {
    plan = plan.patch(Json::parse(patch));
    files.content["study/plan.json"] = plan.dump();
  }
  std::string& lock_text() { return files.content["study/plan.lock.json"]; }
  std::string& ledger() { return files.content["study/plan.deviations.jsonl"]; }
  void deviate(const std::string& field, const Json& from, const Json& to) {
    const OpenPlan now = open();
    Deviation entry;
    entry.number = static_cast<int>(now.deviations.size()) + 1;
    entry.field = field;
    entry.from = from;
    entry.to = to;
    entry.why = "why";
    entry.at = "2026-09-24T12:00:00Z";
    entry.previous = now.ledger_head.empty() ? now.sha256 : now.ledger_head;
    entry.sha256 = entry_sha256(entry);
    ledger() += ledger_line(entry);
  }
};

}  // namespace

TEST_CASE("lock and ledger stand beside the plan") {
  CHECK(lock_path("prereg/quick.start.json") == "prereg/quick.start.lock.json");
  CHECK(ledger_path("quickstart.json") == "quickstart.deviations.jsonl");
}

TEST_CASE("paths of a plan are resolved against its folder") {
  OpenPlan plan;
  plan.directory = "prereg";
  CHECK(plan.resolve("../datasets/x") == "datasets/x");
  CHECK(plan.resolve("prompts/p.json") == "prereg/prompts/p.json");
}

TEST_CASE("an unlocked plan opens as it stands") {
  Study study;
  const OpenPlan plan = study.open();
  CHECK_FALSE(plan.lock.has_value());
  CHECK(plan.sha256 == canonical_sha256(study.plan));
  CHECK(plan.effective_sha256 == plan.sha256);
  CHECK(plan.ledger_head.empty());
  CHECK(check_lock(study.files, plan).empty());
}

TEST_CASE("a lock holds digests, time, tool, commit and the plan itself") {
  Study study;
  CHECK(study.lock());
  const Json lock = parse_json(study.lock_text(), "lock");
  CHECK(lock["preval_lock"] == 1);
  CHECK(lock["plan"]["name"] == "example");
  CHECK(lock["plan"]["sha256"] == canonical_sha256(study.plan));
  CHECK(lock["files"].dump() == R"({"prompts/p.json":")" + sha256_hex("wording") +
                                    R"(","manifest.json":")" +
                                    sha256_hex(study.files.content["study/manifest.json"]) +
                                    R"(","published.json":")" + sha256_hex("figures") + R"("})");
  CHECK(lock["locked_at"] == "2023-11-14T22:13:20Z");
  CHECK(lock["tool"] == "preval 0.1.0");
  CHECK(lock["git_commit"] == "c0ffee");
  CHECK(lock["plan_json"] == study.plan);
  CHECK(study.lock_text().back() == '\n');

  const OpenPlan plan = study.open();
  CHECK(plan.lock->locked_at == "2023-11-14T22:13:20Z");
  CHECK(check_lock(study.files, plan).empty());
}

TEST_CASE("locking again is a no-op while nothing changed") {
  Study study;
  study.lock();
  const std::string before = study.lock_text();
  study.clock.sleep(std::chrono::hours(1));
  study.files.content["study/plan.json"] = study.plan.dump(4);  // other white space, same plan
  CHECK_FALSE(study.lock());
  CHECK(study.lock_text() == before);
}

TEST_CASE("locking a changed plan is refused with the changed fields") {
  Study study;
  study.lock();
  const std::string before = study.lock_text();
  study.edit(R"([{"op":"replace","path":"/repeats","value":3},
                 {"op":"replace","path":"/backends/0/kv_cache","value":"q8_0"}])");
  const std::string text = error_of(ErrorKind::drift, [&] { study.lock(); });
  check_contains(text, "study/plan.json changed since it was locked at 2023-11-14T22:13:20Z");
  check_contains(text, "/backends/0/kv_cache: registered \"f16\", found \"q8_0\"");
  check_contains(text, "/repeats: registered 2, found 3");
  CHECK(study.lock_text() == before);

  const auto drifts = check_lock(study.files, study.open());
  REQUIRE(drifts.size() == 2);
  CHECK(drifts[1].field == "/repeats");
}

TEST_CASE("files that the plan names must have their registered digests") {
  Study study;
  study.files.content["study/prompts/p.json"] = "other wording";
  study.files.content.erase("study/published.json");
  const std::string text = error_of(ErrorKind::drift, [&] { study.lock(); });
  check_contains(text, "prompts/p.json: registered " + sha256_hex("wording") + ", found " +
                           sha256_hex("other wording"));
  check_contains(text, "published.json: registered " + sha256_hex("figures") + ", found (absent)");
  CHECK_FALSE(study.files.exists("study/plan.lock.json"));

  const auto drifts = check_lock(study.files, study.open());
  REQUIRE(drifts.size() == 2);
  CHECK(drifts[0].field == "prompts/p.json");
}

TEST_CASE("an edited lock is drift") {
  const auto error_after = [](const std::string& from, const std::string& to) {
    Study study;
    study.lock();
    const std::size_t at = study.lock_text().find(from);
    REQUIRE(at != std::string::npos);
    study.lock_text().replace(at, from.size(), to);
    return error_of(ErrorKind::drift, [&] { study.open(); });
  };
  check_contains(error_after("\"repeats\": 2", "\"repeats\": 3"),
                 "the lock was edited: /plan/sha256");
  check_contains(error_after(sha256_hex("wording"), kDigest), "the lock was edited: /files says");
  check_contains(error_after("\"locked_at\"", "\"lockedat\""), "/lockedat: unknown key");
  check_contains(error_after("\"tool\": \"preval 0.1.0\",", ""), "/tool: required key");
  check_contains(error_after("{", "{{"), "plan.lock.json");
  check_contains(error_after("\"locked_at\": \"2", "\"locked_at\": \"x"),
                 "/locked_at is no UTC time");
  check_contains(
      error_after("\"files\": {", "\"files\": {\"more.json\": \"" + std::string(kDigest) + "\", "),
      "/files names more.json, the plan does not");
  check_contains(error_after("\"plan\": {\n    \"name\": \"", "\"plan\": {\n    \"name\": \"x"),
                 "/plan/name says x");

  Study study;
  study.lock();
  study.lock_text().replace(study.lock_text().find("\"preval_lock\": 1"), 16, "\"preval_lock\": 9");
  check_contains(error_of(ErrorKind::usage, [&] { study.open(); }), "lock format 9 is not known");
}

TEST_CASE("the effective plan is the locked plan plus the ledger") {
  Study study;
  study.lock();
  study.deviate("/backends/1/k", 32, 20);
  study.deviate("/arms/0/boot_limit_s", 90, 120);
  const OpenPlan plan = study.open();
  CHECK(plan.effective.backend("top32").k == 20);
  CHECK(plan.effective.arm("a").boot_limit_s == 120);
  CHECK(plan.sha256 == canonical_sha256(study.plan));
  CHECK(plan.effective_sha256 != plan.sha256);
  CHECK(plan.ledger_head == plan.deviations[1].sha256);
  CHECK(check_lock(study.files, plan).empty());
}

TEST_CASE("a registered deviation may pin another file") {
  Study study;
  study.lock();
  study.files.content["study/prompts/p.json"] = "better wording";
  CHECK(check_lock(study.files, study.open()).size() == 1);
  study.deviate("/prompt/sha256", sha256_hex("wording"), sha256_hex("better wording"));
  CHECK(check_lock(study.files, study.open()).empty());
}

TEST_CASE("deviations must leave a valid plan") {
  Study study;
  study.lock();
  study.deviate("/backends/1/k", 32, 0);
  check_contains(error_of(ErrorKind::usage, [&] { study.open(); }),
                 "study/plan.json with study/plan.deviations.jsonl: /backends/1/k: must be from 1 "
                 "to 16777216");
}

TEST_CASE("a ledger needs its lock, and its plan") {
  Study study;
  study.lock();
  study.deviate("/repeats", 2, 3);
  const std::string lock = study.lock_text();
  study.files.content.erase("study/plan.lock.json");
  check_contains(error_of(ErrorKind::drift, [&] { study.open(); }),
                 "deviations of a plan that has no lock");

  // A plan that changed since its lock is taken as it stands, without the ledger.
  study.lock_text() = lock;
  study.edit(R"([{"op":"replace","path":"/repeats","value":7}])");
  const OpenPlan plan = study.open();
  CHECK(plan.effective.repeats == 7);
  CHECK(plan.effective_sha256 == plan.sha256);
  CHECK(check_lock(study.files, plan).size() == 1);
}

TEST_CASE("plans that cannot be read are usage errors") {
  Study study;
  check_contains(error_of(ErrorKind::usage, [&] { open_plan(study.files, "study/none.json"); }),
                 "none.json");
  study.files.content["study/plan.json"] = "{";
  check_contains(error_of(ErrorKind::usage, [&] { study.open(); }), "study/plan.json");
  study.files.content["study/plan.json"] = R"({"name":"x","name":"y"})";
  check_contains(error_of(ErrorKind::usage, [&] { study.open(); }), "name");
}

TEST_CASE("two groups may share a manifest") {
  Study study;
  const auto named = named_files(study.open().effective);
  REQUIRE(named.size() == 3);
  CHECK(named[0].what == "prompt");
  CHECK(named[1].what == "manifest");
  CHECK(named[2].what == "published");
}
