#include "plan/published.h"

#include <cmath>
#include <numeric>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "catch.h"
#include "expect_error.h"
#include "skip.h"

using namespace preval;
using namespace preval::test;

namespace {
const std::string kFigure =
    R"({"n":300,"accuracy":0.897,"ece":0.038,"dataset_sha256":")" + std::string(64, 'b') + R"("})";
}  // namespace

TEST_CASE("published figures are read") {
  const auto figures = parse_published(
      R"({"preval_published":1,"model":"m-1","source":"s","subsets":{"boolq":)" + kFigure + "}}",
      "p.json");
  CHECK(figures.model == "m-1");
  CHECK(figures.source == "s");
  CHECK(figures.subsets.at("boolq").n == 300);
  CHECK(figures.subsets.at("boolq").accuracy == 0.897);
  CHECK(figures.subsets.at("boolq").ece == 0.038);
  CHECK_FALSE(figures.subsets.at("boolq").brier.has_value());
}

TEST_CASE("bad published figures are refused") {
  const auto error = [](const std::string& text) {
    return error_of(ErrorKind::usage, [&] { parse_published(text, "p.json"); });
  };
  check_contains(error(R"({"preval_published":2,"model":"m","source":"s","subsets":{}})"),
                 "p.json: /preval_published: format 2 of published figures is not known");
  check_contains(error(R"({"preval_published":1,"source":"s","subsets":{}})"),
                 "/model: required key");
  check_contains(
      error(
          R"({"preval_published":1,"model":"m","source":"s","subsets":{"x":{"n":1,"accuracy":89.7,"dataset_sha256":")" +
          std::string(64, 'b') + R"("}}})"),
      "/subsets/x/accuracy: must be from 0 to 1, is 89.7");
}

TEST_CASE("the committed figures of Jev 1.13.0 are the published ones") {
  SystemFiles files;
  const std::filesystem::path path =
      std::filesystem::path(PREVAL_SOURCE_DIR) / "prereg/published/jev-1.13.0.json";
  const auto figures = parse_published(files.read(path), path.string());
  CHECK(figures.model == "jev-1.13.0");
  REQUIRE(figures.subsets.size() == 13);
  double right = 0;
  int records = 0;
  for (const auto& [name, figure] : figures.subsets) {
    right += std::round(figure.accuracy * figure.n);
    records += figure.n;
  }
  CHECK(right == 3001);
  CHECK(records == 3880);

  const auto shared = shared_data();
  if (!shared) return skip_test("no shared data: published figures not compared with their source");
  const Json source = parse_json(files.read(*shared / "published/figures.json"), "figures.json");
  const Json manifests =
      parse_json(files.read(*shared / "manifests/published_manifest_fields.json"), "manifests");
  const Json& block = source["published_bespoke"];
  CHECK(figures.source == block["source"].get<std::string>());
  for (const auto& [name, figure] : figures.subsets) {
    INFO(name);
    const Json& printed = block["subsets"][name];
    CHECK(figure.n == printed["n"].get<int>());
    CHECK(std::abs(figure.accuracy * 100 - printed["jev_acc_pct"].get<double>()) < 1e-9);
    CHECK(figure.ece == printed["jev_ece"].get<double>());
    CHECK(figure.brier == printed["jev_brier"].get<double>());
    CHECK(figure.dataset_sha256 == manifests[name]["dataset_sha256"].get<std::string>());
  }
}
