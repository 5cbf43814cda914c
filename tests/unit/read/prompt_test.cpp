#include "read/prompt.h"

#include "base/error.h"
#include "catch.h"

using namespace preval;

namespace {

Json wording_json() {
  return {{"name", "test-1"},
          {"opening", "You decide."},
          {"question", "Question {id}: {instructions}"},
          {"alternative", "  {label}: {name} ({description})"},
          {"alternative_bare", "  {label}: {name}"},
          {"verdict", "  {label}: {description}"},
          {"verdict_bare", "  {label}"},
          {"closing", "Answer {{only}} with {id}: one of {label_list}"}};
}

PromptFile wording() { return parse_prompt_file(wording_json().dump(), "prompt.json"); }

Record record(QuestionType type, std::vector<Question::Alternative> alternatives) {
  Record record;
  record.id = "r-7";
  record.subset = "boolq";
  record.line = 12;
  record.question = {"decision", type, "Is {it} so?", std::move(alternatives)};
  record.state = "The state.";
  return record;
}

Record yes_no() { return record(QuestionType::noul, {{"true", "It is so."}, {"false", ""}}); }

Record choice() {
  return record(QuestionType::choice,
                {{"red", "Like fire."}, {"green", ""}, {"blue", "Like {sea}."}});
}

std::string usage_problem(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    REQUIRE(error.kind() == ErrorKind::usage);
    return error.what();
  }
  return "none";
}

std::string wording_problem(const Json& json) {
  return usage_problem([&] { parse_prompt_file(json.dump(), "prompt.json"); });
}

std::vector<Question::Alternative> numbered(int count) {
  std::vector<Question::Alternative> alternatives;
  for (int i = 0; i < count; ++i)
    alternatives.push_back({std::to_string(i), "level " + std::to_string(i)});
  return alternatives;
}

}  // namespace

TEST_CASE("a yes/no question: verdicts, described or bare") {
  const Prompt prompt = render_prompt(wording(), yes_no(), "none", true);
  CHECK(prompt.system ==
        "You decide.\nQuestion decision: Is {it} so?\n  yes: It is so.\n  no\n"
        "Answer {only} with decision: one of yes, no");
  CHECK(prompt.user == "The state.");
  CHECK(prompt.lead == "decision: ");
  CHECK(prompt.labels == std::vector<std::string>{"yes", "no"});
  CHECK(prompt.options == std::vector<int>{0, 1});
  CHECK(prompt.sha256.size() == 64);
  CHECK(plain_text(prompt) == prompt.system + "\n\nThe state.\n\ndecision: ");
}

TEST_CASE("a choice question: option names, and descriptions where there are any") {
  const Prompt prompt = render_prompt(wording(), choice(), "none", true);
  CHECK(prompt.system ==
        "You decide.\nQuestion decision: Is {it} so?\n  A: red (Like fire.)\n  B: green\n"
        "  C: blue (Like {sea}.)\nAnswer {only} with decision: one of A, B, C");
  CHECK(prompt.options == std::vector<int>{0, 1, 2});
}

TEST_CASE("reversed: the alternatives turn round and the labels stay in order") {
  const Prompt prompt = render_prompt(wording(), choice(), "reversed", true);
  CHECK(prompt.system ==
        "You decide.\nQuestion decision: Is {it} so?\n  A: blue (Like {sea}.)\n  B: green\n"
        "  C: red (Like fire.)\nAnswer {only} with decision: one of A, B, C");
  CHECK(prompt.labels == std::vector<std::string>{"A", "B", "C"});
  CHECK(prompt.options == std::vector<int>{2, 1, 0});
  CHECK(prompt.sha256 != render_prompt(wording(), choice(), "none", true).sha256);
  CHECK(usage_problem([] { render_prompt(wording(), yes_no(), "reversed", true); }) ==
        "record r-7 (subset boolq, line 12), question \"decision\": a noul question cannot be "
        "asked reversed");
  CHECK(usage_problem([] {
          render_prompt(wording(), choice(), "shuffled", true);
        }).find("unknown variant \"shuffled\"") != std::string::npos);
}

TEST_CASE("a score question: digits up to nine levels, letters beyond") {
  const Prompt nine =
      render_prompt(wording(), record(QuestionType::score, numbered(9)), "none", true);
  CHECK(nine.labels.front() == "1");
  CHECK(nine.labels.back() == "9");
  CHECK(nine.system.find("\n  1: level 0\n") != std::string::npos);
  const Prompt ten =
      render_prompt(wording(), record(QuestionType::score, numbered(10)), "none", true);
  CHECK(ten.labels.front() == "A");
  CHECK(ten.labels.back() == "J");
}

TEST_CASE("a state that is no string is JSON as Python writes it, in ASCII or not") {
  Record sentence = choice();
  sentence.state = Json{{"text", "hört \"auf\""}, {"n", 1.0}, {"list", {1, nullptr, true}}};
  CHECK(render_prompt(wording(), sentence, "none", true).user ==
        R"({"text": "h\u00f6rt \"auf\"", "n": 1.0, "list": [1, null, true]})");
  CHECK(render_prompt(wording(), sentence, "none", false).user ==
        R"({"text": "hört \"auf\"", "n": 1.0, "list": [1, null, true]})");
  sentence.state = "hört auf";
  CHECK(render_prompt(wording(), sentence, "none", true).user == "hört auf");
}

TEST_CASE("the digest covers everything that a model sees") {
  const std::string base = render_prompt(wording(), choice(), "none", true).sha256;
  CHECK(render_prompt(wording(), choice(), "none", true).sha256 == base);
  Record other = choice();
  other.state = "Another state.";
  CHECK(render_prompt(wording(), other, "none", true).sha256 != base);
  other = choice();
  other.question.id = "verdict";
  CHECK(render_prompt(wording(), other, "none", true).sha256 != base);
  // Neither the record's name nor its line is shown to a model.
  other = choice();
  other.id = "r-8";
  CHECK(render_prompt(wording(), other, "none", true).sha256 == base);
}

TEST_CASE("questions that cannot be labelled are refused with record and question") {
  const auto labels = [](int count) {
    return usage_problem([&] { label_texts(record(QuestionType::choice, numbered(count))); });
  };
  CHECK(labels(1) ==
        "record r-7 (subset boolq, line 12), question \"decision\": 1 alternatives, where 2 to 26 "
        "can be labelled");
  CHECK(labels(27).find("27 alternatives") != std::string::npos);
  CHECK(labels(2) == "none");
  CHECK(labels(26) == "none");
  CHECK(label_texts(record(QuestionType::choice, numbered(26))).back() == "Z");
  Record named = yes_no();
  for (const char* id : {"", "a:b", "a\nb"}) {
    named.question.id = id;
    CHECK(usage_problem([&] { label_texts(named); }).find("the question's id") !=
          std::string::npos);
  }
}

TEST_CASE("a prompt file is read strictly") {
  CHECK(wording().closing == "Answer {{only}} with {id}: one of {label_list}");
  Json json = wording_json();
  json["verdikt"] = "x";
  CHECK(wording_problem(json).find("verdikt") != std::string::npos);
  json = wording_json();
  json.erase("closing");
  CHECK(wording_problem(json).find("closing") != std::string::npos);
  json = wording_json();
  json["opening"] = 5;
  CHECK(wording_problem(json).find("/opening") != std::string::npos);
  json = wording_json();
  json["opening"] = "You decide about {name}.";
  CHECK(wording_problem(json) == "prompt.json: /opening: unknown placeholder {name}");
  json = wording_json();
  json["alternative"] = "  {label}: {name}";
  CHECK(wording_problem(json).find("{description} does not occur") != std::string::npos);
  json = wording_json();
  json["question"] = "Question {id}";
  CHECK(wording_problem(json).find("{instructions} does not occur") != std::string::npos);
  json = wording_json();
  json["closing"] = "Answer with } only";
  CHECK(wording_problem(json).find("/closing: a single '}'") != std::string::npos);
  CHECK(usage_problem([] {
          parse_prompt_file("{\"name\": \"a\", \"name\": \"b\"}", "prompt.json");
        }).find("name") != std::string::npos);
  CHECK(usage_problem([] { parse_prompt_file("[]", "prompt.json"); }).find("prompt.json") == 0);
}
