#include "stats/summary.h"

#include "catch.h"

namespace preval {

TEST_CASE("the two medians differ for an even number of values") {
  struct Case {
    std::vector<double> values;
    std::optional<double> upper, middle;
  };
  const Case cases[] = {{{}, std::nullopt, std::nullopt},
                        {{7}, 7, 7},
                        {{2, 1}, 2, 1.5},
                        {{3, 1, 2}, 2, 2},
                        {{4, 1, 3, 2}, 3, 2.5},
                        {{1, 1, 1, 9, 9, 9}, 9, 5},
                        {{13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 7, 7}};
  for (const Case& expected : cases) {
    CHECK(upper_median(expected.values) == expected.upper);
    CHECK(median(expected.values) == expected.middle);
  }
}

}  // namespace preval
