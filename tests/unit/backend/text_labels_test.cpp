// Labels in lists of token texts.
#include "backend/text_labels.h"

#include <fmt/format.h>

#include <cmath>

#include "backend/dialogues.h"
#include "base/error.h"

using namespace preval;
using namespace preval::test;

namespace {

using Texts = std::vector<std::pair<std::string, double>>;

LabelSpellings spelled(const std::vector<std::string>& labels,
                       const std::vector<std::string>& templates) {
  return {labels, templates, "backend chat: spellings"};
}

LabelSpellings yes_no(const std::vector<std::string>& templates = {"{label}"}) {
  return spelled({"yes", "no"}, templates);
}

Json entry(const std::string& text, double logprob) {
  return {{"token", text}, {"logprob", logprob}, {"bytes", nullptr}};
}

/// What a reply says of its token, the best of the list unless said otherwise.
Json position(const Texts& top, const std::string& sampled = {}) {
  Json list = Json::array();
  for (const auto& [text, logprob] : top) list.push_back(entry(text, logprob));
  return {{"token", sampled.empty() ? top.front().first : sampled},
          {"logprob", top.front().second},
          {"top_logprobs", list}};
}

Distribution read(const Json& json, int k, const LabelSpellings& spellings) {
  auto result = read_text_top(json, k, spellings, ok_reply("{}"));
  if (const auto* failure = std::get_if<Failure>(&result)) {
    FAIL("unexpected failure " << failure->error_class << ": " << failure->message);
  }
  return std::get<Distribution>(std::move(result));
}

Failure failure(const Json& json, int k = 2, const LabelSpellings& spellings = yes_no()) {
  auto result = read_text_top(json, k, spellings, ok_reply("{}"));
  REQUIRE(std::holds_alternative<Failure>(result));
  return std::get<Failure>(std::move(result));
}

}  // namespace

TEST_CASE("labels are matched by their exact text") {
  const Distribution read_as_text =
      read(position({{"yes", -0.5}, {" yes", -1.0}, {"Yes", -1.5}, {"no", -3.0}}), 4, yes_no());
  CHECK(read_as_text.labels[0].logprob == -0.5);
  CHECK(read_as_text.labels[0].source == LabelSource::text);
  CHECK(read_as_text.labels[1].logprob == -3.0);
  CHECK(read_as_text.labels_returned == 2);
  CHECK(read_as_text.predicted == 0);
  CHECK(read_as_text.argmax_is_label == true);
  CHECK(read_as_text.bound == -3.0);
  CHECK(read_as_text.floor == -8.0);
  CHECK(read_as_text.label_mass == Approx(std::exp(-0.5) + std::exp(-3.0)).epsilon(1e-15));
}

TEST_CASE("a label that did not come is at the floor of the list") {
  const Distribution one =
      read(position({{"The", -0.25}, {"no", -2.0}, {"No", -4.0}}), 3, yes_no());
  CHECK(one.labels[0].logprob == -9.0);
  CHECK(one.labels[0].source == LabelSource::floor);
  CHECK(one.labels[1].source == LabelSource::text);
  CHECK(one.labels_returned == 1);
  CHECK(one.predicted == 1);
  CHECK(one.argmax_is_label == false);
}

TEST_CASE("no label at all is no answer") {
  const Failure none =
      failure(position({{"The", -0.5}, {" yes", -1.0}, {"\n", -2.0}, {"NO", -2.5}}), 4);
  CHECK(none.error_class == "no_label");
  CHECK(none.message ==
        R"(no label among the 4 best tokens, which begin with "The", " yes", "\n")");
  CHECK_FALSE(none.retry);
}

TEST_CASE("listed spellings of one label are added up") {
  const Texts top{{"The", -0.5}, {" yes", -1.0}, {"no", -2.0}, {"Yes", -2.5}, {"yes", -4.0}};
  const LabelSpellings both = yes_no({"{label}", " {label}"});
  const Distribution merged = read(position(top), 5, both);
  CHECK(merged.labels[0].logprob ==
        Approx(std::log(std::exp(-1.0) + std::exp(-4.0))).epsilon(1e-15));
  CHECK(merged.labels[1].logprob == -2.0);
  CHECK(merged.labels_returned == 2);
  // What is about the list as a whole does not change by adding up.
  const Distribution plain = read(position(top), 5, yes_no());
  CHECK(merged.floor == -9.0);
  CHECK(merged.bound == -4.0);
  CHECK(merged.entropy == plain.entropy);
  CHECK(merged.argmax_is_label == false);
}

TEST_CASE("adding up does not make a best token out of two others") {
  const Distribution merged = read(position({{"The", -1.0}, {" yes", -1.1}, {"yes", -1.2}}), 3,
                                   yes_no({"{label}", " {label}"}));
  CHECK(merged.labels[0].logprob > -1.0);
  CHECK(merged.argmax_is_label == false);
  // Both spellings of "no" are absent, and each may be as probable as the lowest: -1.2 + ln 2.
  CHECK(*merged.bound == Approx(-0.5068528194400547).epsilon(1e-15));
  CHECK(merged.labels[1].logprob == Approx(-6.2));
  CHECK(merged.labels[1].source == LabelSource::floor);
}

TEST_CASE("absent spellings count in the bound of an absent label") {
  struct Case {
    const char* name;
    std::vector<std::string> templates;
    Texts top;
    double bound;
  };
  const std::vector<std::string> two{"{label}", " {label}"};
  const std::vector<Case> cases = {
      {"one spelling: the lowest entry", {"{label}"}, {{"yes", -0.5}, {"The", -4.0}}, -4.0},
      {"two spellings: -4 + ln 2", two, {{"yes", -0.5}, {"The", -4.0}}, -3.3068528194400546},
      {"three: -2.9 + ln 3",
       {"{label}", " {label}", "\n{label}"},
       {{" yes", -1.0}, {"The", -2.9}},
       -1.8013877113318901},
      {"templates of one text count once",
       {"{label}", "{label}", " {label}", " {label}"},
       {{"yes", -0.5}, {"The", -4.0}},
       -3.3068528194400546},
      {"no label is more than certain", two, {{"yes", -0.1}}, 0.0},
      {"nothing absent but spellings", two, {{"yes", -0.5}, {"no", -2.0}, {"The", -4.0}}, -4.0}};
  for (const Case& each : cases) {
    INFO(each.name);
    const Distribution found =
        read(position(each.top), static_cast<int>(each.top.size()), yes_no(each.templates));
    CHECK(*found.bound == Approx(each.bound).epsilon(1e-15));
    CHECK(*found.floor == each.top.back().second - 5);
  }
  // Where the labels differ in this, the one with most absent spellings decides. Here A is "AA"
  // both ways, B is "AB" and "BA".
  const LabelSpellings uneven = spelled({"A", "B"}, {"A{label}", "{label}A"});
  CHECK(uneven.count(0) == 1);
  CHECK(uneven.count(1) == 2);
  CHECK(uneven.any_several());
  CHECK(read(position({{"BA", -0.5}, {"x", -1.2}}), 2, uneven).bound == -1.2);
  CHECK(*read(position({{"AA", -0.2}, {"x", -1.2}}), 2, uneven).bound ==
        Approx(-0.5068528194400547).epsilon(1e-15));
  CHECK_FALSE(yes_no({"{label}", "{label}"}).any_several());
}

TEST_CASE("the choice is not certain while absent spellings could overturn it") {
  const std::vector<std::string> one{"{label}"}, two{"{label}", " {label}"};
  const auto tied = [](const std::vector<std::string>& templates, const Texts& top) {
    return read(position(top), static_cast<int>(top.size()), yes_no(templates)).tied_at_bound;
  };
  // "no" absent: at most e^-1.2, twice that with two spellings (ln: -0.507).
  CHECK_FALSE(tied(one, {{"yes", -1.0}, {"The", -1.2}}));
  CHECK(tied(two, {{"yes", -1.0}, {"The", -1.2}}));
  CHECK_FALSE(tied(two, {{"yes", -0.5}, {"The", -1.2}}));
  // "no" listed with one of two spellings: ln(e^-1.5 + e^-1.6) = -0.856, ln(e^-2 + e^-4) = -1.873.
  CHECK_FALSE(tied(one, {{"yes", -1.0}, {"no", -1.5}, {"The", -1.6}}));
  CHECK(tied(two, {{"yes", -1.0}, {"no", -1.5}, {"The", -1.6}}));
  CHECK_FALSE(tied(two, {{"yes", -1.0}, {"no", -2.0}, {"The", -4.0}}));
  CHECK(tied(two, {{"The", -0.4}, {"yes", -1.9}, {"no", -2.0}, {"a", -4.0}}));
  // A sum of listed spellings against the same ones at the bound: equal, in whatever order.
  CHECK(tied(two, {{"yes", -2.0}, {" yes", -2.0}}));
  CHECK(tied(two, {{" yes", -1.1}, {"no", -1.1}, {"yes", -1.7}}));
  CHECK(tied(two, {{" yes", -1.7}, {"no", -1.1}, {"yes", -1.1}, {"x", -1.7}}));
  CHECK_FALSE(tied(two, {{" yes", -1.1}, {"no", -1.2}, {"yes", -1.7}}));
  // Nothing is absent.
  CHECK_FALSE(tied(two, {{"yes", -1.0}, {"no", -2.0}, {" yes", -2.5}, {" no", -2.5}}));
  // With one spelling: as in any top-k read.
  CHECK(tied(one, {{"The", -0.1}, {"yes", -3.0}}));
  CHECK_FALSE(tied(one, {{"The", -0.1}, {"yes", -3.0}, {"no", -3.0}}));
}

TEST_CASE("bounds change neither floor nor probabilities") {
  const Texts top{{"yes", -1.0}, {"The", -1.2}, {"no", -3.0}};
  const Distribution one = read(position(top), 3, yes_no());
  const Distribution two = read(position(top), 3, yes_no({"{label}", " {label}"}));
  CHECK(one.floor == two.floor);
  CHECK(one.predicted == two.predicted);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(one.labels[i].logprob == two.labels[i].logprob);
    CHECK(one.labels[i].probability == two.labels[i].probability);
  }
}

TEST_CASE("spellings that are more probable together than certain are no read") {
  const LabelSpellings both = yes_no({"{label}", " {label}"});
  const Failure impossible =
      failure(position({{"yes", -0.5}, {" yes", -0.5}, {"no", -1.5}}), 3, both);
  CHECK(impossible.error_class == "impossible_sum");
  CHECK(impossible.message == "the spellings of one label have probability 1.213 together");
  CHECK_FALSE(impossible.retry);
  // Rounding alone may pass 1 by a little; that is 1.
  CHECK(read(position({{"yes", -0.69}, {" yes", -0.69}}), 2, both).labels[0].logprob == 0);
}

TEST_CASE("a spelling that means two labels is an error of the plan") {
  CHECK_THROWS_AS(spelled({"1", "11"}, {"{label}", "1{label}"}), Error);
  try {
    spelled({"1", "11"}, {"{label}", "1{label}"});
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(std::string(error.what()) ==
          R"(backend chat: spellings: "11" would mean both label "1" and label "11")");
  }
  // The same text twice for one label is no harm.
  CHECK(spelled({"A", "B"}, {"{label}", "{label}"}).label_of("B") == 1);
  CHECK_FALSE(spelled({"A", "B"}, {"{label}"}).label_of("b"));
  CHECK(spelled({"A", "B"}, {"{label}"}).size() == 2);
}

TEST_CASE("bytes decide, not what they are printed as") {
  Json said = position({{"\xEF\xBF\xBD", -0.5}, {"\xEF\xBF\xBD", -1.0}, {"no", -2.0}});
  said["top_logprobs"][0]["bytes"] = {121, 101, 115};  // yes
  said["top_logprobs"][1]["bytes"] = {226, 128};       // two thirds of a dash
  said["top_logprobs"][2]["bytes"] = {110, 111};
  const Distribution by_bytes = read(said, 3, yes_no());
  CHECK(by_bytes.labels[0].logprob == -0.5);
  CHECK(by_bytes.labels_returned == 2);
  // A text that says yes does not, when its bytes say something else.
  said["top_logprobs"][2]["token"] = "yes";
  said["top_logprobs"][0]["bytes"] = {226, 129};
  CHECK(read(said, 3, yes_no()).labels[0].source == LabelSource::floor);
}

TEST_CASE("one whole text twice is refused") {
  CHECK(failure(position({{"yes", -0.5}, {"yes", -1.0}})).error_class == "duplicate_key");
  CHECK(failure(position({{"yes", -0.5}, {"yes", -1.0}})).message ==
        "token \"yes\" is there twice");
  Json differ = position({{"yes", -0.5}, {"yes", -1.0}});
  differ["top_logprobs"][0]["bytes"] = {121, 101, 115};
  differ["top_logprobs"][1]["bytes"] = {121, 101, 115, 0};
  CHECK(read(differ, 2, yes_no()).labels[0].logprob == -0.5);
  // Control tokens are printed as nothing, pieces of characters as U+FFFD: those are no texts.
  const std::string piece = "\xEF\xBF\xBD";
  CHECK(read(position({{"yes", -0.5}, {"", -1}, {"", -2}, {piece, -3}, {piece, -4}}), 5, yes_no())
            .labels_returned == 1);
}

TEST_CASE("the sampled token is left out when it is there only because it was sampled") {
  const Texts best{{"yes", -0.5}, {"no", -1.5}, {"The", -3.0}};
  const Distribution expected = read(position(best), 3, yes_no());
  const auto same = [&](const Json& said) {
    const Distribution found = read(said, 3, yes_no());
    return found.floor == expected.floor && found.entropy == expected.entropy &&
           found.labels[1].logprob == expected.labels[1].logprob;
  };
  // One more than asked for, first or last.
  CHECK(same(position({{"x", -9.0}, {"yes", -0.5}, {"no", -1.5}, {"The", -3.0}}, "x")));
  CHECK(same(position({{"yes", -0.5}, {"no", -1.5}, {"The", -3.0}, {"x", -9.0}}, "x")));
  // vLLM cuts the list behind the sampled token, which stands first: one of the best is lost.
  const Distribution cut =
      read(position({{"x", -9.0}, {"yes", -0.5}, {"no", -1.5}}, "x"), 3, yes_no());
  CHECK(cut.bound == -1.5);
  CHECK(cut.floor == -6.5);
  // In its place it is one of the best, though the least of them.
  CHECK(read(position(best, "The"), 3, yes_no()).bound == -3.0);
  CHECK(read(position(best, "yes"), 3, yes_no()).bound == -3.0);
}

TEST_CASE("A10: text: no list is no read") {
  for (const char* said : {R"({"token":"yes","logprob":-0.5})",
                           R"({"token":"yes","logprob":-0.5,"top_logprobs":null})",
                           R"({"token":"yes","logprob":-0.5,"top_logprobs":[]})", "null", "7"}) {
    INFO(said);
    CHECK(failure(Json::parse(said)).error_class == "no_logprobs");
  }
}

TEST_CASE("lists that are not what was asked for") {
  const auto class_of = [](const char* list) {
    return failure(Json::parse(std::string(R"({"top_logprobs":)") + list + "}")).error_class;
  };
  CHECK(class_of(R"({"yes":-0.5})") == "unexpected_reply");
  CHECK(class_of(R"(["yes","no"])") == "unexpected_reply");
  CHECK(class_of(R"([{"token":5,"logprob":-1},{"token":"no","logprob":-2}])") ==
        "unexpected_reply");
  CHECK(class_of(R"([{"token":"yes"},{"token":"no","logprob":-2}])") == "unexpected_reply");
  CHECK(class_of(R"([{"token":"yes","logprob":"-1"},{"token":"no","logprob":-2}])") ==
        "unexpected_reply");
  CHECK(class_of(R"([{"token":"yes","logprob":null},{"token":"no","logprob":-2}])") ==
        "not_finite");
  CHECK(class_of(R"([{"token":"yes","logprob":0.5},{"token":"no","logprob":-2}])") == "not_finite");
  for (const char* bytes : {"7", R"("eWVz")", "[300]", "[-1]", R"(["y"])", "[1.5]"}) {
    INFO(bytes);
    CHECK(class_of(fmt::format(R"([{{"token":"yes","logprob":-1,"bytes":{}}},)"
                               R"({{"token":"no","logprob":-2}}])",
                               bytes)
                       .c_str()) == "unexpected_reply");
  }
  CHECK(failure(position({{"yes", -0.5}, {"no", -1.5}}), 20).message ==
        "20 log-probabilities asked for, 2 came");
  CHECK(failure(position({{"yes", -0.5}, {"no", -1.5}, {"The", -2.0}}), 2).error_class ==
        "unexpected_reply");
  CHECK(failure(position({{"yes", 0.5}, {"no", -1.5}})).message ==
        "0.5 as the log-probability of \"yes\"");
}

TEST_CASE("A1: text: a sentinel among the best spoils the list") {
  const Failure sentinel = failure(position({{"yes", -0.5}, {"no", -9999.0}}));
  CHECK(sentinel.error_class == "logprob_sentinel");
  CHECK(sentinel.message == "token \"no\": -9999");
  CHECK(sentinel.alone);
  CHECK(failure(position({{"yes", -0.5}, {"no", -3.4028234663852886e38}})).error_class ==
        "logprob_sentinel");
}

TEST_CASE("the lead without the space that belongs to the label") {
  Prompt prompt;
  prompt.lead = "decision: ";
  CHECK(open_lead(prompt) == "decision:");
  prompt.lead = "decision:";
  CHECK(open_lead(prompt) == "decision:");
  prompt.lead = "";
  CHECK(open_lead(prompt).empty());
}
