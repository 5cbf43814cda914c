#include "stats/temperature.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "catch.h"
#include "vectors.h"

namespace preval {

using Indices = std::vector<std::size_t>;

namespace {

std::vector<double> tempered_values(const std::vector<double>& p, double temperature) {
  std::vector<double> out(p.size());
  temper(p, temperature, out);
  return out;
}

}  // namespace

TEST_CASE("the grid is the registered one") {
  const Json golden = test::study_vectors().at("T_GRID");
  const auto grid = temperature_grid();
  REQUIRE(golden.size() == grid.size());
  for (std::size_t i = 0; i < grid.size(); ++i) CHECK(grid[i] == golden[i].get<double>());
}

TEST_CASE("tempering sharpens below 1, flattens above, and floors zeros") {
  CHECK(tempered_values({0.5, 0.5}, 0.25) == std::vector<double>{0.5, 0.5});
  CHECK(tempered_values({0.8, 0.2}, 0.5)[0] == Approx(0.64 / 0.68));
  CHECK(tempered_values({0.8, 0.2}, 2)[0] == Approx(2.0 / 3));
  CHECK(tempered_values({1, 0}, 1)[1] == Approx(1e-12));
  CHECK(tempered_values({0, 0}, 3) == std::vector<double>{0.5, 0.5});
  const std::vector<double> out = tempered_values({0.1, 0.2, 0.3, 0.4}, 7.9869);
  CHECK(std::accumulate(out.begin(), out.end(), 0.0) == Approx(1));
}

TEST_CASE("the fit ends at the cold edge when all is right, at the hot one when all is wrong") {
  for (const auto& [gold, expected] : {std::pair{0, 0.25}, std::pair{1, 7.9869}}) {
    ScoredReads reads;
    for (int i = 0; i < 4; ++i) {
      reads.add(std::vector<double>{0.8, 0.2}, static_cast<std::size_t>(gold));
    }
    CHECK(fit_temperature(reads, Indices{0, 1, 2, 3}, kSuiteClip) == expected);
  }
}

TEST_CASE("of equal losses the first grid value wins, and no labels give 1") {
  ScoredReads reads;
  reads.add(std::vector<double>{0.5, 0.5}, 0);
  CHECK(fit_temperature(reads, Indices{0}, kSuiteClip) == 0.25);
  CHECK(fit_temperature(reads, {}, kSuiteClip) == 1.0);
}

TEST_CASE("the fit of eight pairs of logits") {
  const double logits[8][2] = {{2, 0}, {1.5, 0}, {0, 3},   {0, 2.5},
                               {4, 0}, {0, 1},   {2.2, 0}, {0, 3.1}};
  const std::size_t gold[8] = {0, 1, 1, 1, 0, 0, 0, 0};
  ScoredReads reads;
  Indices all(8);
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (std::size_t i = 0; i < 8; ++i) {
    const double a = std::exp(logits[i][0]);
    const double b = std::exp(logits[i][1]);
    reads.add(std::vector<double>{a / (a + b), b / (a + b)}, gold[i]);
  }
  const double best = fit_temperature(reads, all, kTaskClip);
  CHECK(best == 3.0102);
  CHECK(nll(tempered(reads, all, best), kTaskClip).value() ==
        Approx(.6125219512).epsilon(0).margin(1e-10));
}

TEST_CASE("halves do not overlap and the fit takes its labels from the first") {
  for (const std::size_t n : {2, 3, 99, 100, 101, 144}) {
    const LabelRule rule;
    const LabelledSplit parts = split_records(n, rule, 3);
    CHECK(parts.fit.size() == std::min<std::size_t>(50, n / 2));
    CHECK(parts.held_out.size() == n - n / 2);
    Indices seen = parts.fit;
    seen.insert(seen.end(), parts.held_out.begin(), parts.held_out.end());
    std::sort(seen.begin(), seen.end());
    CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
    CHECK(seen.back() < n);
  }
}

TEST_CASE("the study's ECE after 50 labels, split by split, to the last bit") {
  const Json golden = test::study_vectors().at("synthetic144");
  const AfterLabels found = ece_after_labels(test::synthetic144()).value();
  REQUIRE(found.splits.size() == 20);
  for (std::size_t k = 0; k < 20; ++k) {
    CAPTURE(k);
    CHECK(found.splits[k].temperature == golden.at("fit50_T_by_split")[k].get<double>());
    CHECK(found.splits[k].ece == golden.at("ece_fit50_by_split")[k].get<double>());
    CHECK(found.splits[k].at_edge);
  }
  CHECK(found.mean_ece == golden.at("ece_fit50").get<double>());
  CHECK(found.n_at_edge == 20);
}

TEST_CASE("the ECE of a split is that of its tempered records") {
  const ScoredReads reads = test::synthetic144();
  const LabelRule rule;
  const AfterLabels found = ece_after_labels(reads, rule).value();
  for (std::size_t k = 0; k < rule.splits; ++k) {
    const LabelledSplit parts = split_records(reads.size(), rule, k);
    const ScoredReads held_out = tempered(reads, parts.held_out, found.splits[k].temperature);
    CHECK(held_out.size() == 72);
    CHECK(ece(held_out.confidences(), rule.binning) == found.splits[k].ece);
  }
}

TEST_CASE("without labels the temperature is 1 and the probabilities stay") {
  LabelRule rule;
  rule.labels = 0;
  rule.splits = 1;
  rule.binning = kTaskBinning;
  const ScoredReads reads = test::synthetic144();
  const AfterLabels found = ece_after_labels(reads, rule).value();
  CHECK(found.splits[0].temperature == 1.0);
  CHECK_FALSE(found.splits[0].at_edge);
  std::vector<Confidence> held_out;
  for (const std::size_t i : split_records(reads.size(), rule, 0).held_out) {
    held_out.push_back(reads.confidence(i));
  }
  CHECK(found.mean_ece == Approx(ece(held_out, kTaskBinning).value()).epsilon(1e-12));
}

TEST_CASE("what cannot be split has no ECE after labels") {
  ScoredReads reads;
  CHECK_FALSE(ece_after_labels(reads));
  reads.add(std::vector<double>{0.9, 0.1}, 0);
  CHECK_FALSE(ece_after_labels(reads));
  reads.add(std::vector<double>{0.9, 0.1}, 0);
  CHECK(ece_after_labels(reads)->splits.size() == 20);
  LabelRule none;
  none.splits = 0;
  CHECK_FALSE(ece_after_labels(reads, none));
}

}  // namespace preval
