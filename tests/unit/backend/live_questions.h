#pragma once
// What the tests against real servers share: one wording, and records made by hand.
#include <string>
#include <utility>
#include <vector>

#include "suite/record.h"

namespace preval::test {

inline constexpr const char* kLiveWording = R"json({
  "name": "live",
  "opening": "You sort short texts.",
  "question": "Question {id}: {instructions}",
  "alternative": "  {label}: {name} ({description})",
  "alternative_bare": "  {label}: {name}",
  "verdict": "  {label}: {description}",
  "verdict_bare": "  {label}",
  "closing": "Reply with \"{id}: label\", where the label is one of {label_list}."
})json";

inline Record live_record(std::string id, QuestionType type, std::string instructions,
                          std::vector<Question::Alternative> alternatives, Json state) {
  Record record;
  record.id = std::move(id);
  record.subset = "live";
  record.question = {"decision", type, std::move(instructions), std::move(alternatives)};
  record.state = std::move(state);
  return record;
}

}  // namespace preval::test
