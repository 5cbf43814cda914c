// Answers of decision servers. The long ones are what callo 0.3.1 sent for records of our own.
#include "backend/systemone_answer.h"

#include <fmt/format.h>

#include <cmath>

#include "backend/dialogues.h"
#include "suite/record.h"

using namespace preval;
using namespace preval::test;

namespace {

Record record_of(QuestionType type, const std::vector<std::string>& keys) {
  Record record;
  record.id = "r-1";
  record.question.id = "decision";
  record.question.type = type;
  for (const std::string& key : keys) record.question.alternatives.push_back({key, ""});
  return record;
}

Prompt prompt_of(const std::vector<std::string>& labels) {
  Prompt prompt;
  prompt.labels = labels;
  for (std::size_t i = 0; i < labels.size(); ++i) prompt.options.push_back(static_cast<int>(i));
  return prompt;
}

struct Asked {
  QuestionType type;
  std::vector<std::string> labels;
  BackendSpec spec = {};
};

std::variant<Answer, Failure> answer_to(const Asked& asked, const std::string& said) {
  const Record record = record_of(asked.type, asked.labels);
  const Prompt prompt = prompt_of(asked.labels);
  const HttpReply reply = ok_reply(said);
  return read_systemone(Json::parse(said), {&record, &prompt, "none", 0}, asked.spec, reply);
}

std::string reply_with(const std::string& answer) {
  return R"({"model":"m","answers":{"decision":)" + answer + "}}";
}

Answer answer(const Asked& asked, const std::string& said) {
  auto read = answer_to(asked, said);
  if (const auto* failure = std::get_if<Failure>(&read)) {
    FAIL("unexpected failure " << failure->error_class << ": " << failure->message);
  }
  return std::get<Answer>(std::move(read));
}

Failure failure(const Asked& asked, const std::string& said) {
  auto read = answer_to(asked, reply_with(said));
  REQUIRE(std::holds_alternative<Failure>(read));
  return std::get<Failure>(std::move(read));
}

const Asked kNoul{QuestionType::noul, {"true", "false"}};
const Asked kChoice{QuestionType::choice, {"alarm", "music", "weather"}};
const Asked kScore{QuestionType::score, {"0", "1", "2"}};

Asked with(Asked asked, ScoredNative scored, LevelRule rule = LevelRule::none) {
  asked.spec.scored = scored;
  asked.spec.score_level = rule;
  return asked;
}

/// `count` options o0, o1, …
Asked options(std::size_t count) {
  Asked asked{QuestionType::choice, {}};
  for (std::size_t i = 0; i < count; ++i) asked.labels.push_back(fmt::format("o{}", i));
  return asked;
}

/// An answer whose probabilities are `first` and then `rest`.
std::string printed(std::size_t count, const char* first, const char* rest) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) {
    list += fmt::format(R"({}"o{}":{})", i == 0 ? "" : ",", i, i == 0 ? first : rest);
  }
  return R"({"type":"choice","choice":"o0","probabilities":{)" + list + "}}";
}

}  // namespace

TEST_CASE("systemone: yes or no is one number") {
  const Answer read = answer(
      kNoul,
      R"({"model": "m", "answers": {"decision": {"type": "noul", "noul": 0.4453497617653607}},)"
      R"( "usage": {"input_tokens": 104, "output_tokens": 0}})");
  const Distribution& found = read.distribution;
  REQUIRE(found.labels.size() == 2);
  CHECK(found.labels[0].probability == 0.4453497617653607);
  CHECK(found.labels[1].probability == 1 - 0.4453497617653607);
  CHECK(found.labels[0].source == LabelSource::native);
  CHECK(std::isnan(found.labels[0].logprob));
  CHECK(std::isnan(found.label_mass));
  CHECK_FALSE(found.entropy);
  CHECK_FALSE(found.floor);
  CHECK_FALSE(found.argmax_is_label);
  CHECK(found.predicted == 1);
  CHECK_FALSE(found.tied);
  CHECK(found.labels_returned == 2);
  REQUIRE(read.native);
  CHECK(read.native->printed_sum == Approx(1.0).epsilon(1e-15));
  CHECK_FALSE(read.native->sum_is_off);
  CHECK_FALSE(read.native->choice_differs);
  CHECK_FALSE(read.native->value);
  CHECK(read.prompt_tokens == 104);

  CHECK(answer(kNoul, reply_with(R"({"noul":0.5})")).distribution.tied);
  CHECK(answer(kNoul, reply_with(R"({"noul":0.5})")).distribution.predicted == 0);
  // Both numbers, where a server has both.
  const Answer both = answer(kNoul, reply_with(R"({"type":"noul","noul":0.3,)"
                                               R"("probabilities":{"false":0.71,"true":0.3}})"));
  CHECK(both.distribution.labels[1].probability == 0.71);
  CHECK(both.native->printed_sum == Approx(1.01).epsilon(1e-15));
  CHECK_FALSE(both.native->choice_differs);
  // The probabilities count, and the contradiction is marked.
  const Answer torn = answer(kNoul, reply_with(R"({"type":"noul","noul":0.9,)"
                                               R"("probabilities":{"false":0.7,"true":0.3}})"));
  CHECK(torn.distribution.labels[0].probability == 0.3);
  CHECK(torn.native->choice_differs);
}

TEST_CASE("systemone: a choice has a number per option, in the order asked") {
  const std::string said =
      R"({"answers": {"decision": {"type": "choice", "choice": "music", "confidence": 0.13843894430878853,)"
      R"( "probabilities": {"alarm": 0.4245660199219823, "music": 0.4256259628725257, "weather": )"
      R"(0.14980801720549206}}}, "usage": {"input_tokens": 99, "output_tokens": 0}})";
  const Answer read = answer(kChoice, said);
  CHECK(read.distribution.predicted == 1);
  CHECK(read.distribution.labels[2].probability == 0.14980801720549206);
  CHECK(read.native->printed_sum == Approx(1.0).epsilon(1e-15));
  // Asked the other way round, positions are the other way round.
  const Answer reversed = answer({QuestionType::choice, {"weather", "music", "alarm"}}, said);
  CHECK(reversed.distribution.labels[0].probability == 0.14980801720549206);
  CHECK(reversed.distribution.predicted == 1);
}

TEST_CASE("systemone: a score has a number per level, from 0") {
  const Answer read = answer(
      kScore,
      R"({"answers": {"decision": {"type": "score", "score": 0.4915966298508848, "legend": {"0": "bad", )"
      R"("1": "fair", "2": "good"}, "probabilities": {"0": 0.6438156015928889, "1": 0.22077216696333765, )"
      R"("2": 0.13541223144377357}, "confidence": 0.2626050552236727}}, "usage": {"input_tokens": 95}})");
  CHECK(read.distribution.predicted == 0);
  CHECK(read.distribution.labels[2].probability == 0.13541223144377357);
  // The rule is for scores that are a level and nothing else.
  CHECK_FALSE(read.native->value);
}

TEST_CASE("systemone: levels that are counted from 1") {
  const Answer read =
      answer(kScore,
             reply_with(R"({"type":"score","score":1.6,"legend":{"1":"bad","2":"fair","3":"good"},)"
                        R"("probabilities":{"1":0.6,"2":0.35,"3":0.05}})"));
  CHECK(read.distribution.labels[0].probability == 0.6);
  CHECK(read.distribution.labels[2].probability == 0.05);
  CHECK(answer(kScore, reply_with(R"({"score":1.6,"probabilities":{"1":0.6,"2":0.35,"3":0.05}})"))
            .distribution.predicted == 0);
  // A legend from 0 says that it is level 0 that is missing.
  CHECK(failure(kScore, R"({"score":1.6,"legend":{"0":"bad","1":"fair","2":"good"},)"
                        R"("probabilities":{"1":0.6,"2":0.4}})")
            .error_class == "missing_label");
  CHECK(
      failure(kScore, R"({"score":1.6,"probabilities":{"2":0.6,"3":0.35,"4":0.05}})").error_class ==
      "unexpected_reply");
  CHECK(failure(kScore, R"({"score":1.6,"probabilities":{"bad":0.6,"fair":0.35,"good":0.05}})")
            .message == "a probability for \"bad\", which is no option");
}

TEST_CASE("systemone: a score that is an expected level counts as the plan says") {
  const std::string said =
      R"({"type":"score","score":1.5,"legend":{"0":"bad","1":"fair","2":"good"}})";
  struct Row {
    LevelRule rule;
    int level;
  };
  for (const Row& row :
       {Row{LevelRule::nearest, 2}, Row{LevelRule::floor, 1}, Row{LevelRule::ceiling, 2}}) {
    const Answer read =
        answer(with(kScore, ScoredNative::probabilities, row.rule), reply_with(said));
    CHECK(read.distribution.predicted == row.level);
    CHECK(read.distribution.labels.empty());
    CHECK(read.distribution.labels_returned == 0);
    CHECK(std::isnan(read.distribution.label_mass));
    CHECK(read.native->value == 1.5);
  }
  const Failure none = failure(kScore, said);
  CHECK(none.error_class == "no_level_rule");
  CHECK(none.message ==
        "the score 1.5 is an expected level, and the plan does not say which level it counts as "
        "(score_level)");
  const Asked nearest = with(kScore, ScoredNative::probabilities, LevelRule::nearest);
  // The legend says where counting begins.
  CHECK(answer(nearest, reply_with(R"({"score":1.18,"legend":{"1":"bad","2":"fair","3":"good"}})"))
            .native->value == Approx(0.18));
  CHECK(answer(nearest, reply_with(R"({"score":1.18})")).native->value == 1.18);
  CHECK(answer(nearest, reply_with(R"({"score":2.004})")).native->value == 2.0);
  CHECK(failure(nearest, R"({"score":2.1})").message == "a score of 2.1 on a scale from 0 to 2");
  CHECK(failure(nearest, R"({"score":-0.1})").error_class == "unexpected_reply");
  CHECK(failure(nearest, R"({"score":"good"})").error_class == "unexpected_reply");
  CHECK(failure(nearest, R"({"score":null})").error_class == "unexpected_reply");
}

TEST_CASE("systemone: which level an expected level counts as") {
  CHECK(level_of(0.49, 3, LevelRule::nearest) == 0);
  CHECK(level_of(0.5, 3, LevelRule::nearest) == 1);
  CHECK(level_of(1.5, 3, LevelRule::nearest) == 2);
  CHECK(level_of(2.0, 3, LevelRule::nearest) == 2);
  CHECK(level_of(1.99, 3, LevelRule::floor) == 1);
  CHECK(level_of(1.01, 3, LevelRule::ceiling) == 2);
  CHECK(level_of(1.0, 3, LevelRule::ceiling) == 1);
}

TEST_CASE("I1: thirds that add up to 0.99 are accepted") {
  const Answer read = answer(options(3), reply_with(printed(3, "0.33", "0.33")));
  CHECK(read.native->printed_sum == Approx(0.99).epsilon(1e-15));
  CHECK_FALSE(read.native->sum_is_off);
  CHECK(read.distribution.labels[0].probability == 0.33);
  CHECK(read.distribution.tied);
  CHECK(read.distribution.predicted == 0);
}

TEST_CASE("I2: 0.79 and 39 times 0.01 are accepted, and flagged") {
  const Answer read = answer(options(40), reply_with(printed(40, "0.79", "0.01")));
  CHECK(read.native->printed_sum == Approx(1.18).epsilon(1e-15));
  CHECK(read.native->sum_is_off);
  CHECK(read.distribution.labels[0].probability == 0.79);
}

TEST_CASE("I3: 200 times 0.0 is refused") {
  const Failure nothing = failure(options(200), printed(200, "0.0", "0.0"));
  CHECK(nothing.error_class == "impossible_sum");
  CHECK(nothing.message == "200 printed probabilities add up to 0: no rounding makes that of 1");
  CHECK_FALSE(nothing.retry);
}

TEST_CASE(
    "I4: a choice that is not the largest number is flagged, and the plan says which counts") {
  const std::string said =
      R"({"type":"choice","choice":"alarm","probabilities":{"alarm":0.44,"music":0.46,"weather":0.1}})";
  const Answer by_number = answer(kChoice, reply_with(said));
  CHECK(by_number.native->choice_differs);
  CHECK(by_number.distribution.predicted == 1);
  const Answer by_name = answer(with(kChoice, ScoredNative::choice), reply_with(said));
  CHECK(by_name.native->choice_differs);
  CHECK(by_name.distribution.predicted == 0);
  // One step of the last decimal is rounding.
  const Answer near = answer(
      with(kChoice, ScoredNative::choice),
      reply_with(
          R"({"choice":"alarm","probabilities":{"alarm":0.45,"music":0.46,"weather":0.1}})"));
  CHECK_FALSE(near.native->choice_differs);
  CHECK(near.distribution.predicted == 0);
}

TEST_CASE("the sums that rounding can print, in integers") {
  struct Row {
    std::vector<double> printed;
    bool possible, off;
  };
  for (const Row& row :
       {Row{{0.5, 0.5}, true, false}, Row{{0.5, 0.49}, true, false}, Row{{0.5, 0.51}, true, false},
        Row{{0.5, 0.48}, false, false}, Row{{0.5, 0.52}, false, false},
        Row{{1.0, 0.0}, true, false}, Row{{0.0, 0.0}, false, true}, Row{{0.9951, 0.0}, true, false},
        Row{std::vector<double>(10, 0.095), true, false},
        Row{std::vector<double>(10, 0.105), true, false},
        Row{std::vector<double>(10, 0.094), false, true},
        Row{std::vector<double>(10, 0.106), false, true},
        Row{std::vector<double>(255, 0.01), false, true}}) {
    INFO(row.printed.size() << " " << row.printed.front());
    CHECK(printed_sum(row.printed).is_possible() == row.possible);
    CHECK(printed_sum(row.printed).is_off() == row.off);
  }
}

TEST_CASE("systemone: what some servers tell beside the answer") {
  const Answer read = answer(
      kChoice,
      R"({"model":"m","created":5,"answers":{"decision":{"type":"choice","choice":"music","extra":[],)"
      R"("probabilities":{"alarm":0.2,"music":0.7,"weather":0.1}},"other":{"type":"noul","noul":0.5}},)"
      R"("diagnostics":{"decision":{"label_mass":0.875,"argmax_is_label":false}},)"
      R"("usage":{"inputTokens":318,"outputTokens":34}})");
  CHECK(read.distribution.label_mass == 0.875);
  CHECK(read.distribution.argmax_is_label == false);
  CHECK(read.prompt_tokens == 318);
  for (const char* usage : {R"({"prompt_tokens":7})", R"({"promptTokens":7})",
                            R"({"input_tokens":7,"prompt_tokens":9})"}) {
    INFO(usage);
    CHECK(answer(kNoul,
                 fmt::format(R"({{"answers":{{"decision":{{"noul":0.5}}}},"usage":{}}})", usage))
              .prompt_tokens == 7);
  }
  CHECK(answer(kNoul, R"({"answers":{"decision":{"noul":0.5}},"usage":{"input_tokens":-1},)"
                      R"("diagnostics":{"decision":{"label_mass":"much","argmax_is_label":1}}})")
            .prompt_tokens == 0);
}

TEST_CASE("systemone: answers that are none") {
  struct Row {
    const Asked& asked;
    const char* said;
    const char* error_class;
    const char* fragment;
  };
  for (const Row& row : {
           Row{kNoul, "null", "unexpected_reply", "no answer to question \"decision\""},
           Row{kNoul, "0.5", "unexpected_reply", "no answer to question"},
           Row{kNoul, "{}", "unexpected_reply", "no noul"},
           Row{kNoul, R"({"noul":null})", "not_finite", "null as the probability of \"true\""},
           Row{kNoul, R"({"noul":"0.5"})", "unexpected_reply", "\"0.5\" as the probability"},
           Row{kNoul, R"({"noul":1.5})", "not_finite", "1.5"},
           Row{kNoul, R"({"noul":-0.1})", "not_finite", "-0.1"},
           Row{kNoul, R"({"type":"choice","noul":0.5})", "unexpected_reply", "to a noul question"},
           Row{kNoul, R"({"noul":0.5,"probabilities":{"true":0.5}})", "missing_label", "\"false\""},
           Row{kChoice, R"({"choice":"music"})", "unexpected_reply", "no probabilities"},
           Row{kChoice, R"({"choice":"music","probabilities":[0.2,0.7,0.1]})", "unexpected_reply",
               "no object"},
           Row{kChoice, R"({"probabilities":{"alarm":0.2,"music":0.8}})", "missing_label",
               "no probability for \"weather\""},
           Row{kChoice, R"({"probabilities":{"alarm":0.2,"music":0.7,"weather":0.1,"news":0.0}})",
               "unexpected_reply", "\"news\", which is no option"},
           Row{kChoice,
               R"({"choice":"news","probabilities":{"alarm":0.2,"music":0.7,"weather":0.1}})",
               "unexpected_reply", "\"news\" as the choice"},
           Row{kChoice, R"({"choice":5,"probabilities":{"alarm":0.2,"music":0.7,"weather":0.1}})",
               "unexpected_reply", "5 as the choice"},
           Row{kChoice, R"({"probabilities":{"alarm":0.2,"music":0.2,"weather":0.1}})",
               "impossible_sum", "add up to 0.5"},
           Row{kScore, R"({"legend":{"0":"bad"}})", "unexpected_reply",
               "neither probabilities nor a score"},
       }) {
    INFO(row.said);
    const Failure found = failure(row.asked, row.said);
    CHECK(found.error_class == row.error_class);
    CHECK(found.message.find(row.fragment) != std::string::npos);
  }
  CHECK(failure(with(kChoice, ScoredNative::choice),
                R"({"probabilities":{"alarm":0.2,"music":0.7,"weather":0.1}})")
            .message == "the answer names no choice");
  CHECK(std::holds_alternative<Failure>(answer_to(kNoul, "[]")));
  CHECK(std::holds_alternative<Failure>(answer_to(kNoul, R"({"answers":{"other":{"noul":1}}})")));
}
