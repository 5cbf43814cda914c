#include "read/labels.h"

#include "base/error.h"
#include "catch.h"

using namespace preval;

namespace {

using Sequences = std::vector<std::vector<TokenId>>;

std::string problem(const Sequences& tokenised, const std::vector<std::string>& labels) {
  try {
    find_label_tokens(tokenised, labels, "record r1");
  } catch (const Error& error) {
    REQUIRE(error.kind() == ErrorKind::usage);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("letters carry the blank before them, digits do not: both are one token behind a lead") {
  // "decision: A" and "decision: 1" as SmolLM2 tokenises them.
  const LabelTokens letters =
      find_label_tokens({{43066, 42, 330}, {43066, 42, 389}}, {"A", "B"}, "r");
  CHECK(letters.lead == std::vector<TokenId>{43066, 42});
  CHECK(letters.labels == std::vector<TokenId>{330, 389});
  const LabelTokens digits = find_label_tokens(
      {{43066, 42, 216, 33}, {43066, 42, 216, 34}, {43066, 42, 216, 35}}, {"1", "2", "3"}, "r");
  CHECK(digits.lead == std::vector<TokenId>{43066, 42, 216});
  CHECK(digits.labels == std::vector<TokenId>{33, 34, 35});
}

TEST_CASE("a label that is not one token in its context is refused (A13)") {
  // Behind "Answer:" the label " yes" is one token, behind "Answer: " it would be two.
  CHECK(problem({{9, 5, 70}, {9, 5, 71, 72}}, {"yes", "nope"}) ==
        "record r1: label \"nope\" is not one token at the place of label \"yes\": [9, 5, 71, 72] "
        "and [9, 5, 70]");
  CHECK(problem({{9, 5, 6, 70}, {9, 5, 7, 71}}, {"yes", "no"}).find("not one token") !=
        std::string::npos);
  CHECK(problem({{9, 5, 70}, {}}, {"yes", "no"}).find("label \"no\" is not one token") !=
        std::string::npos);
  CHECK(problem({{}, {}}, {"yes", "no"}).find("label \"yes\" is not one token") !=
        std::string::npos);
}

TEST_CASE("two labels of one token are refused") {
  CHECK(problem({{9, 70}, {9, 71}, {9, 70}}, {"A", "B", "Á"}) ==
        "record r1: labels \"A\" and \"Á\" are one token, 70");
}

TEST_CASE("a sequence per label is needed") {
  CHECK(problem({{1, 2}}, {"A", "B"}) == "record r1: 1 token sequences for 2 labels");
  CHECK(problem({}, {}) == "record r1: 0 token sequences for 0 labels");
}
