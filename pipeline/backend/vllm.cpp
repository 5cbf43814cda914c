#include "backend/vllm.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/dialogue.h"
#include "backend/model_list.h"

namespace preval {

namespace {

/// Who answers: version, model, longest prompt, and the KV cache's type where metrics are on.
class VllmIdentify final : public Dialogue<Identity> {
 public:
  explicit VllmIdentify(const Vllm& backend) : backend_(backend) {}

  Step<Identity> begin() override { return ask("/version", &VllmIdentify::on_version); }

  Step<Identity> reply(const HttpReply& reply) override {
    // Metrics may be off, or behind a key of their own: then the cache's type is not known.
    const bool optional =
        next_ == &VllmIdentify::on_metrics && reply.status >= 400 && reply.status < 500;
    if (optional) return std::move(identity_);
    if (auto failure = transport_failure(reply)) return *std::move(failure);
    return (this->*next_)(reply);
  }

 private:
  using Understand = Step<Identity> (VllmIdentify::*)(const HttpReply&);

  Step<Identity> ask(std::string path, Understand next) {
    next_ = next;
    return HttpRequest{"GET", std::move(path), {}};
  }

  Step<Identity> on_version(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const Json& answer = std::get<Json>(json);
    if (!answer.is_object() || !answer.contains("version") || !answer["version"].is_string()) {
      return unusable("unexpected_reply", "/version is not that of a vLLM server", reply);
    }
    identity_.facts["engine"] = "vllm";
    identity_.facts["version"] = answer["version"];
    return ask("/v1/models", &VllmIdentify::on_models);
  }

  Step<Identity> on_models(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const std::vector<ListedModel> models = listed_models(std::get<Json>(json));
    if (models.empty()) return unusable("unexpected_reply", "/v1/models names no model", reply);
    const std::string& planned = backend_.spec().model;
    if (const std::string why = ambiguous_model(models, planned); !why.empty()) {
      return unusable("several_models", why, reply);
    }
    const auto named = std::find_if(models.begin(), models.end(),
                                    [&](const ListedModel& each) { return each.id == planned; });
    const ListedModel& asked = named == models.end() ? models.front() : *named;
    Vllm::Learned& learned = backend_.learned();
    learned.served.clear();
    for (const ListedModel& each : models) learned.served.push_back(each.id);
    learned.model = asked.id;
    identity_.facts["model"] = public_name(asked.id, planned);
    if (asked.context) identity_.facts["context"] = *asked.context;
    return ask("/metrics", &VllmIdentify::on_metrics);
  }

  Step<Identity> on_metrics(const HttpReply& reply) {
    const std::string cache = metric_label(reply.body, "vllm:cache_config_info", "cache_dtype");
    if (!cache.empty()) identity_.facts["kv_cache"] = cache;
    return std::move(identity_);
  }

  const Vllm& backend_;
  Understand next_ = nullptr;
  Identity identity_;
};

/// What both kinds of reads ask for. Without ids as keys, tokens of one text would overwrite each
/// other; with special tokens added to ids, some versions would put a BOS before the prompt.
std::string read_body(const std::string& model, const std::vector<TokenId>& prompt,
                      const Sampling& sampling, const std::string& logprobs) {
  const std::string name =
      model.empty() ? std::string() : fmt::format(R"("model":{},)", Json(model).dump());
  return fmt::format(
      R"({{{}"prompt":[{}],"max_tokens":1,"temperature":{},{},"return_tokens_as_token_ids":true,)"
      R"("return_token_ids":true,"add_special_tokens":false}})",
      name, fmt::join(prompt, ","), sampling.temperature, logprobs);
}

}  // namespace

Vllm::Vllm(BackendSpec spec, Checkpoint checkpoint, PromptSpec prompt)
    : spec_(std::move(spec)), checkpoint_(std::move(checkpoint)), prompt_(std::move(prompt)) {
  learned_.model = spec_.model;
}

std::unique_ptr<Dialogue<Identity>> Vllm::identify() const {
  return std::make_unique<VllmIdentify>(*this);
}

std::unique_ptr<Dialogue<TokenPrompt>> Vllm::tokenise(const Item& item) const {
  TokeniseForm form;
  form.chat_template = checkpoint_.chat_template;
  if (!learned_.model.empty()) form.always["model"] = learned_.model;
  form.messages["add_generation_prompt"] = true;
  form.messages["add_special_tokens"] = false;
  form.messages["chat_template_kwargs"]["enable_thinking"] = prompt_.reasoning;
  return make_tokenise(std::move(form), item, learned_.tokens);
}

HttpRequest Vllm::health() const { return {"GET", "/health", {}}; }

HttpRequest Vllm::nonsense() const {
  return {"POST", "/v1/completions", R"({"prompt":[1],"max_tokens":"many"})"};
}

std::string vllm_exact_body(const std::string& model, const TokenPrompt& prompt,
                            const Sampling& sampling) {
  return read_body(
      model, prompt.tokens, sampling,
      fmt::format(R"("logprobs":1,"logprob_token_ids":[{}])", fmt::join(prompt.labels, ",")));
}

std::string vllm_top_k_body(const std::string& model, const std::vector<TokenId>& prompt, int k,
                            const Sampling& sampling) {
  return read_body(model, prompt, sampling, fmt::format(R"("logprobs":{})", k));
}

std::string metric_label(std::string_view text, std::string_view metric, std::string_view name) {
  const std::string start = fmt::format("{}{{", metric), wanted = fmt::format("{}=\"", name);
  for (std::size_t line = 0; line < text.size();) {
    const std::size_t end = std::min(text.find('\n', line), text.size());
    const std::string_view one = text.substr(line, end - line);
    line = end + 1;
    if (!one.starts_with(start)) continue;
    for (std::size_t at = one.find(wanted); at != std::string_view::npos;
         at = one.find(wanted, at + 1)) {
      // "cache_dtype" must not be found inside "mamba_cache_dtype".
      if (one[at - 1] != '{' && one[at - 1] != ',') continue;
      const std::string_view value = one.substr(at + wanted.size());
      return std::string(value.substr(0, value.find('"')));
    }
  }
  return {};
}

}  // namespace preval
