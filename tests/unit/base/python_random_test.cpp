#include "base/python_random.h"

#include <fmt/format.h>

#include <numeric>
#include <stdexcept>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "catch.h"

namespace preval {
namespace {

Json vectors() {
  SystemFiles files;
  const std::string path = PREVAL_SOURCE_DIR "/tests/data/study-vectors.json";
  return parse_json(files.read(path), path);
}

std::vector<std::size_t> first(const std::vector<std::size_t>& all, std::size_t n) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)};
}

using Indices = std::vector<std::size_t>;

}  // namespace

TEST_CASE("32-bit draws equal CPython's") {
  const Json golden = vectors();
  for (const auto& [seed, name] : {std::pair{0, "random0_getrandbits32"},
                                   std::pair{20260923, "random20260923_getrandbits32"}}) {
    PythonRandom random(static_cast<std::uint64_t>(seed));
    for (const Json& drawn : golden.at(name)) CHECK(random.bits(32) == drawn.get<std::uint32_t>());
  }
}

TEST_CASE("draws below a bound equal CPython's randrange") {
  const Json golden = vectors();
  PythonRandom random(0);
  for (const Json& drawn : golden.at("random0_randrange300_first20")) {
    CHECK(random.below(300) == drawn.get<std::uint64_t>());
  }
}

TEST_CASE("seeds and bounds beyond 32 bits are split as CPython splits them") {
  PythonRandom random((std::uint64_t{1} << 40) + 5);
  CHECK(random.bits(32) == 2166296868U);
  CHECK(random.bits(32) == 2220160828U);
  CHECK(random.bits(32) == 1153647273U);
  CHECK(random.below(std::uint64_t{1} << 40) == 360977370925U);
  CHECK(random.below(std::uint64_t{1} << 33) == 3506157742U);
}

TEST_CASE("uniform draws take two words") {
  PythonRandom random(20260923);
  CHECK(random.uniform() == 0.34541455840024304);
  CHECK(random.uniform() == 0.29294886715859214);
  CHECK(random.uniform() == 0.7857147080093848);
}

TEST_CASE("every shuffle of the study comes out in its order") {
  const Json golden = vectors();
  CHECK(golden.at("shuffle").size() == 24);
  for (const auto& [name, expected] : golden.at("shuffle").items()) {
    CAPTURE(name);
    const std::size_t mark = name.find("_n");
    Indices order(std::stoul(name.substr(mark + 2)));
    std::iota(order.begin(), order.end(), std::size_t{0});
    PythonRandom(std::stoul(name.substr(4, mark - 4))).shuffle(order);
    CHECK(first(order, 12) == expected.at("first12").get<Indices>());
    CHECK(Indices(order.end() - 4, order.end()) == expected.at("last4").get<Indices>());
    CHECK(sha256_hex(fmt::format("{}", fmt::join(order, ","))) ==
          expected.at("sha256_csv").get<std::string>());
  }
}

TEST_CASE("shuffling nothing or one thing draws nothing") {
  PythonRandom random(0);
  Indices none;
  Indices one{7};
  random.shuffle(none);
  random.shuffle(one);
  CHECK(one == Indices{7});
  CHECK(random.bits(32) == 3626764237U);
}

TEST_CASE("samples take the pool or the set where CPython does") {
  PythonRandom random(0);
  CHECK(random.sample(1000000, 8) ==
        Indices{885440, 403958, 794772, 933488, 441001, 42450, 271493, 536110});
  CHECK(random.sample(20, 5) == Indices{15, 12, 9, 19, 11});
  CHECK(random.sample(30, 6) == Indices{18, 28, 6, 16, 4, 9});
  // 21 + 4^3 = 85 is the last size of the pool for six draws.
  CHECK(random.sample(85, 6) == Indices{17, 12, 79, 32, 68, 77});
  CHECK(random.sample(86, 6) == Indices{18, 39, 12, 9, 42, 60});
  CHECK(random.sample(3, 0).empty());
}

TEST_CASE("the study's stratified draws: quotas, sample per class, then shuffle") {
  const Json golden = vectors();
  for (const auto& [name, expected] : golden.at("stratified").items()) {
    CAPTURE(name);
    const auto sizes = expected.at("class_sizes_assumed").get<Indices>();
    const auto quotas = expected.at("quotas").get<Indices>();
    PythonRandom random(20260923);
    std::vector<std::pair<std::size_t, std::size_t>> drawn;
    for (std::size_t c = 0; c < sizes.size(); ++c) {
      for (const std::size_t i : random.sample(sizes[c], quotas[c])) drawn.emplace_back(c, i);
    }
    random.shuffle(drawn);
    std::vector<std::string> pairs;
    for (const auto& [c, i] : drawn) pairs.push_back(fmt::format("{},{}", c, i));
    CHECK(sha256_hex(fmt::format("{}", fmt::join(pairs, ";"))) ==
          expected.at("sha256_csv").get<std::string>());
    const Json& start = expected.at("first12_(class,index_within_class)");
    for (std::size_t i = 0; i < start.size(); ++i) {
      CHECK(Json{drawn[i].first, drawn[i].second} == start[i]);
    }
  }
}

TEST_CASE("impossible draws are refused") {
  PythonRandom random(0);
  CHECK_THROWS_AS(random.below(0), std::logic_error);
  CHECK_THROWS_AS(random.sample(3, 4), std::logic_error);
}

}  // namespace preval
