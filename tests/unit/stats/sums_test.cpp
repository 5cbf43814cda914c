#include "stats/sums.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/python_random.h"
#include "catch.h"
#include "vectors.h"

namespace preval {

TEST_CASE("ten times 0.1 is one, and left-to-right addition is not") {
  const Json golden = test::study_vectors().at("sum_semantics");
  const std::vector<double> tenths(10, 0.1);
  CHECK(python_sum(tenths) == golden.at("sum([0.1]*10)").get<double>());
  double plain = 0;
  for (const double tenth : tenths) plain += tenth;
  CHECK(plain == golden.at("naive_left_to_right").get<double>());
}

TEST_CASE("sums of floats equal CPython's") {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<std::vector<double>, double>> cases = {
      {{}, 0.0},
      {{0.25}, 0.25},
      {{1e16, 1.0, -1e16}, 1.0},
      {{1.0, 1e100, 1.0, -1e100}, 2.0},
      {{1e308, 1e308, -1e308}, inf},  // the compensation is not a number and is left out
      {{inf, 1.0}, inf}};
  for (const auto& [values, sum] : cases) CHECK(python_sum(values) == sum);
}

TEST_CASE("negative zero starts at the integer zero") {
  CHECK_FALSE(std::signbit(python_sum(std::vector<double>{-0.0})));
}

TEST_CASE("integers add exactly before the first float and without compensation after it") {
  PythonSum start;
  start.add_integer(3);
  start.add(1e16);
  start.add(-1e16);
  CHECK(start.value() == 4.0);  // 3 + 1e16 rounds to 1e16 + 4, since no compensation has begun

  PythonSum later;
  later.add(1e16);
  later.add_integer(1);
  later.add(1.0);
  later.add(-1e16);
  CHECK(later.value() == 1.0);

  PythonSum whole;
  whole.add_integer((std::int64_t{1} << 53) + 1);
  whole.add_integer(-(std::int64_t{1} << 53));
  CHECK(whole.value() == 1.0);
}

TEST_CASE("a thousand floats of sixteen magnitudes add up as in CPython 3.13") {
  PythonRandom random(11);
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) {
    const double fraction = random.uniform();
    const double power = static_cast<double>(random.below(17)) - 8;
    const double scale = std::pow(10.0, power);
    values.push_back(fraction * scale * (random.below(2) == 1 ? -1 : 1));
  }
  CHECK(random.uniform() == 0.0397559924993891);
  CHECK(python_sum(values) == -458701351.0571747);
}

TEST_CASE("squares are pow's, not products") {
  const std::vector<std::pair<double, double>> cases = {{0.42533730676875514, 0.18091182452929813},
                                                        {0.5874183784430576, 0.34506035133267116},
                                                        {0.43022268713048784, 0.18509156052177764}};
  for (const auto& [x, squared] : cases) {
    CHECK(square(x) == squared);
    CHECK(x * x != squared);
  }
  CHECK(square(-3) == 9);
}

TEST_CASE("rounding goes to even at halves") {
  const std::vector<std::pair<double, double>> cases = {
      {0.5, 0},      {1.5, 2},  {2.5, 2},
      {-2.5, -2},    {-0.5, 0}, {2.4, 2},
      {2.6, 3},      {0, 0},    {0.49999999999999994, 0},
      {1e300, 1e300}};
  for (const auto& [x, rounded] : cases) CHECK(round_half_even(x) == rounded);
  CHECK_FALSE(std::signbit(round_half_even(-0.5)));
}

TEST_CASE("rounding to digits looks at the exact value") {
  CHECK(round_to_digits(2.675, 2) == 2.67);  // 2.67499999999999982…
  CHECK(round_to_digits(0.125, 2) == 0.12);
  CHECK(round_to_digits(0.375, 2) == 0.38);
  CHECK(round_to_digits(-1.00005, 4) == -1.0001);
  CHECK(round_to_digits(1e300, 4) == 1e300);
  CHECK(std::isnan(round_to_digits(std::nan(""), 4)));
  CHECK_THROWS_AS(round_to_digits(1, 16), std::logic_error);
}

}  // namespace preval
