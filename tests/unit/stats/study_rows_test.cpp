// The study's own rows against its own published figures, to the last bit.
#include <algorithm>

#include "catch.h"
#include "skip.h"
#include "stats/calibration.h"
#include "stats/summary.h"
#include "stats/temperature.h"
#include "vectors.h"

namespace preval {

TEST_CASE("the published figures of E4B on SummEval consistency come out of its 144 rows") {
  const auto shared = test::shared_data();
  if (!shared) {
    test::skip_test("the study's rows are not on this machine");
    return;
  }
  SystemFiles files;
  const std::string figures = files.read(*shared / "published" / "figures.json");
  const Json published = parse_json(figures, "figures.json")
                             .at("l4_suite")
                             .at("arms")
                             .at("gemma-4-E4B-it ar")
                             .at("summeval-consistency");
  const std::string text = files.read(*shared / "study-rows" / "e4b-l4-summeval-consistency.jsonl");

  ScoredReads reads;
  std::vector<double> label_mass;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const Json row = parse_json(text.substr(begin, end - begin), "rows");
    const Json& keys = row.at("keys");
    const std::string target = std::to_string(row.at("target").get<int>());
    const auto gold = std::find(keys.begin(), keys.end(), Json(target)) - keys.begin();
    const Json& read = row.at("reads").at(0);
    reads.add(read.at("probs").get<std::vector<double>>(), static_cast<std::size_t>(gold));
    label_mass.push_back(read.at("label_mass").get<double>());
  }

  REQUIRE(reads.size() == published.at("n").get<std::size_t>());
  CHECK(static_cast<double>(reads.n_correct()) / static_cast<double>(reads.size()) ==
        published.at("accuracy").get<double>());
  CHECK(ece(reads.confidences(), kSuiteBinning) == published.at("ece10").get<double>());
  CHECK(brier(reads) == published.at("brier").get<double>());
  CHECK(ece_after_labels(reads)->mean_ece == published.at("ece_fit50").get<double>());
  CHECK(upper_median(label_mass) == published.at("label_mass").get<double>());
}

}  // namespace preval
