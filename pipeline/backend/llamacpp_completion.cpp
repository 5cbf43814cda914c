#include "backend/llamacpp_completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "backend/dialogue.h"

namespace preval {

namespace {

constexpr double kRounding = 1e-6;  // how far above certainty float32 rounding may lift a value

/// Keeps what Completion needs from the parser's events. The names of the member functions are
/// nlohmann's SAX interface.
class CompletionReader {
 public:
  Completion result;
  std::string error_class, problem;

  bool null() { return number_wanted() ? refuse("not_finite", "null as " + key_) : true; }
  bool boolean(bool value) {
    if (at(Place::root) && key_ == "truncated") result.truncated = value;
    return true;
  }
  bool number_integer(std::int64_t value) { return integer(value); }
  bool number_unsigned(std::uint64_t value) { return integer(static_cast<std::int64_t>(value)); }
  bool number_float(double value, const std::string&) { return real(value); }
  bool string(const std::string& value) {
    if (at(Place::root) && key_ == "model") result.model = value;
    return number_wanted() ? refuse("unexpected_reply", "text as " + key_) : true;
  }
  bool binary(const std::vector<std::uint8_t>&) { return true; }

  bool start_object(std::size_t) {
    Place next = Place::skipped;
    if (places_.empty()) {
      next = Place::root;
    } else if (at(Place::root) && key_ == "timings") {
      next = Place::timings;
    } else if (at(Place::choices)) {
      next = Place::choice;
      ++result.positions;
    } else if (at(Place::list)) {
      next = Place::entry;
      id_ = -1;
      has_number_ = false;
    }
    return enter(next);
  }
  bool start_array(std::size_t) {
    if (places_.empty())
      return refuse("unexpected_reply", "several choices where one was asked for");
    Place next = Place::skipped;
    if (at(Place::root) && key_ == "completion_probabilities") next = Place::choices;
    if (at(Place::choice) && result.positions == 1) {
      if (key_ == "top_logprobs" || key_ == "top_probs") next = Place::list;
      if (key_ == "top_probs") result.probabilities = true;
    }
    return enter(next);
  }
  bool key(const std::string& name) {
    key_ = name;
    if (at(Place::skipped)) return true;
    if (std::find(seen_.begin() + static_cast<std::ptrdiff_t>(first_seen_.back()), seen_.end(),
                  name) != seen_.end()) {
      return refuse("duplicate_key", fmt::format("the key \"{}\" twice in one object", name));
    }
    seen_.push_back(name);
    return true;
  }
  bool end_object() {
    if (at(Place::entry)) {
      if (id_ < 0 || !has_number_)
        return refuse("unexpected_reply", "an entry without id or value");
      result.top.push_back({static_cast<TokenId>(id_), number_});
    }
    return leave();
  }
  bool end_array() { return leave(); }
  bool parse_error(std::size_t position, const std::string&, const std::exception& error) {
    return refuse("invalid_json", fmt::format("byte {}: {}", position, error.what()));
  }

 private:
  enum class Place { root, timings, choices, choice, list, entry, skipped };

  bool at(Place place) const { return !places_.empty() && places_.back() == place; }
  bool enter(Place place) {
    places_.push_back(place);
    first_seen_.push_back(seen_.size());
    return true;
  }
  bool leave() {
    seen_.resize(first_seen_.back());
    first_seen_.pop_back();
    places_.pop_back();
    return true;
  }
  bool refuse(std::string_view why, std::string what) {
    error_class = why;
    problem = std::move(what);
    return false;
  }
  bool number_wanted() const {
    return at(Place::entry) && (key_ == "logprob" || key_ == "prob" || key_ == "id");
  }

  bool integer(std::int64_t value) {
    if (at(Place::root)) {
      if (key_ == "tokens_predicted") result.predicted = value;
      if (key_ == "tokens_evaluated") result.evaluated = value;
    } else if (at(Place::timings) && key_ == "cache_n") {
      result.cached = value;
    } else if (at(Place::entry) && key_ == "id") {
      if (value < 0 || value > std::numeric_limits<TokenId>::max()) {
        return refuse("unexpected_reply", fmt::format("{} as a token id", value));
      }
      id_ = value;
      return true;
    }
    return real(static_cast<double>(value));
  }
  bool real(double value) {
    if (at(Place::entry) && (key_ == "logprob" || key_ == "prob")) {
      number_ = value;
      has_number_ = true;
    }
    return true;
  }

  std::vector<Place> places_;
  std::vector<std::string> seen_;        // keys of the objects that are open
  std::vector<std::size_t> first_seen_;  // where each of them begins in seen_
  std::string key_;
  std::int64_t id_ = -1;
  double number_ = 0;
  bool has_number_ = false;
};

}  // namespace

std::variant<Completion, Failure> read_completion(const HttpReply& reply) {
  CompletionReader reader;
  if (!Json::sax_parse(reply.body, &reader)) {
    return unusable(reader.error_class, reader.problem, reply);
  }
  std::unordered_set<TokenId> ids;
  ids.reserve(reader.result.top.size());
  for (const TokenLogprob& entry : reader.result.top) {
    if (!ids.insert(entry.id).second) {
      return unusable("duplicate_key", fmt::format("token {} twice in one list", entry.id), reply);
    }
  }
  return std::move(reader.result);
}

std::optional<Failure> completion_problem(const Completion& completion, std::size_t prompt_tokens,
                                          const HttpReply& reply) {
  if (completion.truncated) return unusable("truncated", "the server cut the prompt", reply);
  if (completion.positions > 1 || completion.predicted > 1) {
    return unusable("unexpected_reply",
                    fmt::format("{} tokens where one was asked for",
                                std::max<long long>(completion.positions, completion.predicted)),
                    reply);
  }
  if (completion.cached > 0) {
    return unusable(
        "cached_prompt",
        fmt::format("{} prompt tokens came from the server's cache, which changes values",
                    completion.cached),
        reply);
  }
  if (completion.top.empty()) {
    return unusable("no_logprobs", "no log-probabilities in the reply", reply);
  }
  if (completion.evaluated != static_cast<long long>(prompt_tokens)) {
    return unusable("prompt_mismatch",
                    fmt::format("{} prompt tokens sent, {} counted by the server", prompt_tokens,
                                completion.evaluated),
                    reply);
  }
  for (const TokenLogprob& entry : completion.top) {
    const bool possible = completion.probabilities
                              ? entry.logprob >= 0 && entry.logprob <= 1 + kRounding
                              : entry.logprob <= kRounding;
    if (std::isfinite(entry.logprob) && possible) continue;
    return unusable("not_finite",
                    fmt::format("token {}: {} is no {}", entry.id, entry.logprob,
                                completion.probabilities ? "probability" : "log-probability"),
                    reply);
  }
  return std::nullopt;
}

}  // namespace preval
