#include "plan/deviate.h"

#include "base/clock.h"
#include "catch.h"
#include "example_plan.h"
#include "expect_error.h"

using namespace preval;
using namespace preval::test;

namespace {

/// The example study, locked.
struct Study {
  MemoryFiles files;
  ManualClock clock;
  Json plan = example_study(files);

  Study() { lock_plan(files, clock, open(), "preval 0.1.0", "c0ffee"); }
  OpenPlan open() { return open_plan(files, "study/plan.json"); }
  std::vector<Deviation> deviate(const std::vector<Change>& changes,
                                 const std::string& why = "why") {
    return preval::deviate(files, clock, open(), changes, why);
  }
  std::string error(const std::vector<Change>& changes, const std::string& why = "why",
                    ErrorKind kind = ErrorKind::usage) {
    const std::string before = ledger();
    const std::string text = error_of(kind, [&] { deviate(changes, why); });
    CHECK(ledger() == before);
    return text;
  }
  std::string ledger() {
    const std::string path = "study/plan.deviations.jsonl";
    return files.exists(path) ? files.content[path] : std::string();
  }
};

}  // namespace

TEST_CASE("a deviation is an entry of a chain that begins at the locked plan") {
  Study study;
  const auto first = study.deviate({{"/arms/0/boot_limit_s", 90, 1500}}, "it compiles first");
  REQUIRE(first.size() == 1);
  CHECK(first[0].previous == study.open().lock->plan_sha256);
  const auto second = study.deviate({{"/arms/0/boot_limit_s", 1500, 2000}});
  CHECK(second[0].number == 2);
  CHECK(second[0].previous == first[0].sha256);

  const OpenPlan plan = study.open();
  CHECK(plan.deviations.size() == 2);
  CHECK(plan.deviations[0].why == "it compiles first");
  CHECK(plan.ledger_head == second[0].sha256);
  CHECK(plan.effective.arms[0].boot_limit_s == 2000);
  CHECK(plan.json["arms"][0]["boot_limit_s"] == 90);
  CHECK(check_lock(study.files, plan).empty());
}

TEST_CASE("what only makes sense together is written together") {
  Study study;
  const Change read{"/backends/0/read", "exact", "top-k"}, k{"/backends/0/k", nullptr, 32};
  check_contains(study.error({read}), "need k");
  check_contains(study.error({k}), "exact reads have no k");
  const auto entries =
      study.deviate({read, k, {"/backends/0/raw_probs", 32, nullptr}}, "no ids here");
  CHECK(entries.size() == 3);
  CHECK(entries[2].previous == entries[1].sha256);
  const OpenPlan plan = study.open();
  CHECK(plan.effective.backends[0].read == ReadMode::top_k);
  CHECK(plan.effective.backends[0].k == 32);
}

TEST_CASE("what is not so, or changes nothing, is no deviation, and writes nothing") {
  Study study;
  check_contains(study.error({{"/arms/0/boot_limit_s", 91, 1500}}),
                 "/arms/0/boot_limit_s is 90 now, not 91");
  check_contains(study.error({{"/arms/0/boot_limit_s", 90, 90}}), "is 90 already");
  check_contains(study.error({{"/arms/7/boot_limit_s", 90, 91}}), "names nothing in the plan");
  check_contains(study.error({{"/arms/0/bootlimit", nullptr, 91}}), "bootlimit");
  check_contains(study.error({{"arms", 90, 91}}), "no JSON pointer");
  check_contains(study.error({{"/arms/~2", 90, 91}}), "no JSON pointer");
  check_contains(study.error({{"", 90, 91}}), "no JSON pointer");
  check_contains(study.error({{"/name", "example", "other"}}), "cannot deviate");
  check_contains(study.error({{"/arms/0/backend", "exact", "nowhere"}}), "nowhere");
  check_contains(study.error({{"/repeats", 2, 3}}, " \n"), "needs a reason");
  check_contains(study.error({{"/repeats", 2, 3}}, "\xFF"), "not valid UTF-8");
  // Of several changes none is written when one is refused.
  check_contains(study.error({{"/repeats", 2, 3}, {"/repeats", 2, 4}}), "/repeats is 3 now, not 2");
}

TEST_CASE("a field that is misspelt is named, not said to be null") {
  Study study;
  check_contains(study.error({{"/arms/0/boot_limit", 90, 100}}),
                 "the plan has no /arms/0/boot_limit: did you mean boot_limit_s?");
  check_contains(study.error({{"/arms/0/zzz", 1, 2}}), "the plan has no /arms/0/zzz");
}

TEST_CASE("only a locked plan that is as it was locked can be deviated from") {
  MemoryFiles files;
  ManualClock clock;
  example_study(files);
  const OpenPlan open = open_plan(files, "study/plan.json");
  check_contains(error_of(ErrorKind::usage,
                          [&] {
                            deviate(files, clock, open, {{"/repeats", 2, 3}}, "why");
                          }),
                 "study/plan.json is not locked");

  Study study;
  study.plan["repeats"] = 5;
  study.files.content["study/plan.json"] = study.plan.dump();
  check_contains(study.error({{"/repeats", 5, 3}}, "why", ErrorKind::drift), "/repeats");
}
