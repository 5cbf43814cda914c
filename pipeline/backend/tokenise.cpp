#include "backend/tokenise.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backend/acceptance.h"
#include "backend/dialogue.h"
#include "base/error.h"

namespace preval {

namespace {

constexpr std::size_t kShown = 40;  // bytes of what is no token id, in messages

class TokeniseByHttp final : public Dialogue<TokenPrompt> {
 public:
  TokeniseByHttp(TokeniseForm form, const Item& item, LearnedTokens& learned)
      : form_(std::move(form)), item_(item), learned_(learned) {}

  Step<TokenPrompt> begin() override {
    if (!chat()) return ask_text(head(), false, &TokeniseByHttp::on_head);
    Json body = form_.always;
    body["messages"] = Json::array({{{"role", "system"}, {"content", item_.prompt->system}},
                                    {{"role", "user"}, {"content", item_.prompt->user}}});
    body.update(form_.messages);
    return ask(body, &TokeniseByHttp::on_head);
  }

  Step<TokenPrompt> reply(const HttpReply& reply) override {
    if (auto failure = transport_failure(reply)) {
      const bool refused = reply.status == 400 || reply.status == 422;
      if (refused && chat() && result_.tokens.empty() && !form_.if_refused.empty()) {
        failure->message += "; " + form_.if_refused;
      }
      return *std::move(failure);
    }
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const Json& answer = std::get<Json>(json);
    if (!answer.is_object() || !answer.contains("tokens") || !answer["tokens"].is_array()) {
      return unusable("unexpected_reply", "/tokenize gives no tokens", reply);
    }
    auto tokens = token_ids_of(answer["tokens"], reply);
    if (auto* failure = std::get_if<Failure>(&tokens)) return *failure;
    return (this->*next_)(std::get<std::vector<TokenId>>(std::move(tokens)), reply);
  }

 private:
  using Understand = Step<TokenPrompt> (TokeniseByHttp::*)(std::vector<TokenId>, const HttpReply&);

  bool chat() const { return form_.chat_template == Template::chat; }

  /// The plain text up to the lead.
  std::string head() const {
    const std::string text = plain_text(*item_.prompt);
    return text.substr(0, text.size() - item_.prompt->lead.size());
  }

  Step<TokenPrompt> ask(const Json& body, Understand next) {
    next_ = next;
    return HttpRequest{"POST", "/tokenize",
                       body.dump(-1, ' ', false, Json::error_handler_t::strict)};
  }

  Step<TokenPrompt> ask_text(const std::string& text, bool special, Understand next) {
    Json body = form_.always;
    body["prompt"] = text;
    body["add_special_tokens"] = special;
    return ask(body, next);
  }

  Step<TokenPrompt> on_head(std::vector<TokenId> tokens, const HttpReply& reply) {
    if (tokens.empty()) return unusable("unexpected_reply", "the prompt has no tokens", reply);
    result_.tokens = std::move(tokens);
    if (chat() || learned_.bos) return check_start(reply);
    // The same text with what the model adds by itself: the difference is the BOS, if there is one.
    return ask_text(head(), true, &TokeniseByHttp::on_bos);
  }

  Step<TokenPrompt> on_bos(std::vector<TokenId> tokens, const HttpReply& reply) {
    const std::vector<TokenId>& without = result_.tokens;
    const std::size_t added = tokens.size() - std::min(tokens.size(), without.size());
    const auto text = tokens.begin() + static_cast<std::ptrdiff_t>(added);
    if (added > 1 || !std::equal(text, tokens.end(), without.begin(), without.end())) {
      return unusable("unexpected_reply",
                      fmt::format("the model adds more to a text than a BOS in front: {} tokens, "
                                  "{} without special ones",
                                  tokens.size(), without.size()),
                      reply);
    }
    learned_.bos = std::vector<TokenId>(tokens.begin(), text);
    return check_start(reply);
  }

  Step<TokenPrompt> check_start(const HttpReply& reply) {
    std::vector<TokenId>& tokens = result_.tokens;
    std::optional<TokenId> bos;
    if (!chat() && !learned_.bos->empty()) bos = learned_.bos->front();
    const std::string twice = doubled_start(tokens, bos, chat());
    if (!twice.empty()) return unusable("prompt_mismatch", twice, reply);
    if (bos && tokens.front() != *bos) tokens.insert(tokens.begin(), *bos);
    return next_label(reply);
  }

  Step<TokenPrompt> next_label(const HttpReply& reply) {
    const Prompt& prompt = *item_.prompt;
    std::vector<std::vector<TokenId>> sequences;
    for (const std::string& label : prompt.labels) {
      const auto known = learned_.labels.find({prompt.lead, label});
      if (known == learned_.labels.end()) {
        asked_ = label;
        return ask_text(prompt.lead + label, false, &TokeniseByHttp::on_label);
      }
      sequences.push_back(known->second);
    }
    try {
      const std::string where =
          item_.record == nullptr ? "prompt" : fmt::format("record {}", item_.record->id);
      LabelTokens found = find_label_tokens(sequences, prompt.labels, where);
      result_.tokens.insert(result_.tokens.end(), found.lead.begin(), found.lead.end());
      result_.labels = std::move(found.labels);
    } catch (const Error& error) {
      return unusable("label_tokens", error.what(), reply);
    }
    return std::move(result_);
  }

  Step<TokenPrompt> on_label(std::vector<TokenId> tokens, const HttpReply& reply) {
    learned_.labels[{item_.prompt->lead, asked_}] = std::move(tokens);
    return next_label(reply);
  }

  TokeniseForm form_;
  Item item_;
  LearnedTokens& learned_;
  Understand next_ = nullptr;
  TokenPrompt result_;
  std::string asked_;
};

}  // namespace

std::unique_ptr<Dialogue<TokenPrompt>> make_tokenise(TokeniseForm form, const Item& item,
                                                     LearnedTokens& learned) {
  return std::make_unique<TokeniseByHttp>(std::move(form), item, learned);
}

std::variant<std::vector<TokenId>, Failure> token_ids_of(const Json& list, const HttpReply& reply) {
  std::vector<TokenId> tokens;
  tokens.reserve(list.size());
  for (const Json& token : list) {
    if (!token.is_number_integer() || token < 0 || token > std::numeric_limits<TokenId>::max()) {
      const std::string what = token.dump(-1, ' ', true).substr(0, kShown);
      return unusable("unexpected_reply", fmt::format("{} as a token id", what), reply);
    }
    tokens.push_back(token.get<TokenId>());
  }
  return tokens;
}

}  // namespace preval
