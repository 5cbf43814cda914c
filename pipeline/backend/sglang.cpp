#include "backend/sglang.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/acceptance.h"
#include "backend/dialogue.h"
#include "backend/model_list.h"

namespace preval {

namespace {

/// Who answers. /server_info tells much more, of which only what can change values is kept.
class SglangIdentify final : public Scripted<SglangIdentify, Identity> {
 public:
  explicit SglangIdentify(const Sglang& backend) : backend_(backend) {}

  Step<Identity> begin() override {
    return ask({"GET", "/model_info", {}}, &SglangIdentify::on_model);
  }

 private:
  Step<Identity> on_model(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const Json& info = std::get<Json>(json);
    if (!has_text(info, "model_path")) {
      return unusable("unexpected_reply", "/model_info is not that of an SGLang server", reply);
    }
    identity_.facts["engine"] = "sglang";
    if (has_text(info, "weight_version")) {
      identity_.facts["weights"] = info["weight_version"];
      backend_.learned().weights = info["weight_version"].get<std::string>();
    }
    // The name that the server was given, which is the path when it was given none.
    const char* name = has_text(info, "served_model_name") ? "served_model_name" : "model_path";
    identity_.facts["model"] = public_name(info[name].get<std::string>(), backend_.spec().model);
    return ask({"GET", "/server_info", {}}, &SglangIdentify::on_server);
  }

  Step<Identity> on_server(const HttpReply& reply) {
    auto json = json_of(reply);
    const Json* info = std::get_if<Json>(&json);
    if (info == nullptr || !has_text(*info, "version")) {
      // Not with its body, which holds every argument of the server, keys included.
      Failure failure = unusable("unexpected_reply", "/server_info tells no version", reply);
      failure.body.clear();
      return failure;
    }
    Json& facts = identity_.facts;
    facts["version"] = (*info)["version"];
    for (const auto& [theirs, ours] : {std::pair{"kv_cache_dtype", "kv_cache"},
                                       {"dtype", "dtype"},
                                       {"quantization", "quantization"},
                                       {"attention_backend", "attention"}}) {
      if (has_text(*info, theirs)) facts[ours] = (*info)[theirs];
    }
    return ask({"GET", "/v1/models", {}}, &SglangIdentify::on_models);
  }

  Step<Identity> on_models(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const std::vector<ListedModel> models = listed_models(std::get<Json>(json));
    if (!models.empty() && models.front().context) {
      identity_.facts["context"] = *models.front().context;
    }
    return std::move(identity_);
  }

  static bool has_text(const Json& object, const char* key) {
    return object.is_object() && object.contains(key) && object[key].is_string();
  }

  const Sglang& backend_;
  Identity identity_;
};

class SglangRead final : public Scripted<SglangRead, Answer> {
 public:
  SglangRead(const Sglang& backend, const TokenPrompt& prompt, const Sampling& sampling)
      : backend_(backend), prompt_(prompt), sampling_(sampling) {}

  Step<Answer> begin() override {
    std::string body = exact() ? sglang_exact_body(prompt_, sampling_)
                               : sglang_top_k_body(prompt_.tokens, backend_.spec().k, sampling_);
    return ask({"POST", "/generate", std::move(body)}, &SglangRead::on_generation);
  }

 private:
  bool exact() const { return backend_.spec().read == ReadMode::exact; }

  Step<Answer> on_generation(const HttpReply& reply) {
    auto read = read_sglang_generation(reply, backend_.spec().read);
    if (auto* failure = std::get_if<Failure>(&read)) return *std::move(failure);
    const SglangGeneration& generation = std::get<SglangGeneration>(read);
    const auto sent = static_cast<long long>(prompt_.tokens.size());
    if (generation.prompt_tokens != sent) {
      return unusable("prompt_mismatch",
                      fmt::format("{} prompt tokens sent, {} counted by the server", sent,
                                  generation.prompt_tokens),
                      reply);
    }
    const std::string& weights = backend_.learned().weights;
    if (!weights.empty() && !generation.weights.empty() && weights != generation.weights) {
      return unusable(
          "identity_changed",
          fmt::format("answered by weights {}, where {} were serving", generation.weights, weights),
          reply);
    }
    answer_.latency_ms = reply.total_ms;
    answer_.requests = 1;
    answer_.prompt_tokens = static_cast<int>(sent);
    if (exact()) return by_id(generation, reply);
    return finish(accept_top_k(generation.listed, backend_.spec().k, prompt_.labels, reply));
  }

  Step<Answer> finish(std::variant<Distribution, Failure> accepted) {
    if (auto* failure = std::get_if<Failure>(&accepted)) {
      // A sentinel is the model's own minus infinity here: asking again would change nothing.
      failure->retry = failure->alone = false;
      return *std::move(failure);
    }
    answer_.distribution = std::get<Distribution>(std::move(accepted));
    return std::move(answer_);
  }

  Step<Answer> by_id(const SglangGeneration& generation, const HttpReply& reply) {
    auto accepted =
        accept_by_id(generation.listed, prompt_.labels, backend_.spec().sentinel_is_zero, reply);
    auto* distribution = std::get_if<Distribution>(&accepted);
    if (distribution != nullptr && generation.sampled && sampling_.temperature == 0) {
      // At temperature 0 the sampled token is the best of the vocabulary.
      distribution->argmax_is_label = std::find(prompt_.labels.begin(), prompt_.labels.end(),
                                                *generation.sampled) != prompt_.labels.end();
    }
    return finish(std::move(accepted));
  }

  const Sglang& backend_;
  TokenPrompt prompt_;
  Sampling sampling_;
  Answer answer_;
};

std::string generate_body(const std::vector<TokenId>& prompt, const Sampling& sampling,
                          const std::string& logprobs) {
  return fmt::format(
      R"({{"input_ids":[{}],"sampling_params":{{"max_new_tokens":1,"temperature":{}}},)"
      R"("return_logprob":true,"logprob_start_len":-1,{}}})",
      fmt::join(prompt, ","), sampling.temperature, logprobs);
}

}  // namespace

Sglang::Sglang(BackendSpec spec, Checkpoint checkpoint, PromptSpec prompt)
    : spec_(std::move(spec)), checkpoint_(std::move(checkpoint)), prompt_(std::move(prompt)) {}

std::unique_ptr<Dialogue<Identity>> Sglang::identify() const {
  return std::make_unique<SglangIdentify>(*this);
}

std::unique_ptr<Dialogue<TokenPrompt>> Sglang::tokenise(const Item& item) const {
  TokeniseForm form;
  form.chat_template = checkpoint_.chat_template;
  form.messages["chat_template_kwargs"]["enable_thinking"] = prompt_.reasoning;
  form.if_refused =
      "an SGLang whose /tokenize takes no messages cannot render the model's chat template for us: "
      "serve with a newer one, or read with template none";
  return make_tokenise(std::move(form), item, learned_.tokens);
}

std::unique_ptr<Dialogue<Answer>> Sglang::read(const Item&, const TokenPrompt& prompt,
                                               const Sampling& sampling) const {
  return std::make_unique<SglangRead>(*this, prompt, sampling);
}

HttpRequest Sglang::health() const { return {"GET", "/health", {}}; }

HttpRequest Sglang::nonsense() const { return {"POST", "/generate", R"({"input_ids":"many"})"}; }

std::string sglang_exact_body(const TokenPrompt& prompt, const Sampling& sampling) {
  return generate_body(prompt.tokens, sampling,
                       fmt::format(R"("token_ids_logprob":[{}])", fmt::join(prompt.labels, ",")));
}

std::string sglang_top_k_body(const std::vector<TokenId>& prompt, int k, const Sampling& sampling) {
  return generate_body(prompt, sampling, fmt::format(R"("top_logprobs_num":{})", k));
}

}  // namespace preval
