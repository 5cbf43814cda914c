#include "read/prompt.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/placeholders.h"
#include "base/sha256.h"
#include "base/text.h"
#include "plan/reader.h"

namespace preval {

namespace {

constexpr std::size_t kMostDigits = 9;

/// A field of the wording: which placeholders it may use, and which it must.
struct Field {
  std::string_view key;
  std::string PromptFile::*text;
  std::vector<std::string_view> known;
  std::vector<std::string_view> needed;
};

std::vector<Field> fields() {
  const std::vector<std::string_view> of_question{"id", "instructions", "label_list"};
  return {
      {"opening", &PromptFile::opening, of_question, {}},
      {"question", &PromptFile::question, of_question, {"instructions"}},
      {"closing", &PromptFile::closing, of_question, {}},
      {"alternative",
       &PromptFile::alternative,
       {"label", "name", "description"},
       {"label", "name", "description"}},
      {"alternative_bare", &PromptFile::alternative_bare, {"label", "name"}, {"label", "name"}},
      {"verdict", &PromptFile::verdict, {"label", "description"}, {"label", "description"}},
      {"verdict_bare", &PromptFile::verdict_bare, {"label"}, {"label"}},
  };
}

std::string where_is(const Record& record) {
  return fmt::format("record {} (subset {}, line {}), question \"{}\"", record.id, record.subset,
                     record.line, record.question.id);
}

void check_id(const Record& record) {
  const std::string& id = record.question.id;
  if (id.empty()) {
    throw Error(ErrorKind::usage, fmt::format("{}: the question's id is empty", where_is(record)));
  }
  if (id.find_first_of(":\n") != std::string::npos) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: the question's id holds ':' or a line break", where_is(record)),
                "the answer starts with \"id: \", so an id cannot hold what ends it");
  }
}

std::string line_of(const PromptFile& wording, const Question& question, std::size_t option,
                    const std::string& label) {
  const Question::Alternative& alternative = question.alternatives[option];
  switch (question.type) {
    case QuestionType::noul:
      if (alternative.text.empty()) {
        return fill_placeholders(wording.verdict_bare, {{"label", label}}, wording.name);
      }
      return fill_placeholders(wording.verdict,
                               {{"label", label}, {"description", alternative.text}}, wording.name);
    case QuestionType::score:
      // A level has no name beside its text.
      return fill_placeholders(wording.alternative_bare,
                               {{"label", label}, {"name", alternative.text}}, wording.name);
    case QuestionType::choice:
      break;
  }
  if (alternative.text.empty()) {
    return fill_placeholders(wording.alternative_bare,
                             {{"label", label}, {"name", alternative.key}}, wording.name);
  }
  return fill_placeholders(
      wording.alternative,
      {{"label", label}, {"name", alternative.key}, {"description", alternative.text}},
      wording.name);
}

std::vector<int> order_of(const Record& record, std::string_view variant) {
  std::vector<int> options(record.question.alternatives.size());
  for (std::size_t i = 0; i < options.size(); ++i) options[i] = static_cast<int>(i);
  if (variant == "none") return options;
  if (variant != "reversed") {
    throw Error(ErrorKind::usage,
                fmt::format("{}: unknown variant \"{}\"", where_is(record), variant),
                "known variants: none, reversed");
  }
  if (record.question.type != QuestionType::choice) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: a {} question cannot be asked reversed", where_is(record),
                            to_text(record.question.type)),
                "variant reversed is for choice questions, whose alternatives have no order");
  }
  std::reverse(options.begin(), options.end());
  return options;
}

std::string digest_of(const Prompt& prompt) {
  Json json;
  json["system"] = prompt.system;
  json["user"] = prompt.user;
  json["lead"] = prompt.lead;
  json["labels"] = prompt.labels;
  json["options"] = prompt.options;
  return canonical_sha256(json);
}

}  // namespace

PromptFile parse_prompt_file(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  ObjectReader reader(json, where);
  PromptFile file;
  file.name = reader.identifier("name");
  const std::vector<Field> table = fields();
  for (const Field& field : table) file.*field.text = reader.text(field.key);
  reader.finish();
  for (const Field& field : table) {
    Placeholders known;
    for (const std::string_view name : field.known) known.emplace_back(name, "");
    fill_placeholders(file.*field.text, known, fmt::format("{}: /{}", where, field.key));
    for (const std::string_view name : field.needed) {
      if ((file.*field.text).find(fmt::format("{{{}}}", name)) != std::string::npos) continue;
      reader.fail(field.key, fmt::format("{{{}}} does not occur", name),
                  "without it a model would not see what it is asked");
    }
  }
  return file;
}

std::vector<std::string> label_texts(const Record& record) {
  check_id(record);
  const Question& question = record.question;
  const std::size_t count = question.alternatives.size();
  if (count < 2 || count > kMostTokenLabels) {
    throw Error(ErrorKind::usage, fmt::format("{}: {} alternatives, where 2 to {} can be labelled",
                                              where_is(record), count, kMostTokenLabels));
  }
  if (question.type == QuestionType::noul) return {"yes", "no"};
  const bool digits = question.type == QuestionType::score && count <= kMostDigits;
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < count; ++i) {
    labels.emplace_back(1, static_cast<char>((digits ? '1' : 'A') + static_cast<char>(i)));
  }
  return labels;
}

Prompt render_prompt(const PromptFile& wording, const Record& record, std::string_view variant,
                     bool state_ascii) {
  Prompt prompt;
  prompt.labels = label_texts(record);
  prompt.options = order_of(record, variant);
  const Question& question = record.question;
  const std::string label_list = join(prompt.labels, ", ");
  const Placeholders names{
      {"id", question.id}, {"instructions", question.instructions}, {"label_list", label_list}};
  std::vector<std::string> lines{fill_placeholders(wording.opening, names, wording.name),
                                 fill_placeholders(wording.question, names, wording.name)};
  for (std::size_t i = 0; i < prompt.labels.size(); ++i) {
    const auto option = static_cast<std::size_t>(prompt.options[i]);
    lines.push_back(line_of(wording, question, option, prompt.labels[i]));
  }
  lines.push_back(fill_placeholders(wording.closing, names, wording.name));
  prompt.system = join(lines, "\n");
  prompt.user = record.state.is_string() ? record.state.get<std::string>()
                                         : python_json(record.state, state_ascii);
  prompt.lead = question.id + ": ";
  prompt.sha256 = digest_of(prompt);
  return prompt;
}

Prompt native_prompt(const Record& record, std::string_view variant) {
  Prompt prompt;
  prompt.options = order_of(record, variant);
  for (const int option : prompt.options) {
    prompt.labels.push_back(record.question.alternatives[static_cast<std::size_t>(option)].key);
  }
  Json input = record.input;
  if (variant == "reversed") {
    Json& criteria = input["questions"][record.question.id]["criteria"];
    Json reversed = Json::object();
    for (const std::string& key : prompt.labels) reversed[key] = criteria[key];
    criteria = std::move(reversed);
  }
  prompt.native = input.dump();
  // Not canonical JSON: the order of the alternatives is part of the question.
  prompt.sha256 = sha256_hex(prompt.native);
  return prompt;
}

std::string_view to_text(PromptForm value) {
  return value == PromptForm::native ? "native" : "messages";
}

PromptForm prompt_form(ReadMode mode) {
  return mode == ReadMode::native ? PromptForm::native : PromptForm::messages;
}

Prompt prompt_for(const PromptFile& wording, const PromptSpec& spec, const Record& record,
                  std::string_view variant, PromptForm form) {
  if (form == PromptForm::native) return native_prompt(record, variant);
  return render_prompt(wording, record, variant, spec.state_ascii);
}

std::string plain_text(const Prompt& prompt) {
  return fmt::format("{}\n\n{}\n\n{}", prompt.system, prompt.user, prompt.lead);
}

}  // namespace preval
