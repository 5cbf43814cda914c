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

/// A yes/no question, a score, a choice in German, and one of so many rooms (18 at most).
inline std::vector<Record> live_questions(std::size_t n_rooms) {
  const std::vector<std::string> names = {
      "attic", "bath",    "cellar", "den",     "entrance", "flat",   "garage", "hall",     "island",
      "jetty", "kitchen", "larder", "mansard", "nook",     "office", "pantry", "quarters", "roof"};
  std::vector<Question::Alternative> rooms;
  for (std::size_t i = 0; i < n_rooms; ++i) {
    rooms.push_back({names.at(i), "Things that happen in the " + names.at(i) + "."});
  }
  return {
      live_record("tea", QuestionType::noul, "Is the drink hot?",
                  {{"true", "The drink is hot."}, {"false", "The drink is cold."}},
                  "The tea has just been poured and steams."),
      live_record(
          "mood", QuestionType::score, "How friendly is the letter?",
          {{"0", "hostile"}, {"1", "cool"}, {"2", "polite"}, {"3", "friendly"}, {"4", "warm"}},
          "Thank you so much, see you on Sunday!"),
      live_record("weather", QuestionType::choice, "Wie wird das Wetter?",
                  {{"sonnig", "Die Sonne scheint."}, {"trüb", "Wolken überall."}},
                  Json{{"text", "Es hört auf zu regnen."}}),
      live_record("room", QuestionType::choice, "In which part of the house does it happen?", rooms,
                  "We boil potatoes there and eat them at once."),
  };
}

}  // namespace preval::test
