#include <fmt/format.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <sstream>

#include "base/json.h"
#include "base/temporary_folder.h"
#include "base/text.h"
#include "catch.h"
#include "report/wording.h"
#include "skip.h"

using namespace preval;
using preval::test::skip_test;
using preval::test::TemporaryFolder;

namespace {

struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

/// Sets the locale of C++ streams and gives it back.
class StreamsWithCommas {
 public:
  StreamsWithCommas()
      : before_(std::locale::global(std::locale(std::locale::classic(), new Comma))) {}
  ~StreamsWithCommas() { std::locale::global(before_); }

 private:
  std::locale before_;
};

/// Sets the locale of C's functions to a German one, which is compiled for this test where the
/// machine has what it takes (Debian's package locales).
class FunctionsWithCommas {
 public:
  FunctionsWithCommas() {
    const std::string compile = "localedef -i de_DE -f UTF-8 " +
                                (folder_.path() / "de_DE.UTF-8").string() + " >/dev/null 2>&1";
    if (std::system(compile.c_str()) != 0) return;
    setenv("LOCPATH", folder_.path().c_str(), 1);
    there_ = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
    unsetenv("LOCPATH");
  }
  ~FunctionsWithCommas() { std::setlocale(LC_ALL, "C"); }
  bool there() const { return there_; }

 private:
  TemporaryFolder folder_;
  bool there_ = false;
};

void check_numbers() {
  const Json read = parse_json(R"({"p":0.25,"big":1234567.5,"tiny":1e-7,"n":1234567})", "x");
  CHECK(read["p"] == 0.25);
  CHECK(read["big"] == 1234567.5);
  // What the quick way does not take, the slow way reads alike.
  CHECK(parse_json(R"({"a":"\ud83d\ude00","p":0.25})", "x")["p"] == 0.25);
  CHECK(canonical_json(read) == R"({"big":1234567.5,"n":1234567,"p":0.25,"tiny":1e-7})");
  CHECK(read.dump() == R"({"p":0.25,"big":1234567.5,"tiny":1e-07,"n":1234567})");
  CHECK(percent(0.125) == "12.5 %");
  CHECK(decimals(0.1625) == "0.163");
  CHECK(grouped(1234567) == "1,234,567");
  CHECK(fmt::format("{:.3f} {}", 1.5, 0.1) == "1.500 0.1");
}

}  // namespace

TEST_CASE("H8: C++ streams with decimal commas change no number that is read or written") {
  const StreamsWithCommas german;
  std::ostringstream plain;
  plain << 1234.5;
  REQUIRE(plain.str() == "1.234,5");
  check_numbers();
}

TEST_CASE("H8: a C locale with decimal commas changes no number that is read or written") {
  const FunctionsWithCommas german;
  if (!german.there()) return skip_test("H8: no German locale can be made (package locales)");
  char plain[16];
  std::snprintf(plain, sizeof plain, "%.1f", 0.5);
  REQUIRE(std::string(plain) == "0,5");
  check_numbers();
}
