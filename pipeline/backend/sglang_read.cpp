#include <fmt/format.h>

#include <limits>

#include "backend/acceptance.h"
#include "backend/dialogue.h"
#include "backend/sglang.h"

namespace preval {

namespace {

/// The id of an entry [log-probability, id, text or null].
std::optional<TokenId> id_of(const Json& entry) {
  if (!entry.is_array() || entry.size() < 2) return std::nullopt;
  const Json& id = entry[1];
  if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<TokenId>::max()) {
    return std::nullopt;
  }
  return id.get<TokenId>();
}

std::variant<std::vector<TokenLogprob>, Failure> entries_of(const Json& list,
                                                            const HttpReply& reply) {
  std::vector<TokenLogprob> entries;
  for (const Json& entry : list) {
    const auto id = id_of(entry);
    if (!id) {
      return unusable("unexpected_reply", "an entry that is not [log-probability, id, text]",
                      reply);
    }
    // What is no number, minus infinity included, is written as null.
    if (!entry[0].is_number()) {
      return unusable("not_finite", fmt::format("token {} has no number", *id), reply);
    }
    entries.push_back({*id, entry[0].get<double>()});
  }
  if (auto problem = logprob_problem(entries, reply)) return *std::move(problem);
  return entries;
}

}  // namespace

std::variant<SglangGeneration, Failure> read_sglang_generation(const HttpReply& reply,
                                                               ReadMode mode) {
  auto json = json_of(reply);
  if (auto* failure = std::get_if<Failure>(&json)) return *std::move(failure);
  const auto unexpected = [&](std::string what) {
    return unusable("unexpected_reply", std::move(what), reply);
  };
  const Json* meta = value_of(std::get<Json>(json), "meta_info");
  if (meta == nullptr || !meta->is_object()) return unexpected("no meta_info of one generation");

  SglangGeneration generation;
  const auto count = [&](const char* key) -> long long {
    const Json* number = value_of(*meta, key);
    return number != nullptr && number->is_number_integer() ? number->get<long long>() : -1;
  };
  generation.prompt_tokens = count("prompt_tokens");
  if (count("completion_tokens") != 1) {
    return unexpected(fmt::format("{} tokens where one was asked for", count("completion_tokens")));
  }
  const Json* finish = value_of(*meta, "finish_reason");
  const Json* how = finish == nullptr ? nullptr : value_of(*finish, "type");
  if (how == nullptr || (*how != "length" && *how != "stop")) {
    return unexpected("ended by neither length nor stop");
  }
  if (const Json* weights = value_of(*meta, "weight_version");
      weights != nullptr && weights->is_string()) {
    generation.weights = weights->get<std::string>();
  }
  const Json* sampled = value_of(*meta, "output_token_logprobs");
  if (sampled != nullptr && sampled->is_array() && sampled->size() == 1) {
    generation.sampled = id_of(sampled->front());
  }

  const Json* positions = value_of(
      *meta, mode == ReadMode::exact ? "output_token_ids_logprobs" : "output_top_logprobs");
  if (positions == nullptr || !positions->is_array() || positions->empty()) {
    return unusable("no_logprobs", "no log-probabilities in the reply", reply);
  }
  if (positions->size() != 1) return unexpected("log-probabilities of more than one token");
  const Json& list = positions->front();
  if (list.is_null() || (list.is_array() && list.empty())) {
    return unusable("no_logprobs", "no log-probabilities in the reply", reply);
  }
  if (!list.is_array()) return unexpected("log-probabilities that are no list");
  auto entries = entries_of(list, reply);
  if (auto* failure = std::get_if<Failure>(&entries)) return *std::move(failure);
  generation.listed = std::get<std::vector<TokenLogprob>>(std::move(entries));
  return generation;
}

}  // namespace preval
