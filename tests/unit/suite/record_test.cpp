#include "suite/record.h"

#include "base/sha256.h"
#include "catch.h"
#include "plan/example_plan.h"
#include "plan/expect_error.h"
#include "skip.h"

using namespace preval;
using namespace preval::test;

namespace {

std::vector<Record> read(const std::string& bytes) {
  return read_records(bytes, "boolq", "all.jsonl", [](const std::string& text) { FAIL(text); });
}

std::string error(const std::string& bytes) {
  return error_of(ErrorKind::usage, [&] { read_records(bytes, "boolq", "all.jsonl", {}); });
}

/// A record line with one part replaced.
std::string line_with(const std::string& from, const std::string& to,
                      std::string line = kMassive.substr(0, kMassive.find('\n') + 1)) {
  const std::size_t at = line.find(from);
  REQUIRE(at != std::string::npos);
  return line.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a yes/no record lists yes first") {
  const auto records = read(kBoolq);
  REQUIRE(records.size() == 3);
  CHECK(records[0].id == "q1");
  CHECK(records[0].subset == "boolq");
  CHECK(records[0].family == "f1");
  CHECK(records[1].line == 2);
  CHECK(records[0].sha256 == sha256_hex(kBoolq.substr(0, kBoolq.find('\n'))));
  const Question& question = records[0].question;
  CHECK(question.id == "decision");
  CHECK(question.type == QuestionType::noul);
  CHECK(question.instructions == "Wet?");
  REQUIRE(question.alternatives.size() == 2);
  CHECK(question.alternatives[0].key == "true");
  CHECK(question.alternatives[0].text == "It is wet.");
  CHECK(question.alternatives[1].key == "false");
  CHECK(question.alternatives[1].text.empty());
  CHECK(records[0].target == 0);
  CHECK(records[1].target == 1);
  CHECK(records[0].state == "It rains.");
  CHECK(records[2].state.dump() == R"({"text":"Fog."})");
  CHECK(records[2].question.alternatives[0].text.empty());
  CHECK(records[0].input["questions"]["decision"]["type"] == "noul");
}

TEST_CASE("a choice record keeps the order of its options") {
  const auto records = read(kMassive);
  REQUIRE(records.size() == 2);
  const auto& options = records[0].question.alternatives;
  REQUIRE(options.size() == 2);
  CHECK(options[0].key == "play");
  CHECK(options[0].text.empty());
  CHECK(options[1].text == "Alarms");
  CHECK(records[0].target == 1);
  CHECK(records[1].target == 0);
}

TEST_CASE("a score record counts its levels from 0") {
  const auto records = read(kStars);
  REQUIRE(records.size() == 1);
  CHECK(records[0].question.alternatives[2].key == "2");
  CHECK(records[0].question.alternatives[2].text == "two");
  CHECK(records[0].target == 2);
}

TEST_CASE("instructions that are no string are written as Python writes JSON") {
  const auto records = read(line_with("\"Who?\"", R"({"ask":["Wer?","\u00e4"],"n":1.0})"));
  CHECK(records[0].question.instructions == R"({"ask": ["Wer?", "\u00e4"], "n": 1.0})");
}

TEST_CASE("E9: lines end at byte 0x0A only") {
  const std::string separators =
      "a\xE2\x80\xA8"
      "b\xC2\x85"
      "c\xE2\x80\xA9";  // U+2028, U+0085, U+2029
  const auto records = read(line_with("wake me", separators) + line_with("\"m1\"", "\"m9\""));
  REQUIRE(records.size() == 2);
  CHECK(records[0].state == separators);
  CHECK(records[1].line == 2);
  // A raw form feed is no line end either: inside a string JSON does not allow it at all.
  check_contains(error(line_with("wake me", "a\fb")), "all.jsonl, line 1");
}

TEST_CASE("up to 255 alternatives are read") {
  const auto with = [](int count) {
    std::string levels = "[\"0\"";
    for (int i = 1; i < count; ++i) levels += ",\"" + std::to_string(i) + "\"";
    return line_with(R"(["none","one","two"])", levels + "]", kStars);
  };
  CHECK(read(with(255))[0].question.alternatives.size() == 255);
  check_contains(error(with(256)), "question \"decision\": 256 alternative(s), expected 2 to 255");
}

TEST_CASE("bad records are refused with line and record") {
  struct Bad {
    std::string from, to, message;
  };
  const Bad table[] = {
      {"\"id\":\"m1\",", "", "all.jsonl, line 1: \"id\" is missing"},
      {"\"id\":\"m1\"", "\"id\":7", "line 1: \"id\" is not a string"},
      {"\"id\":\"m1\"", "\"id\":\"\"", "line 1: \"id\" is empty"},
      {"\"family\":\"m1\",", "", "record \"m1\": \"family\" is missing"},
      {"\"input\":", "\"inptu\":", "record \"m1\": \"input\" is missing"},
      {"\"state\":\"wake me\",", "", "record \"m1\": \"state\" is missing"},
      {"\"questions\":{", "\"questions\":{\"x\":1,",
       "record \"m1\": 2 questions, expected exactly one"},
      {"\"decision\":", "\"a:b\":", "question id \"a:b\" is empty, or holds ':'"},
      {"\"decision\":", "\"\":", "question id \"\" is empty"},
      {"\"choice\"", "\"choise\"", "question \"decision\": unknown type \"choise\": did you mean"},
      {"\"type\":\"choice\",", "", "question \"decision\": \"type\" is missing"},
      {"\"instructions\":\"Who?\",", "", "\"instructions\" is missing"},
      {"\"choice\"", "\"noul\"", "\"criteria\" of a noul question must be"},
      {"\"choice\"", "\"score\"", "\"criteria\" of a score question must be an array"},
      {R"({"play":null,"alarm":"Alarms"})", R"(["play","alarm"])",
       "\"criteria\" of a choice question must be an object"},
      {R"({"play":null,"alarm":"Alarms"})", R"({"alarm":null})",
       "1 alternative(s), expected 2 to 255"},
      {R"("play":null)", R"("play":3)", "criterion \"play\" is neither string nor null"},
      {R"("play":null)", R"("":null)", "an option has an empty name"},
      {R"("play":null)", R"("alarm":null)", "the key \"alarm\" appears twice"},
      {R"("target":"alarm")", R"("target":"alrm")",
       "target \"alrm\" is no alternative: did you mean"},
      {R"("target":"alarm")", R"("target":0)",
       "the target of a choice question must be an option name"},
      {R"("target":"alarm")", R"("goal":"alarm")", "\"target\" is missing"},
      {R"("reference":{"target":"alarm"})", R"("reference":[])", "\"reference\" is not an object"},
  };
  for (const Bad& bad : table) check_contains(error(line_with(bad.from, bad.to)), bad.message);

  check_contains(error(line_with("\"target\":2", "\"target\":3", kStars)),
                 "target \"3\" is no alternative");
  check_contains(error(line_with("\"target\":2", "\"target\":-1", kStars)),
                 "target \"-1\" is no alternative");
  check_contains(error(line_with("\"target\":2", "\"target\":2.0", kStars)),
                 "must be a level's number");
  check_contains(error(line_with("\"two\"", "2", kStars)), "level 2 is not a string");
  check_contains(error(line_with("\"target\":true", "\"target\":\"yes\"", kBoolq)),
                 "must be true or false");
  check_contains(error("[]\n"), "line 1: not a JSON object");
}

TEST_CASE("E11: two records of one id are refused with both line numbers") {
  const std::string text = error(kMassive + line_with("\"wake me\"", "\"other\""));
  check_contains(text, "all.jsonl, line 3: record \"m1\": its id stands already in line 1");
}

TEST_CASE("E10: a broken line in the middle is fatal, with its number") {
  const std::string whole = kMassive;
  check_contains(error(whole + "{\"id\": \"x\"\n" + kStars), "all.jsonl, line 3");
  check_contains(error(whole + "\n" + kStars), "all.jsonl, line 3");
  check_contains(error(whole + line_with("wake me", "\xC3(")), "all.jsonl, line 3");
  check_contains(error(whole + line_with("wake me", "\xC3(")), "UTF-8");
}

TEST_CASE("E10: a torn last line is named as such, a whole one without line feed is taken") {
  check_contains(error(kMassive + "{\"id\": \"x\""), "all.jsonl, line 3: torn last line");
  check_contains(error(kMassive + "{\"id\": \"\xE2\x82"), "all.jsonl, line 3: torn last line");

  std::vector<std::string> warnings;
  const auto records =
      read_records(std::string_view(kMassive).substr(0, kMassive.size() - 1), "massive",
                   "all.jsonl", [&](const std::string& text) { warnings.push_back(text); });
  CHECK(records.size() == 2);
  REQUIRE(warnings.size() == 1);
  check_contains(warnings[0], "all.jsonl, line 2: the last line has no line feed");
}

TEST_CASE("H3: one byte order mark in front is taken with a warning") {
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  const auto records = read_records("\xEF\xBB\xBF" + kStars, "stars", "all.jsonl", warn);
  CHECK(records.size() == 1);
  CHECK(records[0].sha256 == sha256_hex(kStars.substr(0, kStars.size() - 1)));
  REQUIRE(warnings.size() == 1);
  check_contains(warnings[0], "byte order mark");
  check_contains(error("\xEF\xBB\xBF\xEF\xBB\xBF" + kStars), "byte order mark");
  check_contains(error(kMassive + "\xEF\xBB\xBF" + kStars), "line 3");
}

TEST_CASE("the reader counts up to an error") {
  const std::string bytes = kBoolq + "{broken\n";
  RecordReader reader(bytes, "boolq", "all.jsonl", {});
  for (int i = 0; i < 3; ++i) CHECK(reader.next().has_value());
  CHECK_THROWS_AS(reader.next(), Error);
  CHECK(reader.records() == 3);
  CHECK(reader.families() == 2);
  CHECK(reader.line() == 4);
}

TEST_CASE("an empty file has no records") { CHECK(read("").empty()); }

TEST_CASE("CRLF files are recognised") {
  CHECK(has_crlf_line_ends("a\r\nb\r\n"));
  CHECK_FALSE(has_crlf_line_ends("a\r\nb\n"));
  CHECK_FALSE(has_crlf_line_ends("a\nb\n"));
  CHECK_FALSE(has_crlf_line_ends("\n"));
  CHECK_FALSE(has_crlf_line_ends("a"));
  CHECK(read(line_with("\n", "\r\n")).size() == 1);
}

TEST_CASE("the public records are read") {
  const auto shared = shared_data();
  if (!shared) return skip_test("no shared data: public records not read");
  SystemFiles files;
  const std::string bytes = files.read(*shared / "suite/massive-de-DE/all.jsonl");
  const auto records = read(bytes);
  REQUIRE(records.size() == 350);
  CHECK(records[0].id == "massive-10213");
  CHECK(records[0].question.alternatives.size() == 18);
  CHECK(records[0].question.alternatives[0].key == "alarm");
  CHECK(records[0].question.alternatives[static_cast<std::size_t>(records[0].target)].key ==
        "cooking");
}
