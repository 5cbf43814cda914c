#include "suite/manifest.h"

#include "catch.h"
#include "plan/example_plan.h"
#include "plan/expect_error.h"
#include "skip.h"

using namespace preval;
using namespace preval::test;

namespace {

std::string manifest(const std::string& changed_from = "", const std::string& changed_to = "") {
  std::string text =
      R"({"boolq":{"dataset_sha256":")" + kDigest +
      R"(","count":3,"families":2,"labels":{"True":2,"False":1},"license":"CC0","source":"own"}})";
  if (!changed_from.empty()) text.replace(text.find(changed_from), changed_from.size(), changed_to);
  return text;
}

}  // namespace

TEST_CASE("manifests are read by subset") {
  const auto manifests = parse_manifests(manifest(), "m.json");
  REQUIRE(manifests.size() == 1);
  const Manifest& boolq = manifests.at("boolq");
  CHECK(boolq.dataset_sha256 == kDigest);
  CHECK(boolq.count == 3);
  CHECK(boolq.families == 2);
  CHECK(boolq.labels == std::map<std::string, int>{{"False", 1}, {"True", 2}});
  CHECK(boolq.license == "CC0");
  CHECK(boolq.source_sha256.empty());
}

TEST_CASE("bad manifests are refused with file and pointer") {
  const auto error = [](const std::string& from, const std::string& to) {
    return error_of(ErrorKind::usage, [&] { parse_manifests(manifest(from, to), "m.json"); });
  };
  check_contains(error("\"count\"", "\"cuont\""),
                 "m.json: /boolq/cuont: unknown key \"cuont\": did you mean");
  check_contains(error("\"count\":3", "\"count\":4"),
                 "/boolq/labels: they add up to 3, count is 4");
  check_contains(error("\"True\":2", "\"True\":\"2\""),
                 "/boolq/labels/True: expected a whole number");
  check_contains(error("\"license\":\"CC0\",", ""), "/boolq/license: required key");
  check_contains(error(kDigest, "x"), "/boolq/dataset_sha256: \"x\" is not a SHA-256");
  check_contains(error("{\"boolq\"", "[\"boolq\""), "m.json");
}

TEST_CASE("the published manifests are read") {
  const auto shared = shared_data();
  if (!shared) return skip_test("no shared data: published manifests not read");
  SystemFiles files;
  const auto manifests = parse_manifests(
      files.read(*shared / "manifests/published_manifest_fields.json"), "published");
  CHECK(manifests.size() == 13);
  CHECK(manifests.at("vitaminc-dev").count == 599);
}

TEST_CASE("plan and manifest must say the same") {
  MemoryFiles files;
  Json plan = example_study(files);
  CHECK(check_manifests(files, open_plan(files, "study/plan.json")).empty());

  Json changed = parse_json(files.content["study/manifest.json"], "m");
  changed["boolq"]["count"] = 4;
  changed["boolq"]["labels"] = {{"any", 4}};
  changed["massive"]["dataset_sha256"] = kDigest;
  changed.erase("stars");
  files.content["study/manifest.json"] = changed.dump();
  const auto drifts = check_manifests(files, open_plan(files, "study/plan.json"));
  REQUIRE(drifts.size() == 3);
  CHECK(drifts[0].field == "/datasets/0/subsets/0/records");
  CHECK(drifts[0].registered == "3");
  CHECK(drifts[0].found == "4");
  CHECK(drifts[1].field == "/datasets/0/subsets/1/sha256");
  CHECK(drifts[1].found == kDigest);
  CHECK(drifts[2].field == "/datasets/1/subsets/0/id");
  check_contains(drifts[2].found, "no such subset in manifest.json");

  files.content.erase("study/manifest.json");
  CHECK(check_manifests(files, open_plan(files, "study/plan.json")).empty());
}
