#include "backend/systemone_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/dialogue.h"
#include "base/text.h"
#include "stats/sums.h"

namespace preval {

namespace {

constexpr double kProbabilityRounding = 1e-6;  // how far float32 may lift a number above its limit
constexpr long long kHalfStep = 5'000;         // millionths: half of the last printed decimal
constexpr long long kChoiceStep = 10'000;      // millionths: a named choice further below differs
constexpr double kLevelStep = 0.005;           // an expected level has two decimals, too

long long millionths(double value) { return std::llround(value * 1e6); }

/// For messages: what a server sends where a word belongs may be long.
std::string json_in_short(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80);
}

/// The numbers that levels go by, or nothing when a key is none.
std::optional<int> level_number(const std::string& key) {
  const auto number = to_integer(key);
  if (!number || *number < 0 || *number > 1000) return std::nullopt;
  return static_cast<int>(*number);
}

/// The lowest number among the keys of an object of levels.
std::optional<int> lowest_key(const Json* levels) {
  std::optional<int> lowest;
  if (levels == nullptr || !levels->is_object()) return lowest;
  for (const auto& entry : levels->items()) {
    const auto number = level_number(entry.key());
    if (number && (!lowest || *number < *lowest)) lowest = number;
  }
  return lowest;
}

class SystemOneAnswer {
 public:
  SystemOneAnswer(const Json& said, const Item& item, const BackendSpec& spec,
                  const HttpReply& reply)
      : said_(said),
        question_(item.record->question),
        labels_(item.prompt->labels),
        spec_(spec),
        reply_(reply) {}

  std::variant<Answer, Failure> read() {
    const Json* answers = value_of(said_, "answers");
    const Json* found = answers == nullptr ? nullptr : value_of(*answers, question_.id);
    if (found == nullptr || !found->is_object()) {
      return refuse("unexpected_reply",
                    fmt::format("the reply has no answer to question \"{}\"", question_.id));
    }
    const std::string type(to_text(question_.type));
    const Json* told = value_of(*found, "type");
    if (told != nullptr && *told != type) {
      return refuse("unexpected_reply", fmt::format("an answer of type {} to a {} question",
                                                    json_in_short(*told), type));
    }
    answer_.native.emplace();
    Distribution& distribution = answer_.distribution;
    distribution.label_mass = std::numeric_limits<double>::quiet_NaN();
    auto problem = take(*found);
    if (problem) return *std::move(problem);
    take_diagnostics();
    take_usage();
    return std::move(answer_);
  }

 private:
  Failure refuse(std::string_view error_class, std::string message) const {
    return unusable(error_class, std::move(message), reply_);
  }

  std::optional<Failure> take(const Json& answer) {
    const Json* probabilities = value_of(answer, "probabilities");
    if (probabilities != nullptr) {
      if (!probabilities->is_object()) {
        return refuse("unexpected_reply", "probabilities is no object");
      }
      if (auto problem = take_probabilities(answer, *probabilities)) return problem;
      return finish(answer);
    }
    switch (question_.type) {
      case QuestionType::noul:
        if (auto problem = take_noul(answer)) return problem;
        return finish(answer);
      case QuestionType::score:
        return take_expected(answer);
      case QuestionType::choice:
        break;
    }
    return refuse("unexpected_reply", "the answer has no probabilities");
  }

  // Probabilities, in the order presented.

  std::optional<Failure> take_probabilities(const Json& answer, const Json& probabilities) {
    int base = 0;
    if (question_.type == QuestionType::score) {
      base = lowest_key(&probabilities).value_or(0);
      if (base == 1 && lowest_key(value_of(answer, "legend")) == 0) base = 0;
    }
    values_.assign(labels_.size(), 0);
    std::vector<bool> seen(labels_.size(), false);
    for (const auto& entry : probabilities.items()) {
      const auto place = position_of(entry.key(), base);
      if (!place) {
        return refuse("unexpected_reply", fmt::format("a probability for {}, which is no option",
                                                      json_in_short(Json(entry.key()))));
      }
      if (auto problem = take_number(entry.value(), entry.key(), values_[*place])) return problem;
      seen[*place] = true;
    }
    const auto missing = std::find(seen.begin(), seen.end(), false);
    if (missing == seen.end()) return std::nullopt;
    return refuse(
        "missing_label",
        fmt::format("no probability for {}",
                    Json(labels_[static_cast<std::size_t>(missing - seen.begin())]).dump()));
  }

  /// Labels are option names, true and false, or levels as numbers from 0.
  std::optional<std::size_t> position_of(const std::string& key, int base) const {
    std::string label = key;
    if (question_.type == QuestionType::score) {
      const auto number = level_number(key);
      if (!number || *number < base || base > 1) return std::nullopt;
      label = std::to_string(*number - base);
    }
    const auto found = std::find(labels_.begin(), labels_.end(), label);
    if (found == labels_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - labels_.begin());
  }

  std::optional<Failure> take_number(const Json& json, std::string_view name, double& value) const {
    if (json.is_number()) {
      value = json.get<double>();
      if (value >= 0 && value <= 1 + kProbabilityRounding) return std::nullopt;
    } else if (!json.is_null()) {
      return refuse("unexpected_reply",
                    fmt::format("{} as the probability of \"{}\"", json_in_short(json), name));
    }
    return refuse("not_finite",
                  fmt::format("{} as the probability of \"{}\"", json_in_short(json), name));
  }

  /// One number stands for two: the probability of yes.
  std::optional<Failure> take_noul(const Json& answer) {
    const auto noul = answer.find("noul");
    if (noul == answer.end()) return refuse("unexpected_reply", "the answer has no noul");
    double yes = 0;
    if (auto problem = take_number(*noul, "true", yes)) return problem;
    for (const std::string& label : labels_) {
      values_.push_back(label == "true" ? yes : std::max(1 - yes, 0.0));
    }
    return std::nullopt;
  }

  std::optional<Failure> finish(const Json& answer) {
    const PrintedSum sum = printed_sum(values_);
    NativeFacts& facts = *answer_.native;
    facts.printed_sum = python_sum(values_);
    facts.sum_is_off = sum.is_off();
    if (!sum.is_possible()) {
      return refuse(
          "impossible_sum",
          fmt::format("{} printed probabilities add up to {}: no rounding makes that of 1",
                      values_.size(), static_cast<double>(sum.sum) / 1e6));
    }
    Distribution& distribution = answer_.distribution;
    for (const double value : values_) {
      distribution.labels.push_back(
          {std::numeric_limits<double>::quiet_NaN(), value, LabelSource::native});
    }
    distribution.labels_returned = static_cast<int>(values_.size());
    const auto best = std::max_element(values_.begin(), values_.end());
    distribution.predicted = static_cast<int>(best - values_.begin());
    if (question_.type == QuestionType::choice) {
      if (auto problem = take_choice(answer, *best)) return problem;
    }
    if (question_.type == QuestionType::noul) {
      if (auto problem = compare_noul(answer)) return problem;
    }
    const double predicted = values_[static_cast<std::size_t>(distribution.predicted)];
    distribution.tied = std::count(values_.begin(), values_.end(), predicted) > 1;
    return std::nullopt;
  }

  /// A server that prints both the probability of yes and all probabilities may contradict itself.
  /// The probabilities count, and the answer is marked like one whose named choice is another.
  std::optional<Failure> compare_noul(const Json& answer) {
    const Json* noul = value_of(answer, "noul");
    if (noul == nullptr) return std::nullopt;
    double yes = 0;
    if (auto problem = take_number(*noul, "true", yes)) return problem;
    const auto place = position_of("true", 0);
    answer_.native->choice_differs =
        place && std::llabs(millionths(yes) - millionths(values_[*place])) > kChoiceStep;
    return std::nullopt;
  }

  std::optional<Failure> take_choice(const Json& answer, double best) {
    const bool scored = spec_.scored == ScoredNative::choice;
    const Json* named = value_of(answer, "choice");
    if (named == nullptr && !scored) return std::nullopt;
    const auto place = named != nullptr && named->is_string()
                           ? position_of(named->get<std::string>(), 0)
                           : std::nullopt;
    if (!place) {
      return refuse("unexpected_reply", named == nullptr
                                            ? "the answer names no choice"
                                            : fmt::format("{} as the choice, which is no option",
                                                          json_in_short(*named)));
    }
    answer_.native->choice_differs = millionths(best) - millionths(values_[*place]) > kChoiceStep;
    if (scored) answer_.distribution.predicted = static_cast<int>(*place);
    return std::nullopt;
  }

  /// A score that is an expected level and nothing else.
  std::optional<Failure> take_expected(const Json& answer) {
    const auto score = answer.find("score");
    if (score == answer.end() || !score->is_number()) {
      return refuse("unexpected_reply", "the answer has neither probabilities nor a score");
    }
    const int base = lowest_key(value_of(answer, "legend")) == 1 ? 1 : 0;
    const double highest = static_cast<double>(labels_.size()) - 1;
    const double value = score->get<double>() - base;
    if (!(value >= -kLevelStep) || !(value <= highest + kLevelStep)) {
      return refuse("unexpected_reply", fmt::format("a score of {} on a scale from {} to {}",
                                                    json_in_short(*score), base, highest + base));
    }
    if (spec_.score_level == LevelRule::none) {
      return refuse(
          "no_level_rule",
          fmt::format("the score {} is an expected level, and the plan does not say which "
                      "level it counts as (score_level)",
                      json_in_short(*score)));
    }
    answer_.native->value = std::clamp(value, 0.0, highest);
    answer_.distribution.predicted =
        level_of(*answer_.native->value, static_cast<int>(labels_.size()), spec_.score_level);
    return std::nullopt;
  }

  // What some servers tell beside the answer.

  void take_diagnostics() {
    const Json* all = value_of(said_, "diagnostics");
    const Json* diagnostics = all == nullptr ? nullptr : value_of(*all, question_.id);
    if (diagnostics == nullptr) return;
    if (const Json* mass = value_of(*diagnostics, "label_mass");
        mass != nullptr && mass->is_number() && *mass >= 0) {
      answer_.distribution.label_mass = mass->get<double>();
    }
    if (const Json* best = value_of(*diagnostics, "argmax_is_label");
        best != nullptr && best->is_boolean()) {
      answer_.distribution.argmax_is_label = best->get<bool>();
    }
  }

  void take_usage() {
    const Json* usage = value_of(said_, "usage");
    if (usage == nullptr) return;
    for (const char* key : {"input_tokens", "inputTokens", "prompt_tokens", "promptTokens"}) {
      const Json* count = value_of(*usage, key);
      if (count == nullptr || !count->is_number_unsigned() || *count > (1 << 30)) continue;
      answer_.prompt_tokens = count->get<int>();
      return;
    }
  }

  const Json& said_;
  const Question& question_;
  const std::vector<std::string>& labels_;
  const BackendSpec& spec_;
  const HttpReply& reply_;
  std::vector<double> values_;
  Answer answer_;
};

}  // namespace

PrintedSum printed_sum(const std::vector<double>& probabilities) {
  PrintedSum result;
  for (const double probability : probabilities) {
    const long long printed = millionths(probability);
    result.sum += printed;
    result.least += std::max(printed - kHalfStep, 0LL);
    result.most += printed + kHalfStep;
    result.any = result.any || probability > 0;
  }
  return result;
}

int level_of(double expected, int levels, LevelRule rule) {
  double level = std::floor(expected + 0.5);
  if (rule == LevelRule::floor) level = std::floor(expected);
  if (rule == LevelRule::ceiling) level = std::ceil(expected);
  return std::clamp(static_cast<int>(level), 0, levels - 1);
}

std::variant<Answer, Failure> read_systemone(const Json& said, const Item& item,
                                             const BackendSpec& spec, const HttpReply& reply) {
  return SystemOneAnswer(said, item, spec, reply).read();
}

}  // namespace preval
