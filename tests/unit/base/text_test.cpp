#include "base/text.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <stdexcept>

#include "base/python_random.h"
#include "base/sha256.h"
#include "catch.h"

namespace preval {

using Words = std::vector<std::string>;

TEST_CASE("valid UTF-8 of every length passes") {
  for (const char* text : {"", "plain ASCII, longer than eight bytes", "é", "a\u00E9b", "\u20AC",
                           "\U0001F600", "\uD7FF\uE000", "\U0010FFFF", "eight678\u00E9eight678"}) {
    CHECK(invalid_utf8(text) == std::nullopt);
  }
}

TEST_CASE("anything becomes valid UTF-8") {
  CHECK(made_valid("") == "");
  CHECK(made_valid("gr\u00FC\u00DF") == "gr\u00FC\u00DF");
  CHECK(made_valid("a\xff"
                   "b\xc3") == "a\uFFFDb\uFFFD");
}

TEST_CASE("what people read holds nothing that moves a cursor or hides a word") {
  CHECK(printable("tab\tand\nlines, gr\u00FC\u00DFe \u2265 \U0001F600") ==
        "tab\tand\nlines, gr\u00FC\u00DFe \u2265 \U0001F600");
  CHECK(printable("\x1b[31mred\x07\r") == "\uFFFD[31mred\uFFFD\uFFFD");
  CHECK(printable(std::string("a\0b", 3)) == "a\uFFFDb");
  CHECK(printable("\x7f\u0085\u009b") == "\uFFFD\uFFFD\uFFFD");
  CHECK(printable("a\u202Eb\u2066c\u200F") == "a\uFFFDb\uFFFDc\uFFFD");
  CHECK(printable("\u2029\u202F\u2065\u206A") == "\u2029\u202F\u2065\u206A");
  CHECK(printable("bad \xc3") == "bad \uFFFD");
}

TEST_CASE("the first byte that is not UTF-8 is found") {
  const std::vector<std::pair<std::string, std::size_t>> cases = {
      {"\x80", 0},              // continuation without a lead
      {"ab\xC3", 2},            // ends within a character
      {"\xC0\xAF", 0},          // overlong
      {"\xC1\xBF", 0},          // overlong
      {"\xE0\x80\xAF", 0},      // overlong
      {"\xF0\x8F\xBF\xBF", 0},  // overlong
      {"é\xED\xA0\x80", 2},     // surrogate
      {"\xF4\x90\x80\x80", 0},  // above U+10FFFF
      {"\xF5\x80\x80\x80", 0},
      {"\xFF", 0},
      {"\xE2\x82", 0},
      {"\xE2\x28\xA1", 0},
      {"0123456789abcdef\xFFx", 16},
      {"\xE2\x82\xAC\xE2\x82", 3}};
  for (const auto& [text, offset] : cases) {
    CAPTURE(text);
    CHECK(invalid_utf8(text) == offset);
  }
}

TEST_CASE("every code point but the surrogates is valid, by its encoding") {
  std::size_t wrong = 0;
  for (unsigned code = 0x800; code < 0x10000; ++code) {
    const std::string text = {static_cast<char>(0xE0 | code >> 12),
                              static_cast<char>(0x80 | (code >> 6 & 0x3F)),
                              static_cast<char>(0x80 | (code & 0x3F))};
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    if (invalid_utf8(text).has_value() != surrogate) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("columns on a terminal") {
  CHECK(display_width("") == 0);
  CHECK(display_width("accuracy") == 8);
  CHECK(display_width("Größe") == 5);
  CHECK(display_width("e\u0301") == 1);  // combining acute
  CHECK(display_width("日本語") == 6);
  CHECK(display_width("한국") == 4);
  CHECK(display_width("ｆｕｌｌ") == 8);
  CHECK(display_width("😀") == 2);
  CHECK(display_width("→ ± …") == 5);
  CHECK(display_width("a\u200Bb") == 2);  // zero width space
  CHECK(display_width("a\tb\n") == 2);
  CHECK(display_width("\xFF\xFE") == 2);
}

TEST_CASE("the nearest candidate is offered when it is near enough") {
  const Words commands = {"verify", "lock", "run", "report", "score"};
  CHECK(nearest("verfy", commands) == "verify");
  CHECK(nearest("vreify", commands) == "verify");
  CHECK(nearest("repotr", commands) == "report");
  CHECK(nearest("run", commands) == "run");
  CHECK(nearest("banana", commands) == std::nullopt);
  CHECK(nearest("", commands) == std::nullopt);
  CHECK(nearest("run", {}) == std::nullopt);
  CHECK(nearest("ab", {"ax", "bx", "ab"}) == "ab");
  CHECK(nearest("ab", {"ax", "ay"}) == "ax");
  CHECK(did_you_mean("scroe", commands) == ": did you mean score?");
  CHECK(did_you_mean("banana", commands).empty());
}

TEST_CASE("the shortest form is ECMAScript's") {
  const std::vector<std::pair<double, std::string>> cases = {
      {0, "0"},
      {-0.0, "-0"},
      {1, "1"},
      {-1.5, "-1.5"},
      {0.1, "0.1"},
      {100000, "100000"},
      {1e20, "100000000000000000000"},
      {1e21, "1e+21"},
      {1e-6, "0.000001"},
      {1e-7, "1e-7"},
      {1.5e-7, "1.5e-7"},
      {1e23, "1e+23"},
      {5e-324, "5e-324"},
      {333333333.33333329, "333333333.3333333"},
      {123456789012345680000.0, "123456789012345680000"},
      {0.3 - 0.1, "0.19999999999999998"}};
  for (const auto& [value, text] : cases) CHECK(shortest(value) == text);
  CHECK_THROWS_AS(shortest(std::numeric_limits<double>::infinity()), std::logic_error);
  CHECK_THROWS_AS(shortest(std::numeric_limits<double>::quiet_NaN()), std::logic_error);
}

TEST_CASE("forty thousand doubles are written as JSON.stringify writes them, and read back") {
  PythonRandom random(1);
  Sha256 hash;
  const auto add = [&](double value) {
    if (!std::isfinite(value)) return;
    const std::string text = shortest(value);
    if (to_double(text) != value) FAIL(text);
    hash.update(text + "\n");
  };
  for (int i = 0; i < 20000; ++i) {
    const auto high = static_cast<std::uint64_t>(random.bits(32)) << 32;
    add(std::bit_cast<double>(high | random.bits(32)));
  }
  for (int i = 0; i < 20000; ++i) add(random.uniform());
  // Digest of the lines that Node 18's JSON.stringify makes of the same doubles.
  CHECK(hash.hex() == "472c78e6f86f58b5fad5602843f6f3390fff5884da4412f72b4ba332e7c928d2");
}

TEST_CASE("numbers are whole texts") {
  CHECK(to_double("0.25") == 0.25);
  CHECK(to_double("-1e-5") == -1e-5);
  CHECK(to_double("7") == 7.0);
  for (const char* text : {"", " 1", "1 ", "+1", "1,5", "0x10", "nan", "inf", "1e999", "1.5x"}) {
    CAPTURE(text);
    CHECK(to_double(text) == std::nullopt);
  }
  CHECK(to_integer("-42") == -42);
  CHECK(to_integer("9223372036854775807") == std::numeric_limits<long long>::max());
  for (const char* text : {"", "1.0", "9223372036854775808", "1e3", "+1", "0x1"}) {
    CAPTURE(text);
    CHECK(to_integer(text) == std::nullopt);
  }
}

TEST_CASE("large numbers get separators") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(3880) == "3,880");
  CHECK(grouped(-1234567) == "-1,234,567");
  CHECK(grouped(-999) == "-999");
  CHECK(grouped(std::numeric_limits<long long>::min()) == "-9,223,372,036,854,775,808");
}

TEST_CASE("durations are written for people") {
  const std::vector<std::pair<double, std::string>> cases = {
      {0, "0 ms"},           {0.35, "350 ms"},
      {0.9994, "999 ms"},    {0.9996, "1.0 s"},
      {1.44, "1.4 s"},       {59.94, "59.9 s"},
      {59.96, "1:00"},       {125, "2:05"},
      {3599.6, "1:00:00"},   {3725, "1:02:05"},
      {360000, "100:00:00"}, {-125, "-2:05"},
      {1e300, "unknown"},    {std::numeric_limits<double>::quiet_NaN(), "unknown"}};
  for (const auto& [seconds, text] : cases) CHECK(human_duration(seconds) == text);
}

TEST_CASE("joining") {
  CHECK(join({}, ", ").empty());
  CHECK(join({"a"}, ", ") == "a");
  CHECK(join({"a", "", "b"}, ", ") == "a, , b");
}

}  // namespace preval
