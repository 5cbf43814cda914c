#include "stats/agreement.h"

#include <string>
#include <vector>

#include "catch.h"

namespace preval {

TEST_CASE("agreement counts equal labels in place") {
  const Agreement found = agreement(std::vector<int>{0, 1, 2, 2}, std::vector<int>{0, 2, 2, 2});
  CHECK(found.same == 3);
  CHECK(found.n == 4);
  CHECK(found.share() == 0.75);
}

TEST_CASE("labels may be names") {
  const std::vector<std::string> a = {"yes", "no"};
  CHECK(agreement(a, std::vector<std::string>{"yes", "no"}).share() == 1.0);
  CHECK(agreement(a, std::vector<std::string>{"no", "yes"}).share() == 0.0);
}

TEST_CASE("no records, no share; sides of different length are a mistake") {
  const std::vector<int> none;
  CHECK(agreement(none, none).share() == std::nullopt);
  CHECK_THROWS_AS(agreement(none, std::vector<int>{1}), std::logic_error);
}

}  // namespace preval
