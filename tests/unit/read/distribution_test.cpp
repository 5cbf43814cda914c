#include "read/distribution.h"

#include <cmath>
#include <fstream>
#include <stdexcept>

#include "base/json.h"
#include "catch.h"
#include "skip.h"

using namespace preval;

namespace {

std::vector<double> probabilities(const Distribution& distribution) {
  std::vector<double> result;
  for (const auto& label : distribution.labels) result.push_back(label.probability);
  return result;
}

}  // namespace

TEST_CASE("the study's read of 32 log-probabilities is reproduced to the last bit") {
  std::ifstream file(std::string(PREVAL_SOURCE_DIR) + "/tests/data/study-vectors.json");
  const Json vectors = Json::parse(file);
  const Json& probe = vectors["slot_distribution_probe3"];
  std::vector<TokenLogprob> top;
  for (const Json& entry : probe["top32"]) top.push_back({entry[0], entry[1]});
  for (const char* name : {"in", "one_missing", "all_missing"}) {
    INFO(name);
    const auto labels = probe[std::string("labels_") + name].get<std::vector<TokenId>>();
    const Json& expected = probe[std::string("result_") + name];
    const Distribution read = read_top_k(top, labels);
    CHECK(probabilities(read) == expected["probs"].get<std::vector<double>>());
    CHECK(read.label_mass == expected["label_mass"].get<double>());
    CHECK(read.entropy == expected["entropy"].get<double>());
    CHECK(read.argmax_is_label == expected["argmax_is_label"].get<bool>());
  }
}

TEST_CASE("a top-k read gives absent labels the floor and keeps the bound") {
  const std::vector<TokenLogprob> top{{5, -0.5}, {7, -1.25}, {9, -3.0}};
  const Distribution read = read_top_k(top, {7, 8, 9});
  CHECK(read.floor == -8.0);
  CHECK(read.bound == -3.0);
  CHECK(read.labels_returned == 2);
  CHECK(read.labels[0].source == LabelSource::top);
  CHECK(read.labels[1].source == LabelSource::floor);
  CHECK(read.labels[1].logprob == -8.0);
  CHECK(read.predicted == 0);
  CHECK(read.argmax_is_label == false);
  CHECK_FALSE(read.tied);
  CHECK_FALSE(read.tied_at_bound);
  CHECK(read.label_mass ==
        Approx(std::exp(-1.25) + std::exp(-8.0) + std::exp(-3.0)).epsilon(1e-15));
}

TEST_CASE("ties: the first label wins, and a tie is told") {
  const Distribution tied = read_top_k({{1, -1}, {2, -1}, {3, -2}}, {2, 1});
  CHECK(tied.predicted == 0);
  CHECK(tied.tied);
  CHECK(tied.argmax_is_label == true);
  // The predicted label is the lowest of the list: an absent one may be just as likely.
  const Distribution at_bound = read_top_k({{4, -0.1}, {1, -3}}, {1, 2});
  CHECK(at_bound.tied_at_bound);
  CHECK_FALSE(at_bound.tied);
  // Without an absent label there is nothing that could tie.
  CHECK_FALSE(read_top_k({{4, -0.1}, {1, -3}, {2, -3.5}}, {1, 2}).tied_at_bound);
}

TEST_CASE("no label returned gives the study's uniform distribution and says so") {
  const Distribution read = read_top_k({{1, -0.1}, {2, -3}}, {7, 8, 9, 10});
  CHECK(read.labels_returned == 0);
  CHECK(probabilities(read) == std::vector<double>{0.25, 0.25, 0.25, 0.25});
  CHECK(read.tied);
  const ProbabilityBounds bounds = probability_bounds(read);
  CHECK(bounds.at_bound == probabilities(read));
  CHECK(bounds.at_nothing == probabilities(read));
}

TEST_CASE("an exact read has neither floor nor bound, and needs no list") {
  const Distribution read = read_exact({-1, -2, -12}, {}, {7, 8, 9});
  CHECK(read.labels_returned == 3);
  CHECK_FALSE(read.floor);
  CHECK_FALSE(read.bound);
  CHECK_FALSE(read.entropy);
  CHECK_FALSE(read.argmax_is_label);
  CHECK(read.labels[2].source == LabelSource::exact);
  CHECK(read.label_mass == Approx(std::exp(-1) + std::exp(-2) + std::exp(-12)).epsilon(1e-15));
  const Distribution with_list = read_exact({-1, -2, -12}, {{5, -0.9}, {7, -1}}, {7, 8, 9});
  CHECK(with_list.argmax_is_label == false);
  CHECK(*with_list.entropy == Approx(0.9 * std::exp(-0.9) + std::exp(-1)).epsilon(1e-15));
}

TEST_CASE("A12: a tiny label mass is kept as it is") {
  const Distribution read = read_exact({-15.2, -15.9}, {{1, -0.01}}, {2, 3});
  CHECK(read.label_mass == Approx(3.748e-7).epsilon(1e-3));
  CHECK(read.predicted == 0);
}

TEST_CASE("A4: P(true) over {true, false} is that of the right tokens") {
  const Distribution read =
      read_top_k({{1, -0.23307}, {2, -1.57682}, {3, -8.38932}, {4, -8.47526}}, {1, 2});
  CHECK(read.labels[1].probability == Approx(0.2069).margin(5e-5));
}

TEST_CASE("bounds: absent labels at the lowest returned value, and at nothing") {
  const Distribution read = read_top_k({{1, -1}, {5, -2}, {2, -4}}, {1, 2, 3});
  const ProbabilityBounds bounds = probability_bounds(read);
  const double z = std::exp(0) + 2 * std::exp(-3);
  CHECK(bounds.at_bound[0] == Approx(1 / z).epsilon(1e-14));
  CHECK(bounds.at_bound[2] == bounds.at_bound[1]);
  CHECK(bounds.at_nothing[2] == 0);
  CHECK(bounds.at_nothing[0] == Approx(1 / (1 + std::exp(-3))).epsilon(1e-14));
  // An exact read has one answer.
  const Distribution exact = read_exact({-1, -2}, {}, {1, 2});
  CHECK(probability_bounds(exact).at_bound == probability_bounds(exact).at_nothing);
  CHECK(probability_bounds({}).at_bound.empty());
}

TEST_CASE("nothing to read is a mistake of the caller") {
  CHECK_THROWS_AS(read_top_k({}, {1}), std::invalid_argument);
  CHECK_THROWS_AS(read_top_k({{1, -1}}, {}), std::invalid_argument);
  CHECK_THROWS_AS(read_exact({-1}, {}, {1, 2}), std::invalid_argument);
  CHECK_THROWS_AS(read_exact({}, {}, {}), std::invalid_argument);
}

TEST_CASE("sources have names") {
  CHECK(to_text(LabelSource::exact) == "exact");
  CHECK(to_text(LabelSource::top) == "top");
  CHECK(to_text(LabelSource::floor) == "floor");
  CHECK(to_text(LabelSource::text) == "text");
  CHECK(to_text(LabelSource::native) == "native");
  CHECK(to_text(LabelSource::imported) == "imported");
}
