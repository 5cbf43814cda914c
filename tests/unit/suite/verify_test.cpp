#include "suite/verify.h"

#include <fmt/format.h>

#include "catch.h"
#include "plan/example_plan.h"
#include "plan/expect_error.h"
#include "skip.h"

using namespace preval;
using namespace preval::test;

namespace {

struct Study {
  MemoryFiles files;
  Json plan = example_study(files);
  std::vector<std::string> warnings;

  VerifyResult verify(const std::optional<std::filesystem::path>& data = std::nullopt) {
    files.content["study/plan.json"] = plan.dump();
    return verify_data(files, open_plan(files, "study/plan.json"), data,
                       [&](const std::string& text) { warnings.push_back(text); });
  }
  std::string& boolq() { return files.content["data/boolq/all.jsonl"]; }
};

void replace(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

TEST_CASE("data that is what was registered is ok") {
  Study study;
  const VerifyResult result = study.verify();
  CHECK(result.ok == 3);
  CHECK(result.missing == 0);
  CHECK(result.mismatch == 0);
  REQUIRE(result.subsets.size() == 3);
  const SubsetCheck& boolq = result.subsets[0];
  CHECK(boolq.group == "suite");
  CHECK(boolq.subset == "boolq");
  CHECK(boolq.path == "data/boolq/all.jsonl");
  CHECK(boolq.found_sha256 == boolq.registered_sha256);
  CHECK(boolq.found_records == 3);
  CHECK(boolq.found_families == 2);
  CHECK(boolq.problem.empty());
  CHECK(result.subsets[2].path == "study/own/stars/all.jsonl");
}

TEST_CASE("verified records are handed over, others are not") {
  Study study;
  study.files.content["data/massive/all.jsonl"] += "\n";
  std::vector<std::string> seen;
  verify_data(study.files, open_plan(study.files, "study/plan.json"), std::nullopt, {},
              [&](const DatasetGroup& group, const Subset& subset, std::vector<Record>&& records) {
                seen.push_back(group.id + "/" + subset.id + " " + std::to_string(records.size()));
              });
  CHECK(seen == std::vector<std::string>{"suite/boolq 3", "own/stars 1"});
}

TEST_CASE("verifying ends at the next record or subset when it is asked to stop") {
  Study study;
  study.files.content["study/plan.json"] = study.plan.dump();
  const OpenPlan plan = open_plan(study.files, "study/plan.json");
  int asked = 0;
  const auto records = [](const DatasetGroup&, const Subset&, std::vector<Record>&&) {};
  verify_data(study.files, plan, std::nullopt, {}, records, [&] { return ++asked < 0; });
  const int all = asked;
  CHECK(all >= 3 + 6);  // subsets and records
  for (int at = 1; at <= all; ++at) {
    int subsets = 0;
    asked = 0;
    const auto count = [&](const DatasetGroup&, const Subset&, std::vector<Record>&&) {
      ++subsets;
    };
    const std::string text = error_of(ErrorKind::interrupted, [&] {
      verify_data(study.files, plan, std::nullopt, {}, count, [&] { return ++asked == at; });
    });
    check_contains(text, "stopped by the user while the data was verified");
    CHECK(asked == at);
    CHECK(subsets < 3);
  }
}

TEST_CASE("--data takes the place of every group's folder") {
  Study study;
  study.files.content["elsewhere/boolq/all.jsonl"] = kBoolq;
  const VerifyResult result = study.verify("elsewhere");
  CHECK(result.ok == 1);
  CHECK(result.missing == 2);
  CHECK(result.subsets[1].status == SubsetStatus::missing);
  CHECK(result.subsets[1].problem == "no file elsewhere/massive/all.jsonl");
  CHECK(result.subsets[1].found_sha256.empty());
}

TEST_CASE("one flipped byte is a mismatch that still counts") {
  Study study;
  replace(study.boolq(), "rains", "rainz");
  const VerifyResult result = study.verify();
  CHECK(result.mismatch == 1);
  CHECK(result.subsets[0].status == SubsetStatus::mismatch);
  CHECK(result.subsets[0].problem == "other bytes than registered");
  CHECK(result.subsets[0].found_sha256 == sha256_hex(study.boolq()));
  CHECK(result.subsets[0].found_records == 3);
}

TEST_CASE("H1: CRLF line ends are named, and only they") {
  Study study;
  replace(study.boolq(), "\n", "\r\n");
  const SubsetCheck check = study.verify().subsets[0];
  CHECK(check.status == SubsetStatus::mismatch);
  CHECK(check.problem == "only line ends differ");
  CHECK(check.found_records == 3);
  CHECK(check.found_families == 2);

  replace(study.boolq(), "rains", "rainz");
  CHECK(study.verify().subsets[0].problem == "other bytes than registered");
}

TEST_CASE("H3: a byte order mark is a mismatch with a warning: the byte hash decides") {
  Study study;
  study.boolq().insert(0, "\xEF\xBB\xBF");
  const SubsetCheck check = study.verify().subsets[0];
  CHECK(check.status == SubsetStatus::mismatch);
  CHECK(check.problem == "only a byte order mark differs");
  CHECK(check.found_records == 3);
  REQUIRE(study.warnings.size() == 1);
  check_contains(study.warnings[0], "data/boolq/all.jsonl");
}

TEST_CASE("broken files are mismatches with the place of the error") {
  Study study;
  study.boolq().resize(study.boolq().size() - 20);
  SubsetCheck check = study.verify().subsets[0];
  CHECK(check.status == SubsetStatus::mismatch);
  check_contains(check.problem,
                 "other bytes than registered; data/boolq/all.jsonl, line 3: torn last line");
  check_contains(check.problem, "; 2 records, registered 3; 1 families, registered 2");
  CHECK(check.first_bad_line == 3);
  CHECK(check.found_records == 2);

  study.boolq() = kBoolq + kBoolq;
  check = study.verify().subsets[0];
  check_contains(check.problem, "line 4: record \"q1\": its id stands already in line 1");
  CHECK(check.first_bad_line == 4);

  study.files.unreadable.insert("data/boolq/all.jsonl");
  check = study.verify().subsets[0];
  CHECK(check.status == SubsetStatus::mismatch);
  check_contains(check.problem, "Permission denied");
}

TEST_CASE("counts, families and types are checked even where the digest is right") {
  Study study;
  Json& subsets = study.plan["datasets"][0]["subsets"];
  subsets[0]["records"] = 5;
  subsets[0]["families"] = 3;
  subsets[1]["type"] = "noul";
  const VerifyResult result = study.verify();
  CHECK(result.mismatch == 2);
  CHECK(result.subsets[0].problem == "3 records, registered 5; 2 families, registered 3");
  CHECK(result.subsets[1].problem ==
        "line 1: record \"m1\" is a choice question, registered is noul");
  CHECK(result.subsets[1].first_bad_line == 1);
}

TEST_CASE("several problems of one file are all named") {
  Study study;
  study.plan["datasets"][0]["subsets"][0]["type"] = "score";
  study.boolq() += "{torn";
  const SubsetCheck check = study.verify().subsets[0];
  check_contains(check.problem, "line 1: record \"q1\" is a noul question");
  check_contains(check.problem, "line 4: torn last line");
  CHECK(check.first_bad_line == 1);
}

TEST_CASE("questions that are too wide for reads by token are no mismatch, and are named") {
  Study study;
  const auto put = [&](const std::vector<int>& widths) {
    std::string text;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      std::string options;
      for (int o = 0; o < widths[i]; ++o)
        options += fmt::format("{}\"o{}\":null", o > 0 ? "," : "", o);
      text += fmt::format(
          R"({{"id":"m-{}","family":"f{}","input":{{"state":"s","questions":{{"decision":)"
          R"({{"type":"choice","instructions":"Which?","criteria":{{{}}}}}}}}},)"
          R"("reference":{{"target":"o1"}}}})"
          "\n",
          i, i, options);
    }
    study.files.content["data/massive/all.jsonl"] = text;
    Json& subset = study.plan["datasets"][0]["subsets"][1];
    subset["sha256"] = sha256_hex(text);
    subset["records"] = subset["families"] = widths.size();
  };
  const auto check = [&](const std::vector<int>& widths, const std::string& note) {
    put(widths);
    const VerifyResult result = study.verify();
    INFO(result.subsets[1].problem);
    CHECK(result.subsets[1].status == SubsetStatus::ok);
    CHECK(result.ok == 3);
    CHECK(result.subsets[1].note == note);
    CHECK(result.subsets[0].note.empty());
  };
  check({2, 26}, "");
  check({26, 27},
        "1 question has 27 options, reads by token take at most 26 (record m-1, question "
        "decision)");
  check(
      {255, 2, 40},
      "2 questions have up to 255 options, reads by token take at most 26 (the first: record m-0, "
      "question decision)");
  // Where every arm takes what its server takes, there is nothing to say.
  for (Json& backend : study.plan["backends"]) {
    backend["kind"] = "simulated";
    backend["read"] = "native";
    for (const char* key : {"server", "k", "raw_probs", "url"}) backend.erase(key);
  }
  check({255, 2, 40}, "");
}

TEST_CASE("of the public suite the subsets that are here are ok") {
  const auto shared = shared_data();
  if (!shared) return skip_test("no shared data: public subsets not verified");
  SystemFiles files;
  const OpenPlan plan =
      open_plan(files, std::filesystem::path(PREVAL_SOURCE_DIR) / "prereg/public-local.json");
  const VerifyResult result = verify_data(files, plan, *shared / "suite", {});
  CHECK(result.ok == 6);
  CHECK(result.missing == 7);
  CHECK(result.mismatch == 0);
}

TEST_CASE("the sample suite is what the quickstart registers") {
  SystemFiles files;
  const OpenPlan plan =
      open_plan(files, std::filesystem::path(PREVAL_SOURCE_DIR) / "prereg/quickstart.json");
  const VerifyResult result = verify_data(files, plan, std::nullopt, {});
  for (const SubsetCheck& check : result.subsets) {
    INFO(check.subset << ": " << check.problem);
    CHECK(check.status == SubsetStatus::ok);
  }
  CHECK(result.ok == 13);
}
