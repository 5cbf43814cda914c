#include "stats/calibration.h"

#include <cmath>
#include <limits>

#include "base/text.h"
#include "catch.h"
#include "vectors.h"

namespace preval {

using Answers = std::vector<Confidence>;

TEST_CASE("bins of values on the edges, as the study has them") {
  const Json golden = test::study_vectors().at("bin_edges");
  for (const auto& [name, binning] :
       {std::pair{"binof10", kSuiteBinning}, std::pair{"binof15", kTaskBinning}}) {
    for (const auto& [value, bins] : golden.at(name).items()) {
      CAPTURE(name, value);
      const std::optional<std::size_t> found = bin_of(to_double(value).value(), binning);
      if (bins.empty()) {
        CHECK_FALSE(found.has_value());
      } else {
        CHECK(found == bins.at(0).get<std::size_t>());
      }
    }
  }
}

TEST_CASE("every edge and its neighbours fall where the comparison with i / B says") {
  for (const std::size_t count : {1, 2, 3, 7, 10, 15, 20, 49, 100}) {
    for (std::size_t i = 0; i <= count; ++i) {
      const double edge = static_cast<double>(i) / static_cast<double>(count);
      for (const double x : {std::nextafter(edge, -1), edge, std::nextafter(edge, 2)}) {
        if (x < 0 || x > 1) {
          CHECK_FALSE(bin_of(x, {count, Edges::left_closed}));
          continue;
        }
        const auto at = [&](std::size_t k) {
          return static_cast<double>(k) / static_cast<double>(count);
        };
        const std::size_t left = bin_of(x, {count, Edges::left_closed}).value();
        CHECK(at(left) <= x);
        CHECK((x < at(left + 1) || (x == 1 && left + 1 == count)));
        const std::size_t right = bin_of(x, {count, Edges::right_closed}).value();
        CHECK((at(right) < x || (x == 0 && right == 0)));
        CHECK(x <= at(right + 1));
      }
    }
  }
  CHECK_FALSE(bin_of(std::numeric_limits<double>::quiet_NaN(), kSuiteBinning));
  CHECK_FALSE(bin_of(0.5, {0, Edges::left_closed}));
}

TEST_CASE("one correct answer on an edge, right-closed") {
  const Json golden = test::study_vectors().at("bin_edges").at("ece15_single");
  for (const auto& [value, expected] : golden.items()) {
    CAPTURE(value);
    CHECK(ece(Answers{{to_double(value).value(), true}}, kTaskBinning) == expected.get<double>());
  }
}

TEST_CASE("the side of the edge decides: statistics.md's pairs") {
  const Answers first = {{.7, true}, {.65, false}};
  CHECK(ece(first, {10, Edges::left_closed}).value() == Approx(.475).epsilon(1e-15));
  CHECK(ece(first, {10, Edges::right_closed}).value() == Approx(.175).epsilon(1e-14));
  CHECK(ece(Answers{{.7, true}, {.75, false}}, {10, Edges::left_closed}).value() ==
        Approx(.225).epsilon(1e-14));
}

TEST_CASE("the study's synthetic records, to the last bit") {
  const Json golden = test::study_vectors().at("synthetic144");
  const ScoredReads reads = test::synthetic144();
  CHECK(ece(reads.confidences(), kSuiteBinning) == golden.at("ece10").get<double>());
  CHECK(ece(reads.confidences(), kTaskBinning) == golden.at("ece15").get<double>());
  CHECK(brier(reads) == golden.at("brier").get<double>());
  CHECK(nll(reads, kSuiteClip) == golden.at("nll").get<double>());
  CHECK(nll(reads, kTaskClip) == golden.at("nll").get<double>());
}

TEST_CASE("five reads by hand") {
  ScoredReads reads;
  const std::vector<std::vector<double>> p = {
      {.7, .2, .1}, {.1, .6, .3}, {.25, .5, .25}, {.34, .33, .33}, {.05, .05, .9}};
  const std::vector<std::size_t> gold = {0, 2, 1, 0, 2};
  for (std::size_t i = 0; i < p.size(); ++i) reads.add(p[i], gold[i]);
  CHECK(brier(reads).value() == Approx(.408680).epsilon(0).margin(5e-7));
  CHECK(nll(reads, kTaskClip).value() == Approx(.687593021171).epsilon(0).margin(5e-13));
  CHECK(ece(reads.confidences(), kSuiteBinning).value() == Approx(.432).epsilon(0).margin(5e-4));
}

TEST_CASE("the clip is the smallest probability a likelihood sees") {
  ScoredReads reads;
  reads.add(std::vector<double>{0.0, 1.0}, 0);
  CHECK(nll(reads, kSuiteClip) == -std::log(1e-15));
  CHECK(nll(reads, kTaskClip) == -std::log(1e-12));
  CHECK(brier(reads) == 2.0);
}

TEST_CASE("confidences above 1 are in no bin but count as answers") {
  const Answers answers = {{1.0000000000000002, true}, {0.5, false}};
  CHECK(ece(answers, kSuiteBinning) == 0.25);
  CHECK(ece(answers, kTaskBinning) == 0.25);
}

TEST_CASE("no answers, no scores") {
  CHECK(ece({}, kSuiteBinning) == std::nullopt);
  CHECK(ece({}, kTaskBinning) == std::nullopt);
  CHECK(brier({}) == std::nullopt);
  CHECK(nll({}, kSuiteClip) == std::nullopt);
}

TEST_CASE("bars of a reliability diagram") {
  const std::vector<ReliabilityBin> bins =
      reliability(Answers{{.72, true}, {.78, false}, {1.0, true}, {1.1, true}}, kSuiteBinning);
  REQUIRE(bins.size() == 10);
  CHECK(bins[7].low == 0.7);
  CHECK(bins[7].high == 0.8);
  CHECK(bins[7].n == 2);
  CHECK(bins[7].n_correct == 1);
  CHECK(bins[7].accuracy == 0.5);
  CHECK(bins[7].mean_confidence == 0.75);
  CHECK(bins[9].n == 1);
  CHECK(bins[0].n == 0);
  CHECK(bins[0].accuracy == 0);
  CHECK(bins[0].mean_confidence == 0);
  CHECK(reliability({}, kTaskBinning).size() == 15);
}

TEST_CASE("the bars of all records add up to the records and to the ECE") {
  const ScoredReads reads = test::synthetic144();
  std::size_t n = 0;
  double gap = 0;
  for (const ReliabilityBin& bin : reliability(reads.confidences(), kSuiteBinning)) {
    n += bin.n;
    gap += static_cast<double>(bin.n) / 144 * std::fabs(bin.accuracy - bin.mean_confidence);
  }
  CHECK(n == 144);
  CHECK(gap == Approx(ece(reads.confidences(), kSuiteBinning).value()).epsilon(1e-13));
}

}  // namespace preval
