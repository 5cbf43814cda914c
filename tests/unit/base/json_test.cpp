#include "base/json.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/python_random.h"
#include "base/sha256.h"
#include "base/text.h"
#include "catch.h"
#include "thrown.h"

namespace preval {

using test::contains;
using test::thrown;

TEST_CASE("values of every kind are read, in their order") {
  const Json value = parse_json(
      R"( {"z":[1,-2,2.5,true,false,null,"x\u00e9\ud83d\ude00",[],{}],"a":{"b":0}} )", "t");
  CHECK(value.begin().key() == "z");
  CHECK(value["z"][0].is_number_unsigned());
  CHECK(value["z"][1] == -2);
  CHECK(value["z"][2].is_number_float());
  CHECK(value["z"][6] == "xé😀");
  CHECK(value.dump() == R"({"z":[1,-2,2.5,true,false,null,"xé😀",[],{}],"a":{"b":0}})");
  CHECK(parse_json("\"alone\"", "t") == "alone");
  CHECK(parse_json("18446744073709551615", "t").get<std::uint64_t>() == ~std::uint64_t{0});
  CHECK(parse_json("-9223372036854775808", "t") == std::numeric_limits<std::int64_t>::min());
  CHECK(parse_json("1e22", "t").is_number_float());
}

TEST_CASE("many keys are read in linear time and kept") {
  std::string text = "{";
  for (int i = 0; i < 50000; ++i) text += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
  const Json value = parse_json(text + "}", "t");
  CHECK(value.size() == 50000);
}

TEST_CASE("errors of the text name file, line and column") {
  struct Case {
    std::string text, place, message;
  };
  const Case cases[] = {
      {"", "line 1, column 1", "unexpected end of input"},
      {"{\"a\": 1,\n \"b\": }", "line 2, column 7", "unexpected '}'"},
      {"{\"a\":1,}", "line 1, column 8", "unexpected '}'"},
      {"[1,]", "line 1, column 4", "unexpected ']'"},
      {"{\"a\":1} x", "line 1, column 9", "invalid literal"},
      {"{\"a\":1}{}", "line 1, column 8", "expected end of input"},
      {"[\n  1\n", "line 3, column 1", "unexpected end of input"},
      {"[NaN]", "line 1, column 2", "invalid literal"},
      {"'a'", "line 1, column 1", "invalid literal"},
      {"// no\n1", "line 1, column 1", "invalid literal"},
      {"01", "line 1, column 2", "expected end of input"},
      {"\"a\tb\"", "line 1, column 3", "control character"},
      {"[\"é\", x]", "line 1, column 7", "invalid literal"},
      {"\r\n\r\n!", "line 3, column 1", "invalid literal"},
      {"\"\\ud800\"", "line 1, column 8", "surrogate"},
      {"1e400", "line 1, column 5", "number overflow"},
      {"{\"a\":1, \"b\":2,\n\"a\":3}", "line 2, column 3", "the key \"a\" appears twice"},
      {"[{\"a\":{\"x\":1,\"\\u0078\":1}}]", "line 1, column 21", "the key \"x\" appears twice"},
      {"[\n36893488147419103232]", "line 2, column 21", "does not fit into 64 bits"},
      {"\xEF\xBB\xBF{}", "line 1, column 1", "byte order mark"},
      {"{}\xEF\xBB\xBF", "line 1, column 3", "invalid literal"},
      {"[\"\xFF\"]", "line 1, column 3", "byte 0xFF is not valid UTF-8"},
      {std::string("{}\0x", 4), "line 1, column 3", "a zero byte"},
  };
  for (const Case& expected : cases) {
    CAPTURE(expected.text);
    const Error error = thrown([&] { parse_json(expected.text, "plan.json"); });
    const std::string message = error.what();
    CHECK(error.kind() == ErrorKind::usage);
    CAPTURE(message);
    CHECK(message.starts_with("plan.json, " + expected.place + ": "));
    CHECK(contains(message, expected.message));
    CHECK_FALSE(contains(message, "json.exception"));
    CHECK_FALSE(error.hint().empty());
  }
}

TEST_CASE("lines are counted from the given one") {
  CHECK(contains(thrown([] { parse_json("{\"a\":}", "all.jsonl", 17); }).what(),
                 "all.jsonl, line 17, column 6: "));
}

TEST_CASE("256 levels of nesting are read, 257 are not") {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  CHECK(parse_json(nested(256), "t").dump() == nested(256));
  CHECK(contains(thrown([&] { parse_json(nested(257), "t"); }).what(),
                 "t, line 1, column 257: more than 256 levels"));
  CHECK(contains(thrown([&] { parse_json(std::string(1000000, '['), "t"); }).what(), "256"));
}

TEST_CASE("the same key in different objects is fine") {
  CHECK(parse_json(R"([{"a":{"a":1}},{"a":2}])", "t").dump() == R"([{"a":{"a":1}},{"a":2}])");
}

TEST_CASE("the canonical form of the example of RFC 8785") {
  const Json value = parse_json(R"({
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]})",
                                "t");
  CHECK(canonical_json(value) ==
        "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
        "\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
}

TEST_CASE("canonical keys are sorted by UTF-16 code units") {
  // The order of RFC 8785, section 3.2.3: the emoji's surrogates come before U+FB33.
  Json value;
  for (const char* key : {"\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"}) {
    value[key] = 0;
  }
  CHECK(canonical_json(value) ==
        "{\"\\r\":0,\"1\":0,\"\u0080\":0,\"\u00f6\":0,\"\u20ac\":0,\"\U0001f600\":0,"
        "\"\ufb33\":0}");
  CHECK(canonical_json(Json{{"ab", 1}, {"", 2}, {"a", 3}}) == R"({"":2,"a":3,"ab":1})");
}

TEST_CASE("canonical numbers") {
  CHECK(canonical_json(Json(1.0)) == "1");
  CHECK(canonical_json(Json(-0.0)) == "0");
  CHECK(canonical_json(parse_json("-0", "t")) == "0");
  CHECK(canonical_json(Json(1e21)) == "1e+21");
  CHECK(canonical_json(Json(9007199254740992)) == "9007199254740992");
  CHECK(canonical_json(Json(-9007199254740992)) == "-9007199254740992");
  for (const Json& value :
       {Json(9007199254740993), Json(-9007199254740993), Json(~std::uint64_t{0})}) {
    const Error error = thrown([&] { canonical_json(Json{{"n", value}}); });
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(contains(error.what(), "beyond 2^53"));
  }
  CHECK(contains(thrown([] { canonical_json(Json(std::nan(""))); }).what(), "not finite"));
}

TEST_CASE("neither rendering writes text that is not UTF-8") {
  for (const Json& value : {Json("a\xFF"), Json{{"\xC3", 1}}}) {
    CHECK(contains(thrown([&] { canonical_json(value); }).what(), "not valid UTF-8"));
    CHECK(contains(thrown([&] { python_json(value, true); }).what(), "not valid UTF-8"));
  }
}

TEST_CASE("canonical digest") {
  CHECK(canonical_sha256(parse_json(R"({"b":1, "a":[ ]})", "t")) ==
        sha256_hex(R"({"a":[],"b":1})"));
}

TEST_CASE("Python's dumps, with and without ensure_ascii") {
  const Json value = parse_json(R"({"a":[1,-2,1.5,1e16,-0.0,null,true,false],)"
                                R"("\u00fc\n\t\"\\/\u007f\u001f\b\f\r":"😀 é )"
                                "\u2028\",\"\":{},\"l\":[]}",
                                "t");
  CHECK(python_json(value, true) ==
        R"({"a": [1, -2, 1.5, 1e+16, -0.0, null, true, false], )"
        R"("\u00fc\n\t\"\\/\u007f\u001f\b\f\r": "\ud83d\ude00 \u00e9 \u2028", "": {}, "l": []})");
  CHECK(python_json(value, false) ==
        R"({"a": [1, -2, 1.5, 1e+16, -0.0, null, true, false], )"
        "\"ü\\n\\t\\\"\\\\/\x7f\\u001f\\b\\f\\r\": \"😀 é \u2028\", \"\": {}, \"l\": []}");
  CHECK(python_json(Json("\U0010FFFF\uFFFF"), true) == R"("\udbff\udfff\uffff")");
  CHECK(python_json(Json{std::nan(""), HUGE_VAL, -HUGE_VAL}, true) == "[NaN, Infinity, -Infinity]");
  CHECK(python_json(Json(~std::uint64_t{0}), true) == "18446744073709551615");
}

TEST_CASE("floats as Python's repr() writes them") {
  const std::vector<std::pair<double, std::string>> cases = {
      {1e16, "1e+16"},
      {1e-05, "1e-05"},
      {-0.0, "-0.0"},
      {0.0, "0.0"},
      {1e22, "1e+22"},
      {123456789012345680.0, "1.2345678901234568e+17"},
      {0.1, "0.1"},
      {1.0, "1.0"},
      {100000.0, "100000.0"},
      {0.0001, "0.0001"},
      {0.00012345, "0.00012345"},
      {9999999999999998.0, "9999999999999998.0"},
      {5e-324, "5e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {9007199254740993.0, "9007199254740992.0"},
      {1e23, "1e+23"},
      {-2.5e-07, "-2.5e-07"},
      {1e15, "1000000000000000.0"},
      {HUGE_VAL, "inf"},
      {-HUGE_VAL, "-inf"},
      {std::numeric_limits<double>::quiet_NaN(), "nan"}};
  for (const auto& [value, text] : cases) CHECK(python_float(value) == text);
}

TEST_CASE("forty thousand doubles are written as CPython writes them") {
  PythonRandom random(1);
  Sha256 hash;
  for (int i = 0; i < 20000; ++i) {
    const auto high = static_cast<std::uint64_t>(random.bits(32)) << 32;
    hash.update(python_float(std::bit_cast<double>(high | random.bits(32))) + "\n");
  }
  for (int i = 0; i < 20000; ++i) hash.update(python_float(random.uniform()) + "\n");
  // Digest of the lines that CPython 3.11's repr() makes of the same doubles.
  CHECK(hash.hex() == "67f0add55b878dadbb32975acf1af78719baac08bb97cddb348c0c4f9096b89c");
}

TEST_CASE("random values survive both renderings") {
  PythonRandom random(3);
  const auto random_text = [&] {
    std::string text;
    const char* const pieces[] = {"a", "\"", "\\", "\n", "é", "€", "😀", "\x01", "/", "\x7f"};
    for (std::size_t n = random.below(6); n > 0; --n) text += pieces[random.below(10)];
    return text;
  };
  const auto random_value = [&](const auto& self, int depth) -> Json {
    switch (random.below(depth > 3 ? 4 : 6)) {
      case 0:
        return random_text();
      case 1:
        return static_cast<int>(random.below(2000)) - 1000;
      case 2:
        return (random.uniform() - 0.5) *
               std::pow(10.0, static_cast<double>(random.below(30)) - 15);
      case 3:
        return random.below(2) == 0 ? Json() : Json(true);
      case 4: {
        Json list = Json::array();
        for (std::size_t n = random.below(5); n > 0; --n) list.push_back(self(self, depth + 1));
        return list;
      }
      default: {
        Json map = Json::object();
        for (std::size_t n = random.below(5); n > 0; --n)
          map[random_text()] = self(self, depth + 1);
        return map;
      }
    }
  };
  for (int i = 0; i < 500; ++i) {
    const Json value = random_value(random_value, 0);
    const std::string canonical = canonical_json(value);
    CAPTURE(canonical);
    CHECK(canonical_json(parse_json(canonical, "t")) == canonical);
    CHECK(parse_json(python_json(value, true), "t") == value);
    CHECK(parse_json(python_json(value, false), "t") == value);
    CHECK_FALSE(contains(canonical, "\n"));
  }
}

}  // namespace preval
