#include "suite/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"

namespace preval {
namespace {

constexpr std::size_t kMostAlternatives = 255;  // of native reads; token reads take fewer
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Where in a data file something is wrong. The record and the question are named as soon as they
/// are known.
struct Place {
  const std::string& where;
  int line;
  std::string record, question;

  [[noreturn]] void fail(const std::string& reason, const std::string& hint = {}) const {
    std::string text = fmt::format("{}, line {}: ", where, line);
    if (!record.empty()) text += fmt::format("record \"{}\": ", record);
    if (!question.empty()) text += fmt::format("question \"{}\": ", question);
    throw Error(ErrorKind::usage, text + reason, hint);
  }
};

const Json& member(const Json& object, std::string_view key, const Place& place) {
  const auto found = object.find(key);
  if (found == object.end()) place.fail(fmt::format("\"{}\" is missing", key));
  return *found;
}

const Json& object_member(const Json& object, std::string_view key, const Place& place) {
  const Json& value = member(object, key, place);
  if (!value.is_object()) place.fail(fmt::format("\"{}\" is not an object", key));
  return value;
}

const std::string& text_member(const Json& object, std::string_view key, const Place& place) {
  const Json& value = member(object, key, place);
  if (!value.is_string()) place.fail(fmt::format("\"{}\" is not a string", key));
  const auto& text = value.get_ref<const std::string&>();
  if (text.empty()) place.fail(fmt::format("\"{}\" is empty", key));
  return text;
}

QuestionType question_type(const Json& question, const Place& place) {
  const std::string& name = text_member(question, "type", place);
  for (const auto type : {QuestionType::noul, QuestionType::choice, QuestionType::score}) {
    if (name == to_text(type)) return type;
  }
  place.fail(
      fmt::format("unknown type \"{}\"{}", name, did_you_mean(name, {"noul", "choice", "score"})),
      "types are noul, choice and score");
}

/// A criterion's text; null stands for none.
std::string criterion(const Json& value, const std::string& name, const Place& place) {
  if (value.is_null()) return {};
  if (!value.is_string())
    place.fail(fmt::format("criterion \"{}\" is neither string nor null", name));
  return value.get<std::string>();
}

std::vector<Question::Alternative> verdicts(const Json& criteria, const Place& place) {
  if (!criteria.is_object() || criteria.size() != 2 || !criteria.contains("true") ||
      !criteria.contains("false")) {
    place.fail("\"criteria\" of a noul question must be an object of \"false\" and \"true\"");
  }
  return {{"true", criterion(criteria["true"], "true", place)},
          {"false", criterion(criteria["false"], "false", place)}};
}

std::vector<Question::Alternative> options(const Json& criteria, const Place& place) {
  if (!criteria.is_object()) {
    place.fail("\"criteria\" of a choice question must be an object of option names");
  }
  std::vector<Question::Alternative> result;
  result.reserve(criteria.size());
  for (const auto& item : criteria.items()) {
    if (item.key().empty()) place.fail("an option has an empty name");
    result.push_back({item.key(), criterion(item.value(), item.key(), place)});
  }
  return result;
}

std::vector<Question::Alternative> levels(const Json& criteria, const Place& place) {
  if (!criteria.is_array()) {
    place.fail("\"criteria\" of a score question must be an array of levels, lowest first");
  }
  std::vector<Question::Alternative> result;
  result.reserve(criteria.size());
  for (const Json& level : criteria) {
    if (!level.is_string()) place.fail(fmt::format("level {} is not a string", result.size()));
    result.push_back({std::to_string(result.size()), level.get<std::string>()});
  }
  return result;
}

std::vector<Question::Alternative> alternatives(QuestionType type, const Json& criteria,
                                                const Place& place) {
  if (type == QuestionType::noul) return verdicts(criteria, place);
  auto result = type == QuestionType::choice ? options(criteria, place) : levels(criteria, place);
  if (result.size() < 2 || result.size() > kMostAlternatives) {
    place.fail(
        fmt::format("{} alternative(s), expected 2 to {}", result.size(), kMostAlternatives));
  }
  return result;
}

void check_question_id(const std::string& id, const Place& place) {
  // The answer lead is "id: ", so the id must not end it early.
  if (id.empty() || id.find_first_of(":\n") != std::string::npos) {
    place.fail(fmt::format("question id \"{}\" is empty, or holds ':' or a line feed", id));
  }
}

Question read_question(const Json& input, Place& place) {
  const Json& questions = object_member(input, "questions", place);
  if (questions.size() != 1) {
    place.fail(fmt::format("{} questions, expected exactly one", questions.size()));
  }
  Question question;
  question.id = questions.begin().key();
  check_question_id(question.id, place);
  place.question = question.id;
  const Json& asked = *questions.begin();
  if (!asked.is_object()) place.fail("not an object");
  question.type = question_type(asked, place);
  const Json& instructions = member(asked, "instructions", place);
  question.instructions =
      instructions.is_string() ? instructions.get<std::string>() : python_json(instructions, true);
  question.alternatives = alternatives(question.type, member(asked, "criteria", place), place);
  return question;
}

/// The key of the right alternative, as it is stored.
std::string target_key(QuestionType type, const Json& target, const Place& place) {
  switch (type) {
    case QuestionType::noul:
      if (!target.is_boolean()) place.fail("the target of a noul question must be true or false");
      return target.get<bool>() ? "true" : "false";
    case QuestionType::choice:
      if (!target.is_string()) place.fail("the target of a choice question must be an option name");
      return target.get<std::string>();
    case QuestionType::score:
      if (!target.is_number_integer()) {
        place.fail("the target of a score question must be a level's number, counted from 0");
      }
      return target.dump();
  }
  return {};
}

int target_index(const Question& question, const Json& reference, const Place& place) {
  const std::string key = target_key(question.type, member(reference, "target", place), place);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < question.alternatives.size(); ++i) {
    if (question.alternatives[i].key == key) return static_cast<int>(i);
    keys.push_back(question.alternatives[i].key);
  }
  // Levels are numbers: one that is nearly another is no typing error.
  const std::string guess =
      question.type == QuestionType::score ? std::string() : did_you_mean(key, keys);
  place.fail(fmt::format("target \"{}\" is no alternative{}", key, guess),
             "there are: " + join(keys, ", "));
}

/// Where one line ends: at a line feed and nowhere else, so that U+2028 and form feeds inside
/// strings stay what they are.
struct Line {
  std::string_view bytes;
  bool has_line_feed = false;
};

Line take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) return {std::exchange(rest, {}), false};
  const Line line{rest.substr(0, end), true};
  rest.remove_prefix(end + 1);
  return line;
}

Json parse_line(const Line& line, const Place& place) {
  try {
    return parse_json(line.bytes, place.where, place.line);
  } catch (const Error& error) {
    if (line.has_line_feed) throw;
    place.fail(fmt::format("torn last line: no line feed at its end, and {}", error.what()),
               "the file was cut off: copy or build it again");
  }
}

}  // namespace

struct RecordReader::Seen {
  std::unordered_map<std::string, int> ids;  ///< id → line
  std::unordered_set<std::string> families;
  Sha256 digest;
};

RecordReader::RecordReader(std::string_view bytes, std::string subset, std::string where, Warn warn)
    : rest_(bytes),
      subset_(std::move(subset)),
      where_(std::move(where)),
      warn_(std::move(warn)),
      seen_(std::make_unique<Seen>()) {
  if (rest_.starts_with(kByteOrderMark)) {
    rest_.remove_prefix(kByteOrderMark.size());
    if (warn_) warn_(fmt::format("{}: begins with a UTF-8 byte order mark", where_));
  }
}

RecordReader::~RecordReader() = default;

int RecordReader::records() const { return static_cast<int>(seen_->ids.size()); }
int RecordReader::families() const { return static_cast<int>(seen_->families.size()); }

std::optional<Record> RecordReader::next() {
  if (rest_.empty()) return std::nullopt;
  const Line line = take_line(rest_);
  ++line_;
  Place place{where_, line_, {}, {}};
  Json json = parse_line(line, place);
  if (!line.has_line_feed && warn_) {
    warn_(fmt::format("{}, line {}: the last line has no line feed", where_, line_));
  }
  if (!json.is_object()) place.fail("not a JSON object");

  Record record;
  record.id = text_member(json, "id", place);
  place.record = record.id;
  const auto [first, is_new] = seen_->ids.emplace(record.id, line_);
  if (!is_new) place.fail(fmt::format("its id stands already in line {}", first->second));
  record.subset = subset_;
  record.family = text_member(json, "family", place);
  record.line = line_;
  const Json& input = object_member(json, "input", place);
  record.state = member(input, "state", place);
  record.question = read_question(input, place);
  record.target = target_index(record.question, object_member(json, "reference", place), place);
  record.sha256 = seen_->digest.update(line.bytes).hex();
  record.input = std::move(json["input"]);
  seen_->families.insert(record.family);
  return record;
}

std::string in_words(const TooWide& too_wide) {
  return too_wide.records == 1
             ? fmt::format("1 question has {} options, reads by token take at most {} ({})",
                           too_wide.most, kMostTokenLabels, too_wide.first)
             : fmt::format(
                   "{} questions have up to {} options, reads by token take at most {} "
                   "(the first: {})",
                   too_wide.records, too_wide.most, kMostTokenLabels, too_wide.first);
}

std::vector<Record> read_records(std::string_view bytes, const std::string& subset,
                                 const std::string& where,
                                 const std::function<void(const std::string&)>& warn) {
  RecordReader reader(bytes, subset, where, warn);
  std::vector<Record> records;
  while (auto record = reader.next()) records.push_back(std::move(*record));
  return records;
}

bool has_crlf_line_ends(std::string_view bytes) {
  std::size_t found = 0;
  for (std::size_t at = bytes.find('\n'); at != std::string_view::npos;
       at = bytes.find('\n', at + 1)) {
    if (at == 0 || bytes[at - 1] != '\r') return false;
    ++found;
  }
  return found > 0;
}

}  // namespace preval
