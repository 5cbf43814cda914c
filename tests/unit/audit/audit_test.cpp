#include "audit/audit.h"

#include "catch.h"
#include "plan/deviation.h"
#include "plan/example_plan.h"
#include "plan/expect_error.h"
#include "plan/lock.h"

using namespace preval;
using namespace preval::test;

namespace {

/// The example study, locked, with its checkpoint files.
struct Study {
  MemoryFiles files;
  ManualClock clock;
  Json plan = example_study(files);

  Study() {
    const Json& weights = plan["checkpoints"][0]["files"];
    for (const Json& file : weights) {
      const std::string name = file["name"].get<std::string>();
      files.content["weights/" + name] = name;
    }
    plan["checkpoints"][0]["files"][0]["sha256"] = sha256_hex("small.gguf");
    plan["checkpoints"][0]["files"][1]["sha256"] = sha256_hex("more.gguf");
    files.content["study/plan.json"] = plan.dump();
    lock_plan(files, clock, open_plan(files, "study/plan.json"), "preval 0.1.0", "");
  }
  AuditResult audit(const AuditScope& scope = {std::nullopt, "weights"}) {
    return audit_plan(files, "study/plan.json", scope);
  }
};

}  // namespace

TEST_CASE("an audit of an unchanged study finds nothing") {
  Study study;
  const AuditResult result = study.audit();
  CHECK(result.findings.empty());
  CHECK(result.unchecked.empty());
  CHECK(result.checked == 1 + 3 + 3 + 2);  // lock, named files, data, checkpoint files
}

TEST_CASE("what is not here is named as unchecked") {
  Study study;
  study.files.content.erase("data/boolq/all.jsonl");
  study.files.content.erase("weights/more.gguf");
  const AuditResult result = study.audit();
  CHECK(result.findings.empty());
  REQUIRE(result.unchecked.size() == 2);
  check_contains(result.unchecked[0], "data of subset boolq");
  check_contains(result.unchecked[1], "file more.gguf of checkpoint small: not there");
  check_contains(study.audit({}).unchecked.back(), "no folder was given");
}

TEST_CASE("every kind of drift is found, with field, registered and found") {
  struct Drift {
    std::string path, bytes;  // what somebody wrote where
    std::string what, field, registered, found;
  };
  const Drift table[] = {
      {"study/prompts/p.json", "new", "prompt", "prompts/p.json", sha256_hex("wording"),
       sha256_hex("new")},
      {"study/published.json", "new", "published", "published.json", sha256_hex("figures"),
       sha256_hex("new")},
      {"weights/small.gguf", "new", "checkpoint", "weights/small.gguf", sha256_hex("small.gguf"),
       sha256_hex("new")},
      {"data/massive/all.jsonl", kStars, "data", "data/massive/all.jsonl", sha256_hex(kMassive),
       sha256_hex(kStars)},
  };
  for (const Drift& drift : table) {
    Study study;
    study.files.content[drift.path] = drift.bytes;
    const AuditResult result = study.audit();
    REQUIRE(result.findings.size() == 1);
    const AuditFinding& finding = result.findings[0];
    CHECK(finding.what == drift.what);
    CHECK(finding.field == drift.field);
    CHECK(finding.registered == drift.registered);
    CHECK(finding.found.starts_with(drift.found));
    CHECK(finding.first_row == (drift.what == "data" ? "line 1" : ""));
  }
}

TEST_CASE("a changed plan is named field by field") {
  Study study;
  study.plan["repeats"] = 9;
  study.files.content["study/plan.json"] = study.plan.dump();
  const AuditResult result = study.audit();
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].what == "plan");
  CHECK(result.findings[0].field == "/repeats");
  CHECK(result.findings[0].registered == "2");
  CHECK(result.findings[0].found == "9");
}

TEST_CASE("a missing lock is drift: nobody knows what was registered") {
  Study study;
  study.files.content.erase("study/plan.lock.json");
  const AuditResult result = study.audit();
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].what == "lock");
  CHECK(result.findings[0].found == "none: not locked yet (preval lock study/plan.json)");
}

TEST_CASE("an edited lock or ledger is found, and stops the audit there") {
  Study study;
  std::string& lock = study.files.content["study/plan.lock.json"];
  lock.replace(lock.find("\"repeats\": 2"), 12, "\"repeats\": 4");
  AuditResult result = study.audit();
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].what == "lock");
  check_contains(result.findings[0].found, "the lock was edited");
  CHECK(result.unchecked.size() == 1);

  Study other;
  other.files.content["study/plan.deviations.jsonl"] = "{}\n";
  result = other.audit();
  REQUIRE(result.findings.size() == 1);
  check_contains(result.findings[0].found, "plan.deviations.jsonl, line 1");
}

TEST_CASE("a manifest that differs from the plan, or cannot be read, is found") {
  Study study;
  std::string& manifest = study.files.content["study/manifest.json"];
  manifest.replace(manifest.find("\"families\":2"), 12, "\"families\":1");
  AuditResult result = study.audit();
  REQUIRE(result.findings.size() == 2);
  CHECK(result.findings[0].what == "manifest");
  CHECK(result.findings[0].field == "manifest.json");
  CHECK(result.findings[1].field == "/datasets/0/subsets/0/families");
  CHECK(result.findings[1].registered == "2");
  CHECK(result.findings[1].found == "1");

  manifest = "[]";
  study.files.content["study/prompts/p.json"] = "new";
  result = study.audit();
  REQUIRE(result.findings.size() == 3);
  CHECK(result.findings[1].field == "manifest.json");
  check_contains(result.findings[2].found, "study/manifest.json: expected an object");
}

TEST_CASE("plans that cannot be read are errors, not findings") {
  Study study;
  study.files.content["study/plan.json"] = "{";
  error_of(ErrorKind::usage, [&] { study.audit(); });
  study.files.content.erase("study/plan.json");
  error_of(ErrorKind::usage, [&] { study.audit(); });
}
