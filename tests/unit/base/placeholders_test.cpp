#include "base/placeholders.h"

#include "base/error.h"
#include "catch.h"

using namespace preval;

namespace {

std::string fill(std::string_view text) {
  return fill_placeholders(text, {{"port", "8080"}, {"name", "a {port}"}}, "here");
}

std::string problem(std::string_view text) {
  try {
    fill(text);
  } catch (const Error& error) {
    REQUIRE(error.kind() == ErrorKind::usage);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "none";
}

}  // namespace

TEST_CASE("placeholders are replaced once, and doubled braces are braces") {
  CHECK(fill("") == "");
  CHECK(fill("--port {port}") == "--port 8080");
  CHECK(fill("{port}{port}") == "80808080");
  CHECK(fill("{name}") == "a {port}");
  CHECK(fill("{{port}}") == "{port}");
  CHECK(fill("{{{port}}}") == "{8080}");
  CHECK(fill("ü {port} ü") == "ü 8080 ü");
}

TEST_CASE("wrong placeholders are usage errors that say what is known") {
  CHECK(problem("{prot}") ==
        "here: unknown placeholder {prot}: did you mean port? | known here: {port}, {name}");
  CHECK(problem("{}") == "here: unknown placeholder {} | known here: {port}, {name}");
  CHECK(problem("a { b").find("here: a single '{' in \"a { b\"") == 0);
  CHECK(problem("a } b").find("here: a single '}'") == 0);
  CHECK(problem("{port").find("here: a single '{'") == 0);
  CHECK(problem("{a{port}").find("here: a single '{'") == 0);
}
