#include "stats/accuracy.h"

#include <stdexcept>
#include <vector>

#include "catch.h"
#include "vectors.h"

namespace preval {

TEST_CASE("shares") {
  CHECK(share(0, 0) == std::nullopt);
  CHECK(share(3, 4) == 0.75);
  CHECK_THROWS_AS(share(5, 4), std::logic_error);
}

TEST_CASE("Wilson's interval, statsmodels' values to half a unit of the last digit") {
  struct Case {
    std::size_t k, n;
    double low, high;
  };
  const Case cases[] = {{201, 250, .750349189696, .848449764210},
                        {117, 144, .740942133605, .867818093180},
                        {2999, 3880, .759490079997, .785846289280},
                        {0, 50, 0, .071347599133},
                        {50, 50, .928652400867, 1}};
  for (const Case& expected : cases) {
    const Interval found = wilson(expected.k, expected.n, kNormal975).value();
    CHECK(found.low == Approx(expected.low).epsilon(0).margin(5e-13));
    CHECK(found.high == Approx(expected.high).epsilon(0).margin(5e-13));
  }
}

TEST_CASE("Wilson's ends are exact where nothing or everything is right, and inside 0 to 1") {
  for (std::size_t n = 1; n <= 400; ++n) {
    for (const double z : {kStudyZ, kNormal975}) {
      REQUIRE(wilson(0, n, z)->low == 0.0);
      REQUIRE(wilson(n, n, z)->high == 1.0);
      const Interval middle = wilson(n / 2, n, z).value();
      REQUIRE(middle.low >= 0.0);
      REQUIRE(middle.low <= static_cast<double>(n / 2) / static_cast<double>(n));
      REQUIRE(middle.high <= 1.0);
    }
  }
  CHECK(wilson(0, 0) == std::nullopt);
  CHECK_THROWS_AS(wilson(2, 1), std::logic_error);
}

TEST_CASE("the study's z is the default and not the full one") {
  CHECK(wilson(201, 250)->low == wilson(201, 250, 1.959964)->low);
  CHECK(wilson(201, 250)->low != wilson(201, 250, kNormal975)->low);
}

TEST_CASE("the majority share of the study's stratified draws") {
  const Json golden = test::study_vectors();
  for (const auto& [name, expected] : golden.at("stratified").items()) {
    CAPTURE(name);
    const auto quotas = expected.at("quotas").get<std::vector<std::size_t>>();
    CHECK(majority_share(quotas) == expected.at("majority").get<double>());
  }
  CHECK(majority_share({}) == std::nullopt);
  CHECK(majority_share(std::vector<std::size_t>{0, 0}) == std::nullopt);
}

TEST_CASE("the unpaired difference of two shares") {
  const Difference same = unpaired_difference(0.5, 100, 0.5, 100, 2).value();
  CHECK(same.value == 0);
  CHECK(same.interval.high == Approx(2 * 0.0707106781186548));
  CHECK(same.interval.low == -same.interval.high);
  const Difference found = unpaired_difference(0.9, 300, 0.8, 200).value();
  CHECK(found.value == 0.9 - 0.8);
  // 1.959964 · √(.09/300 + .16/200)
  CHECK(found.interval.high - found.value == Approx(0.06500465190604131).epsilon(1e-12));
  CHECK(unpaired_difference(1, 10, 1, 10)->interval.low == 0);
  CHECK(unpaired_difference(0.5, 0, 0.5, 10) == std::nullopt);
  CHECK(unpaired_difference(0.5, 10, 0.5, 0) == std::nullopt);
}

}  // namespace preval
