#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backend/acceptance.h"
#include "backend/dialogue.h"
#include "backend/vllm.h"
#include "base/text.h"

namespace preval {

namespace {

/// "token_id:464" → 464.
std::optional<TokenId> token_of(std::string_view key) {
  constexpr std::string_view prefix = "token_id:";
  if (!key.starts_with(prefix)) return std::nullopt;
  const auto id = to_integer(key.substr(prefix.size()));
  if (!id || *id < 0 || *id > std::numeric_limits<TokenId>::max()) return std::nullopt;
  return static_cast<TokenId>(*id);
}

/// At most 40 bytes, cut between characters.
std::string shortened(const std::string& text) {
  if (text.size() <= 40) return text;
  std::size_t end = 40;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

/// One-element list, or nothing.
const Json* only_element(const Json* list) {
  return list != nullptr && list->is_array() && list->size() == 1 ? &list->front() : nullptr;
}

std::variant<std::vector<TokenLogprob>, Failure> map_of(const Json& map, const HttpReply& reply) {
  std::vector<TokenLogprob> top;
  for (const auto& [key, value] : map.items()) {
    const auto id = token_of(key);
    if (!id) {
      return unusable(
          "text_keys",
          fmt::format("log-probabilities by text (\"{}\"), where tokens that read alike "
                      "overwrite each other",
                      shortened(key)),
          reply);
    }
    if (!value.is_number()) {
      return unusable("not_finite", fmt::format("token {} has no number", *id), reply);
    }
    top.push_back({*id, value.get<double>()});
  }
  if (auto problem = logprob_problem(top, reply)) return *std::move(problem);
  return top;
}

class VllmRead final : public Scripted<VllmRead, Answer> {
 public:
  VllmRead(const Vllm& backend, const TokenPrompt& prompt, const Sampling& sampling)
      : backend_(backend), prompt_(prompt), sampling_(sampling) {}

  Step<Answer> begin() override {
    const std::string& model = backend_.learned().model;
    std::string body = exact()
                           ? vllm_exact_body(model, prompt_, sampling_)
                           : vllm_top_k_body(model, prompt_.tokens, backend_.spec().k, sampling_);
    return ask({"POST", "/v1/completions", std::move(body)}, &VllmRead::on_completion);
  }

 private:
  bool exact() const { return backend_.spec().read == ReadMode::exact; }

  Step<Answer> on_completion(const HttpReply& reply) {
    auto read = read_vllm_completion(reply);
    if (auto* failure = std::get_if<Failure>(&read)) return *std::move(failure);
    VllmCompletion& completion = std::get<VllmCompletion>(read);
    if (auto problem = other_prompt(completion, reply)) return *std::move(problem);
    if (auto problem = other_model(completion, reply)) return *std::move(problem);
    if (auto problem = other_server(completion, reply)) return *std::move(problem);
    answer_.latency_ms = reply.total_ms;
    answer_.requests = 1;
    answer_.prompt_tokens = static_cast<int>(prompt_.tokens.size());
    answer_.model = completion.model;
    return exact() ? by_id(completion.top, reply) : best(std::move(completion), reply);
  }

  std::optional<Failure> other_prompt(const VllmCompletion& completion,
                                      const HttpReply& reply) const {
    if (completion.prompt) {
      backend_.learned().echoes = true;
      return echo_problem(prompt_.tokens, *completion.prompt, reply);
    }
    if (backend_.learned().echoes) {
      return unusable("prompt_mismatch", "the reply does not repeat its prompt, as others did",
                      reply);
    }
    // Before ids were echoed there was the count alone.
    const auto sent = static_cast<long long>(prompt_.tokens.size());
    if (completion.prompt_tokens == sent) return std::nullopt;
    if (!completion.prompt_tokens) {
      return unusable("unexpected_reply", "the reply does not say which prompt it is for", reply);
    }
    return unusable("prompt_mismatch",
                    fmt::format("{} prompt tokens sent, {} counted by the server", sent,
                                *completion.prompt_tokens),
                    reply);
  }

  std::optional<Failure> other_model(const VllmCompletion& completion,
                                     const HttpReply& reply) const {
    Vllm::Learned& learned = backend_.learned();
    const std::string& model = completion.model;
    if (model.empty()) return std::nullopt;
    // One model may have several names: the first reply shows which of them the server uses.
    const bool known =
        learned.served.empty() ||
        std::find(learned.served.begin(), learned.served.end(), model) != learned.served.end();
    if (known && learned.answering.empty()) learned.answering = model;
    if (known && learned.answering == model) return std::nullopt;
    const std::string& expected = learned.answering.empty() ? learned.model : learned.answering;
    return unusable("identity_changed",
                    fmt::format("answered by {}, where {} was serving", model, expected), reply);
  }

  /// The fingerprint holds the version: the first reply shows it, every other one repeats it.
  std::optional<Failure> other_server(const VllmCompletion& completion,
                                      const HttpReply& reply) const {
    std::string& known = backend_.learned().fingerprint;
    if (known.empty()) known = completion.fingerprint;
    if (completion.fingerprint.empty() || known == completion.fingerprint) return std::nullopt;
    return unusable(
        "identity_changed",
        fmt::format("answered by {}, where {} was serving", completion.fingerprint, known), reply);
  }

  /// The map holds the labels and the sampled token.
  Step<Answer> by_id(const std::vector<TokenLogprob>& top, const HttpReply& reply) {
    const auto is_label = [&](TokenId id) {
      return std::find(prompt_.labels.begin(), prompt_.labels.end(), id) != prompt_.labels.end();
    };
    for (const TokenLogprob& entry : top) {
      // Whatever was sampled is possible: such a value is that of another request.
      if (is_sentinel(entry.logprob) && !is_label(entry.id)) return sentinel_failure(entry, reply);
    }
    auto accepted = accept_by_id(top, prompt_.labels, backend_.spec().sentinel_is_zero, reply);
    if (auto* failure = std::get_if<Failure>(&accepted)) return *std::move(failure);
    answer_.distribution = std::get<Distribution>(std::move(accepted));
    if (sampling_.temperature == 0) {
      // At temperature 0 the sampled token is the best of the vocabulary, and the first of the map.
      const auto best = std::max_element(top.begin(), top.end(), [](const auto& a, const auto& b) {
        return a.logprob < b.logprob;
      });
      answer_.distribution.argmax_is_label = is_label(best->id);
    }
    return std::move(answer_);
  }

  /// The k best, and the sampled token as one more where it is none of them.
  Step<Answer> best(VllmCompletion completion, const HttpReply& reply) {
    std::vector<TokenLogprob>& top = completion.top;
    const int k = backend_.spec().k;
    if (static_cast<long long>(top.size()) == k + 1LL) {
      const auto sampled = std::find_if(top.begin(), top.end(), [&](const TokenLogprob& entry) {
        return entry.id == completion.sampled;
      });
      const bool lowest =
          sampled != top.end() && std::all_of(top.begin(), top.end(), [&](const auto& entry) {
            return entry.logprob >= sampled->logprob;
          });
      if (lowest && !is_sentinel(sampled->logprob)) top.erase(sampled);
    }
    auto accepted = accept_top_k(top, k, prompt_.labels, reply);
    if (auto* failure = std::get_if<Failure>(&accepted)) return *std::move(failure);
    answer_.distribution = std::get<Distribution>(std::move(accepted));
    return std::move(answer_);
  }

  const Vllm& backend_;
  TokenPrompt prompt_;
  Sampling sampling_;
  Answer answer_;
};

}  // namespace

std::unique_ptr<Dialogue<Answer>> Vllm::read(const Item&, const TokenPrompt& prompt,
                                             const Sampling& sampling) const {
  return std::make_unique<VllmRead>(*this, prompt, sampling);
}

std::variant<VllmCompletion, Failure> read_vllm_completion(const HttpReply& reply) {
  auto json = json_of(reply);
  if (auto* failure = std::get_if<Failure>(&json)) return *std::move(failure);
  const Json& root = std::get<Json>(json);
  const auto unexpected = [&](std::string what) {
    return unusable("unexpected_reply", std::move(what), reply);
  };

  const Json* choices = value_of(root, "choices");
  const Json* choice = only_element(choices);
  if (choices == nullptr) return unexpected("no choices in the reply");
  if (choice == nullptr) return unexpected("not exactly one choice");
  const Json* usage = value_of(root, "usage");
  const auto count = [&](const char* key) -> std::optional<long long> {
    const Json* number = usage == nullptr ? nullptr : value_of(*usage, key);
    if (number == nullptr || !number->is_number_integer()) return std::nullopt;
    return number->get<long long>();
  };
  if (const auto tokens = count("completion_tokens"); tokens.value_or(1) != 1) {
    return unexpected(fmt::format("{} tokens where one was asked for", *tokens));
  }
  const Json* finish = value_of(*choice, "finish_reason");
  if (finish == nullptr || (*finish != "length" && *finish != "stop")) {
    return unexpected(fmt::format("finish_reason {}, where length or stop ends a read",
                                  finish == nullptr ? "null" : shortened(finish->dump())));
  }

  VllmCompletion completion;
  completion.prompt_tokens = count("prompt_tokens");
  for (const auto& [key, text] :
       {std::pair{"model", &completion.model}, {"system_fingerprint", &completion.fingerprint}}) {
    const Json* found = value_of(root, key);
    if (found != nullptr && found->is_string()) *text = found->get<std::string>();
  }
  if (const Json* echo = value_of(*choice, "prompt_token_ids")) {
    if (!echo->is_array()) return unexpected("prompt_token_ids is no list");
    auto ids = token_ids_of(*echo, reply);
    if (auto* failure = std::get_if<Failure>(&ids)) return *std::move(failure);
    completion.prompt = std::get<std::vector<TokenId>>(std::move(ids));
  }

  const Json* tokens = value_of(*choice, "token_ids");
  if (tokens != nullptr && !tokens->is_null() && only_element(tokens) == nullptr) {
    return unexpected("token_ids are not those of one token");
  }

  const Json* logprobs = value_of(*choice, "logprobs");
  const Json* positions = logprobs == nullptr ? nullptr : value_of(*logprobs, "top_logprobs");
  if (positions == nullptr || (positions->is_array() && positions->empty())) {
    return unusable("no_logprobs", "no log-probabilities in the reply", reply);
  }
  const Json* map = only_element(positions);
  if (map == nullptr) return unexpected("log-probabilities not of exactly one token");
  if (map->is_null() || (map->is_object() && map->empty())) {
    return unusable("no_logprobs", "no log-probabilities in the reply", reply);
  }
  if (!map->is_object()) return unexpected("top_logprobs[0] is no object");
  auto top = map_of(*map, reply);
  if (auto* failure = std::get_if<Failure>(&top)) return *std::move(failure);
  completion.top = std::get<std::vector<TokenLogprob>>(std::move(top));
  const Json* sampled = only_element(value_of(*logprobs, "tokens"));
  if (sampled != nullptr && sampled->is_string()) {
    completion.sampled = token_of(sampled->get<std::string>());
  }
  return completion;
}

}  // namespace preval
