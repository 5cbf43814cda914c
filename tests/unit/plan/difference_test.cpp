#include "plan/difference.h"

#include "catch.h"

using namespace preval;

namespace {

struct Example {
  const char* registered;
  const char* found;
  const char* described;
};

const Example kExamples[] = {
    {R"({"a":1,"b":2})", R"({"b":2,"a":1.0})", ""},
    {R"({"a":1})", R"({"a":2})", "/a: registered 1, found 2"},
    {R"({"a":{"b":[1,{"c":null}]}})", R"({"a":{"b":[1,{"c":false}]}})",
     "/a/b/1/c: registered null, found false"},
    {R"({"a":1})", R"({})", "/a: registered 1, found (absent)"},
    {R"({})", R"({"a":[]})", "/a: registered (absent), found []"},
    {R"({"a":[1,2]})", R"({"a":[1]})", "/a/1: registered 2, found (absent)"},
    {R"({"a":[1]})", R"({"a":[1,{"b":2}]})", "/a/1: registered (absent), found {\"b\":2}"},
    {R"({"a/b":{"~":1}})", R"({"a/b":{"~":2}})", "/a~1b/~0: registered 1, found 2"},
    {R"({"a":[1]})", R"({"a":{"0":1}})", "/a: registered [1], found {\"0\":1}"},
    {R"({"a":1,"b":"x"})", R"({"a":2,"b":"y"})",
     "/a: registered 1, found 2\n/b: registered \"x\", found \"y\""},
    {R"(1)", R"(2)", ": registered 1, found 2"},
};

}  // namespace

TEST_CASE("differences are named by JSON pointer, depth first") {
  for (const Example& example : kExamples) {
    const auto drifts =
        json_differences(Json::parse(example.registered), Json::parse(example.found));
    CHECK(describe(drifts) == example.described);
  }
}

TEST_CASE("long values are shortened between characters") {
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "ä";
  const auto drifts = json_differences(Json{{"a", umlauts}}, Json{{"a", "x" + umlauts}});
  REQUIRE(drifts.size() == 1);
  CHECK(drifts[0].registered.size() == 119 + std::string("…").size());
  CHECK(drifts[0].found.size() == 120 + std::string("…").size());
}

TEST_CASE("only some of many differences are described") {
  Json registered = Json::array(), found = Json::array();
  for (int i = 0; i < 12; ++i) {
    registered.push_back(i);
    found.push_back(i + 1);
  }
  const std::string text = describe(json_differences(registered, found), 2);
  CHECK(text == "/0: registered 0, found 1\n/1: registered 1, found 2\nand 10 more");
}
