// Which part of the records a record belongs to, and what is no part.
#include "suite/shard.h"

#include <fmt/format.h>

#include "../base/thrown.h"
#include "base/error.h"
#include "base/sha256.h"
#include "catch.h"

using namespace preval;
using namespace preval::test;

TEST_CASE("the first eight bytes of a record's digest say which shard it belongs to", "[suite]") {
  const auto shard_of = [](const std::string& sha256, int of) {
    for (int index = 1; index <= of; ++index) {
      if (Shard{index, of}.holds(sha256)) return index;
    }
    return 0;
  };
  const std::string rest(48, 'f');
  CHECK(shard_of("0000000000000000" + rest, 4) == 1);
  CHECK(shard_of("0000000000000006" + rest, 4) == 3);
  CHECK(shard_of("0100000000000000" + rest, 7) == 5);  // 2^56 mod 7 is 4
  // 18446744073709551615 mod 1000 is 615: the number has no sign.
  CHECK(shard_of("ffffffffffffffff" + rest, 1000) == 616);
  CHECK(shard_of("0000000000000006", 4) == 3);
  CHECK_THROWS_AS(Shard().holds("00ff"), std::logic_error);
  CHECK_THROWS_AS(Shard().holds("000000000000000g"), std::logic_error);
}

TEST_CASE("every record is in one shard, and none of them is much larger than the others",
          "[suite]") {
  for (const int of : {1, 2, 3, 10}) {
    std::vector<int> sizes(static_cast<std::size_t>(of), 0);
    for (int i = 0; i < 2000; ++i) {
      const std::string sha256 = sha256_hex(fmt::format("record {}", i));
      int shards = 0;
      for (int index = 1; index <= of; ++index) {
        if (!Shard{index, of}.holds(sha256)) continue;
        ++shards;
        ++sizes[static_cast<std::size_t>(index - 1)];
      }
      REQUIRE(shards == 1);
    }
    for (const int size : sizes) {
      CHECK(size > 2000 / of * 3 / 4);
      CHECK(size < 2000 / of * 5 / 4 + 1);
    }
  }
}

TEST_CASE("a shard is written I/N, and anything else is a usage error that says so", "[suite]") {
  CHECK(parse_shard("1/1") == Shard{1, 1});
  CHECK(parse_shard("3/4") == Shard{3, 4});
  CHECK(parse_shard("1000/1000").text() == "1000/1000");
  struct Row {
    const char *text, *says;
  };
  for (const Row& row : std::initializer_list<Row>{{"", "a shard is I/N, such as 1/4"},
                                                   {"1", "a shard is I/N"},
                                                   {"/4", "a shard is I/N"},
                                                   {"1/", "a shard is I/N"},
                                                   {"1/4/2", "a shard is I/N"},
                                                   {"-1/4", "a shard is I/N"},
                                                   {"1.0/4", "a shard is I/N"},
                                                   {" 1/4", "a shard is I/N"},
                                                   {"0/4", "of 4 shards there is none number 0"},
                                                   {"5/4", "of 4 shards there is none number 5"},
                                                   {"1/0", "there can be 1 to 1000 shards"},
                                                   {"1/1001", "there can be 1 to 1000 shards"},
                                                   {"1/99999999999999999999", "a shard is I/N"}}) {
    INFO(row.text);
    const Error error = thrown([&] { parse_shard(row.text); });
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(contains(error.what(), row.says));
  }
}
