#include "backend/llamacpp.h"

#include <fmt/format.h>

#include "backend/acceptance.h"
#include "backend/dialogue.h"
#include "backend/tokenise.h"
#include "base/error.h"
#include "base/sha256.h"

namespace preval {

namespace {

std::string token_list(const std::vector<TokenId>& tokens) {
  return fmt::format("[{}]", fmt::join(tokens, ","));
}

HttpRequest get(std::string path) { return {"GET", std::move(path), {}}; }

HttpRequest post(std::string path, const Json& body) {
  return {"POST", std::move(path), body.dump(-1, ' ', false, Json::error_handler_t::strict)};
}

/// Who answers: file, weights and build, as far as the server knows them. Nothing of it may differ
/// between two boots of one server on two machines, for it is part of every prediction's key.
class Identify final : public Scripted<Identify, Identity> {
 public:
  explicit Identify(const LlamaCpp& backend) : backend_(backend) {}

  Step<Identity> begin() override { return ask(get("/props"), &Identify::on_props); }

 private:
  Step<Identity> on_props(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const Json& props = std::get<Json>(json);
    if (!props.is_object() || !props.contains("total_slots")) {
      return unusable("unexpected_reply", "/props is not that of a llama.cpp server", reply);
    }
    Json& facts = identity_.facts;
    facts["engine"] = "llama.cpp";
    copy_text(props, "build_info", "build");
    if (const auto path = props.find("model_path"); path != props.end() && path->is_string()) {
      facts["model"] = model_file(path->get<std::string>());
    }
    copy_text(props, "model_ftype", "ftype");
    facts["slots"] = props["total_slots"];
    if (const Json::json_pointer n_ctx("/default_generation_settings/n_ctx");
        props.contains(n_ctx)) {
      facts["context"] = props[n_ctx];
    }
    if (backend_.checkpoint().chat_template == Template::chat) {
      if (const auto text = props.find("chat_template"); text != props.end() && text->is_string()) {
        facts["chat_template_sha256"] = sha256_hex(text->get<std::string>());
      }
    }
    return ask(get("/v1/models"), &Identify::on_models);
  }

  Step<Identity> on_models(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const Json& models = std::get<Json>(json);
    const Json::json_pointer first("/data/0"), id("/data/0/id"), meta("/data/0/meta");
    if (!models.contains(id) || !models[id].is_string()) {
      return unusable("unexpected_reply", "/v1/models names no model", reply);
    }
    backend_.learned().model = models[id].get<std::string>();
    if (models.contains(meta) && models[meta].is_object()) {
      for (const auto& [theirs, ours] : {std::pair{"n_vocab", "vocabulary"},
                                         {"n_params", "parameters"},
                                         {"size", "weights_bytes"},
                                         {"n_ctx_train", "context_trained"}}) {
        if (models[meta].contains(theirs)) identity_.facts[ours] = models[meta][theirs];
      }
    }
    return std::move(identity_);
  }

  void copy_text(const Json& props, const char* theirs, const char* ours) {
    const auto found = props.find(theirs);
    if (found != props.end() && found->is_string()) identity_.facts[ours] = *found;
  }

  const LlamaCpp& backend_;
  Identity identity_;
};

/// Prompt → tokens: template, tokens, BOS, and the labels that no earlier prompt has shown.
class Tokenise final : public Scripted<Tokenise, TokenPrompt> {
 public:
  Tokenise(const LlamaCpp& backend, const Item& item) : backend_(backend), item_(item) {}

  Step<TokenPrompt> begin() override {
    if (!chat()) {
      const Prompt& prompt = *item_.prompt;
      const std::string text = plain_text(prompt);
      return ask_tokens(text.substr(0, text.size() - prompt.lead.size()), false,
                        &Tokenise::on_tokens);
    }
    Json body;
    body["messages"] = Json::array({{{"role", "system"}, {"content", item_.prompt->system}},
                                    {{"role", "user"}, {"content", item_.prompt->user}}});
    body["chat_template_kwargs"]["enable_thinking"] = backend_.prompt().reasoning;
    return ask(post("/apply-template", body), &Tokenise::on_template);
  }

 private:
  bool chat() const { return backend_.checkpoint().chat_template == Template::chat; }

  Step<TokenPrompt> ask_tokens(const std::string& text, bool special, Understand next) {
    Json body;
    body["content"] = text;
    body["add_special"] = false;
    body["parse_special"] = special;
    return ask(post("/tokenize", body), next);
  }

  Step<TokenPrompt> on_template(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const Json& answer = std::get<Json>(json);
    if (!answer.is_object() || !answer.contains("prompt") || !answer["prompt"].is_string()) {
      return unusable("unexpected_reply", "/apply-template gives no prompt", reply);
    }
    return ask_tokens(answer["prompt"].get<std::string>(), true, &Tokenise::on_tokens);
  }

  Step<TokenPrompt> on_tokens(const HttpReply& reply) {
    auto tokens = tokens_of(reply);
    if (auto* failure = std::get_if<Failure>(&tokens)) return *failure;
    result_.tokens = std::get<std::vector<TokenId>>(std::move(tokens));
    if (backend_.learned().bos) return check_start(reply);
    // The tokens of an empty text are those that the model adds by itself.
    return ask(post("/tokenize", {{"content", ""}, {"add_special", true}}), &Tokenise::on_bos);
  }

  Step<TokenPrompt> on_bos(const HttpReply& reply) {
    auto tokens = tokens_of(reply);
    if (auto* failure = std::get_if<Failure>(&tokens)) return *failure;
    auto bos = std::get<std::vector<TokenId>>(std::move(tokens));
    if (bos.size() > 1) {
      return unusable("unexpected_reply",
                      fmt::format("the model adds {} tokens of its own, not a BOS alone: {}",
                                  bos.size(), token_list(bos)),
                      reply);
    }
    backend_.learned().bos = std::move(bos);
    return check_start(reply);
  }

  Step<TokenPrompt> check_start(const HttpReply& reply) {
    std::vector<TokenId>& tokens = result_.tokens;
    const std::vector<TokenId>& bos = *backend_.learned().bos;
    const std::string twice =
        doubled_start(tokens, bos.empty() ? std::nullopt : std::optional(bos[0]), chat());
    if (!twice.empty()) return unusable("prompt_mismatch", twice, reply);
    if (!bos.empty() && (tokens.empty() || tokens[0] != bos[0]))
      tokens.insert(tokens.begin(), bos[0]);
    return next_label(reply);
  }

  Step<TokenPrompt> next_label(const HttpReply& reply) {
    const Prompt& prompt = *item_.prompt;
    std::vector<std::vector<TokenId>> sequences;
    for (const std::string& label : prompt.labels) {
      const auto known = backend_.learned().labels.find({prompt.lead, label});
      if (known == backend_.learned().labels.end()) {
        asked_ = label;
        return ask_tokens(prompt.lead + label, false, &Tokenise::on_label);
      }
      sequences.push_back(known->second);
    }
    try {
      LabelTokens found = find_label_tokens(sequences, prompt.labels, where());
      result_.tokens.insert(result_.tokens.end(), found.lead.begin(), found.lead.end());
      result_.labels = std::move(found.labels);
    } catch (const Error& error) {
      return unusable("label_tokens", error.what(), reply);
    }
    return std::move(result_);
  }

  Step<TokenPrompt> on_label(const HttpReply& reply) {
    auto tokens = tokens_of(reply);
    if (auto* failure = std::get_if<Failure>(&tokens)) return *failure;
    backend_.learned().labels[{item_.prompt->lead, asked_}] =
        std::get<std::vector<TokenId>>(std::move(tokens));
    return next_label(reply);
  }

  std::string where() const {
    return item_.record == nullptr ? "prompt" : fmt::format("record {}", item_.record->id);
  }

  static std::variant<std::vector<TokenId>, Failure> tokens_of(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const Json& answer = std::get<Json>(json);
    if (!answer.is_object() || !answer.contains("tokens") || !answer["tokens"].is_array()) {
      return unusable("unexpected_reply", "/tokenize gives no tokens", reply);
    }
    return token_ids_of(answer["tokens"], reply);
  }

  const LlamaCpp& backend_;
  Item item_;
  TokenPrompt result_;
  std::string asked_;
};

}  // namespace

LlamaCpp::LlamaCpp(BackendSpec spec, Checkpoint checkpoint, PromptSpec prompt)
    : spec_(std::move(spec)), checkpoint_(std::move(checkpoint)), prompt_(std::move(prompt)) {}

std::unique_ptr<Dialogue<Identity>> LlamaCpp::identify() const {
  return std::make_unique<Identify>(*this);
}

std::unique_ptr<Dialogue<TokenPrompt>> LlamaCpp::tokenise(const Item& item) const {
  return std::make_unique<Tokenise>(*this, item);
}

HttpRequest LlamaCpp::health() const { return get("/health"); }

HttpRequest LlamaCpp::nonsense() const {
  return {"POST", "/completion", R"({"prompt":[1],"n_predict":"many"})"};
}

std::string model_file(const std::string& served) {
  return served.substr(served.find_last_of("/\\") + 1);
}

std::string raw_read_body(const std::vector<TokenId>& prompt, int n_probs,
                          std::optional<TokenId> generate, const Sampling& sampling) {
  const std::string bias =
      generate ? fmt::format(R"(,"logit_bias":[[{},{}]])", *generate, kRestrictingBias)
               : std::string();
  return fmt::format(
      R"({{"prompt":{},"n_predict":1,"temperature":{},"n_probs":{},"cache_prompt":false,)"
      R"("post_sampling_probs":false{}}})",
      token_list(prompt), sampling.temperature, n_probs, bias);
}

std::string restricted_read_body(const std::vector<TokenId>& prompt,
                                 const std::vector<TokenId>& labels) {
  std::vector<std::string> bias;
  bias.reserve(labels.size());
  for (const TokenId label : labels)
    bias.push_back(fmt::format("[{},{}]", label, kRestrictingBias));
  return fmt::format(
      R"({{"prompt":{},"n_predict":1,"temperature":1,"samplers":[],"n_probs":{},"cache_prompt":false,)"
      R"("post_sampling_probs":true,"logit_bias":[{}]}})",
      token_list(prompt), labels.size(), fmt::join(bias, ","));
}

}  // namespace preval
