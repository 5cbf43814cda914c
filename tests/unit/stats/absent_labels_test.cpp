#include "stats/absent_labels.h"

#include <stdexcept>

#include "catch.h"

using namespace preval;

namespace {

ScoredReads reads_of(const std::vector<std::pair<std::vector<double>, std::size_t>>& list) {
  ScoredReads reads;
  for (const auto& [p, gold] : list) reads.add(p, gold);
  return reads;
}

const ScoredReads kThree =
    reads_of({{{0.7, 0.2, 0.1}, 0}, {{0.1, 0.6, 0.3}, 2}, {{0.25, 0.5, 0.25}, 1}});

}  // namespace

TEST_CASE("without other reads these are the calibration's own figures, to the last bit") {
  for (const Binning binning : {kSuiteBinning, kTaskBinning}) {
    const auto scores = trust_scores(kThree, {}, binning, kSuiteClip);
    REQUIRE(scores);
    CHECK(scores->confidence == Approx(0.6).epsilon(1e-15));
    CHECK(scores->ece == *ece(kThree.confidences(), binning));
    CHECK(scores->brier == *brier(kThree));
    CHECK(scores->nll == *nll(kThree, kSuiteClip));
  }
  CHECK_FALSE(trust_scores({}, {}, kSuiteBinning, kSuiteClip));
}

TEST_CASE("other reads count in the place of those that were scored") {
  // The second answer without its right label: probability 0, clipped.
  OtherReads other{{1}, reads_of({{{0.25, 0.75, 0}, 2}})};
  auto scores = trust_scores(kThree, other, kSuiteBinning, 1e-12);
  // Worked out with math.fsum: confidences .7 right, .75 wrong, .5 right, in one bin and one.
  CHECK(scores->confidence == Approx(0.65).epsilon(1e-15));
  CHECK(scores->ece == Approx(0.31666666666666665).epsilon(1e-14));
  CHECK(scores->brier == Approx(0.7133333333333334).epsilon(1e-14));
  CHECK(scores->nll == Approx(9.560281080142408).epsilon(1e-14));
  // The choice stays, even where another label has become the most probable one.
  other = {{1}, reads_of({{{0.1, 0.3, 0.6}, 2}})};
  scores = trust_scores(kThree, other, kSuiteBinning, 1e-12);
  CHECK(scores->confidence == Approx(0.5).epsilon(1e-15));
  CHECK(scores->ece == Approx(0.36666666666666664).epsilon(1e-14));
  CHECK(scores->brier == Approx(0.25833333333333336).epsilon(1e-14));
  CHECK(scores->nll == Approx(0.5202159160882228).epsilon(1e-14));
}

TEST_CASE("other reads that do not fit are a mistake of the caller") {
  const auto with = [](OtherReads other) {
    trust_scores(kThree, other, kSuiteBinning, kSuiteClip);
  };
  const ScoredReads one = reads_of({{{0.25, 0.75, 0}, 2}});
  CHECK_THROWS_AS(with({{}, one}), std::logic_error);
  CHECK_THROWS_AS(with({{3}, one}), std::logic_error);
  CHECK_THROWS_AS(with({{0}, one}), std::logic_error);  // another gold label
  CHECK_THROWS_AS(with({{1}, reads_of({{{0.25, 0.75}, 1}})}), std::logic_error);
  CHECK_THROWS_AS(with({{1, 1}, reads_of({{{0.2, 0.8, 0}, 2}, {{0.2, 0.8, 0}, 2}})}),
                  std::logic_error);
  CHECK_THROWS_AS(trust_scores({}, {{0}, one}, kSuiteBinning, kSuiteClip), std::logic_error);
}
