#include <fmt/format.h>

#include <clocale>
#include <locale>
#include <sstream>

#include "base/json.h"
#include "base/text.h"
#include "catch.h"
#include "report/wording.h"

using namespace preval;

namespace {

struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

/// While it lives, C++ streams write numbers as in German, and C's functions as well where the
/// machine has such a locale.
class GermanNumbers {
 public:
  GermanNumbers() : before_(std::locale::global(std::locale(std::locale::classic(), new Comma))) {
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"}) {
      if (std::setlocale(LC_ALL, name) != nullptr) break;
    }
  }
  ~GermanNumbers() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
  }

 private:
  std::locale before_;
};

}  // namespace

TEST_CASE("H8: a locale with decimal commas changes no number that is read or written") {
  const GermanNumbers german;
  std::ostringstream plain;
  plain << 1234.5;
  REQUIRE(plain.str() == "1.234,5");

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
