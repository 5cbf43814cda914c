#include "stats/scored_reads.h"

#include <limits>
#include <stdexcept>

#include "catch.h"
#include "vectors.h"

namespace preval {

TEST_CASE("records of different width stand side by side") {
  ScoredReads reads;
  reads.reserve(3, 3);
  CHECK(reads.empty());
  reads.add(std::vector<double>{0.2, 0.8}, 1);
  reads.add(std::vector<double>{0.4, 0.2, 0.4}, 2);
  reads.add(std::vector<double>{1.0}, 0);
  CHECK(reads.size() == 3);
  CHECK(reads.p(1).size() == 3);
  CHECK(reads.p(1)[1] == 0.2);
  CHECK(reads.predicted(0) == 1);
  CHECK(reads.predicted(1) == 0);  // the first of two equal ones
  CHECK(reads.n_correct() == 2);
  CHECK(reads.gold_counts() == std::vector<std::size_t>{1, 1, 1});
  const std::vector<Confidence> answers = reads.confidences();
  CHECK(answers[0].value == 0.8);
  CHECK(answers[0].correct);
  CHECK_FALSE(answers[1].correct);
}

TEST_CASE("what cannot be a read is refused") {
  ScoredReads reads;
  CHECK_THROWS_AS(reads.add({}, 0), std::logic_error);
  CHECK_THROWS_AS(reads.add(std::vector<double>{0.5, 0.5}, 2), std::logic_error);
  for (const double bad :
       {-0.1, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_AS(reads.add(std::vector<double>{0.5, bad}, 0), std::logic_error);
  }
  CHECK(reads.empty());
}

TEST_CASE("the synthetic records are the study's") {
  const Json golden = test::study_vectors().at("synthetic144");
  const ScoredReads reads = test::synthetic144();
  for (std::size_t k = 0; k < 5; ++k) CHECK(reads.p(0)[k] == golden.at("p0")[k].get<double>());
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(reads.gold(i) == golden.at("g_first10")[i].get<std::size_t>());
  }
  CHECK(static_cast<double>(reads.n_correct()) / 144 == golden.at("acc").get<double>());
}

}  // namespace preval
