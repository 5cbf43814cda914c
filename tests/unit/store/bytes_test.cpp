#include "store/bytes.h"

#include <stdexcept>

#include "catch.h"

using namespace preval;

TEST_CASE("digests become blobs", "[store]") {
  const std::string bytes = bytes_of_hex("00ff" + std::string(60, '1'));
  REQUIRE(bytes.size() == 32);
  CHECK(bytes.substr(0, 3) == std::string("\x00\xff\x11", 3));
  CHECK_THROWS_AS(bytes_of_hex("00"), std::logic_error);
  CHECK_THROWS_AS(bytes_of_hex(std::string(64, 'A')), std::logic_error);
}

TEST_CASE("a body's head is cut between characters", "[store]") {
  CHECK(head_of("abc", 3) == "abc");
  CHECK(head_of("abcd", 3) == "abc");
  CHECK(head_of("ab\xc3\xbc", 3) == "ab");
  CHECK(head_of("a\xf0\x9f\x99\x82z", 4) == "a");
  CHECK(head_of("a\xf0\x9f\x99\x82z", 5) == "a\xf0\x9f\x99\x82");
  CHECK(head_of(std::string(6, '\x80'), 5).size() % 3 == 0);
}
