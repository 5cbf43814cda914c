#include "backend/ollama.h"

#include <fmt/format.h>

#include "backend/dialogue.h"
#include "backend/text_labels.h"
#include "base/error.h"
#include "base/sha256.h"

namespace preval {

namespace {

constexpr const char* kFirstWithLogprobs = "0.12.11";

std::string ollama_text(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Ollama's names of a model: "smollm2" means "smollm2:latest".
bool is_ollama_name(const std::string& listed, const std::string& wanted) {
  return listed == wanted || listed == wanted + ":latest";
}

/// Who answers: version, what the model is made of, and its digest.
class OllamaIdentify final : public Scripted<OllamaIdentify, Identity> {
 public:
  explicit OllamaIdentify(const Ollama& backend) : backend_(backend) {}

  Step<Identity> begin() override { return ask(backend_.health(), &OllamaIdentify::on_version); }

 private:
  Step<Identity> on_version(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    backend_.version() = ollama_text(std::get<Json>(json), "version");
    if (backend_.version().empty()) {
      return unusable("unexpected_reply", "/api/version is not that of an Ollama server", reply);
    }
    identity_.facts["engine"] = "ollama";
    identity_.facts["version"] = backend_.version();
    identity_.facts["model"] = backend_.spec().model;
    return ask({"POST", "/api/show", Json{{"model", backend_.spec().model}}.dump()},
               &OllamaIdentify::on_show);
  }

  Step<Identity> on_show(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const Json& show = std::get<Json>(json);
    if (!show.is_object()) return unusable("unexpected_reply", "/api/show is no object", reply);
    if (const auto details = show.find("details"); details != show.end()) {
      for (const char* key : {"format", "family", "parameter_size", "quantization_level"}) {
        if (std::string text = ollama_text(*details, key); !text.empty()) {
          identity_.facts[key] = std::move(text);
        }
      }
    }
    if (const std::string text = ollama_text(show, "template");
        backend_.checkpoint().chat_template == Template::chat && !text.empty()) {
      identity_.facts["chat_template_sha256"] = sha256_hex(text);
    }
    if (const std::string host = ollama_text(show, "remote_host"); !host.empty()) {
      identity_.facts["runs_at"] = host;
    }
    return ask({"GET", "/api/tags", {}}, &OllamaIdentify::on_tags);
  }

  Step<Identity> on_tags(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const Json& tags = std::get<Json>(json);
    if (!tags.is_object() || !tags.contains("models") || !tags["models"].is_array()) {
      return unusable("unexpected_reply", "/api/tags lists no models", reply);
    }
    for (const Json& model : tags["models"]) {
      const std::string digest = ollama_text(model, "digest");
      if (!digest.empty() && is_ollama_name(ollama_text(model, "name"), backend_.spec().model)) {
        identity_.facts["digest"] = digest;
        break;
      }
    }
    return std::move(identity_);
  }

  const Ollama& backend_;
  Identity identity_;
};

class OllamaRead final : public Scripted<OllamaRead, Answer> {
 public:
  OllamaRead(const Ollama& backend, const Item& item, const Sampling& sampling)
      : backend_(backend),
        request_(ollama_read(backend, *item.prompt, sampling)),
        spellings_(item.prompt->labels, backend.spec().spellings,
                   fmt::format("backend {}: spellings", backend.spec().id)) {}

  Step<Answer> begin() override { return ask(request_, &OllamaRead::on_answer); }

 private:
  Step<Answer> on_answer(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const Json& said = std::get<Json>(json);
    if (!said.is_object() || !said.contains("done") || said["done"] != true) {
      return unusable("unexpected_reply", "the reply does not say that it is done", reply);
    }
    Answer answer;
    answer.requests = 1;
    answer.latency_ms = reply.total_ms;
    answer.prompt_tokens = count_of(said, "prompt_eval_count");
    answer.model = ollama_text(said, "model");
    const std::string& asked = backend_.spec().model;
    if (!answer.model.empty() && !is_ollama_name(answer.model, asked)) {
      return unusable("identity_changed",
                      fmt::format("answered by {}, where {} was asked", answer.model, asked),
                      reply);
    }
    if (answer.prompt_tokens >= backend_.spec().context) {
      return unusable("truncated",
                      fmt::format("the prompt fills the context of {} tokens: it was cut",
                                  backend_.spec().context),
                      reply);
    }
    const auto list = said.find("logprobs");
    if (list == said.end() || !list->is_array() || list->empty()) return without(said, reply);
    if (list->size() > 1 || count_of(said, "eval_count") > 1) {
      return unusable("unexpected_reply", "several tokens were generated where one was asked for",
                      reply);
    }
    auto read = read_text_top(list->front(), backend_.spec().k, spellings_, reply);
    if (auto* failure = std::get_if<Failure>(&read)) return *failure;
    answer.distribution = std::get<Distribution>(std::move(read));
    return answer;
  }

  Failure without(const Json& said, const HttpReply& reply) const {
    const std::string reason = ollama_text(said, "done_reason");
    if (reason == "load" || reason == "unload") {
      return unusable("unexpected_reply", "the model was loaded or unloaded, not asked", reply);
    }
    const std::string& version = backend_.version();
    return unusable(
        "no_logprobs",
        fmt::format("no log-probabilities from Ollama{}{}: {} and later give them, for models that "
                    "run here and not at ollama.com{}",
                    version.empty() ? "" : " ", version, kFirstWithLogprobs,
                    reason == "stop" ? ", unless the first token ends the answer" : ""),
        reply);
  }

  static int count_of(const Json& said, const char* key) {
    const auto found = said.find(key);
    if (found == said.end() || !found->is_number_unsigned() || *found > (1 << 30)) return 0;
    return found->get<int>();
  }

  const Ollama& backend_;
  HttpRequest request_;
  LabelSpellings spellings_;
};

}  // namespace

Ollama::Ollama(BackendSpec spec, Checkpoint checkpoint, PromptSpec prompt)
    : spec_(std::move(spec)), checkpoint_(std::move(checkpoint)), prompt_(std::move(prompt)) {
  if (spec_.model.empty()) {
    throw Error(ErrorKind::usage, fmt::format("backend {}: kind ollama needs \"model\"", spec_.id),
                "every request names the model it is for, as `ollama list` does");
  }
}

std::unique_ptr<Dialogue<Identity>> Ollama::identify() const {
  return std::make_unique<OllamaIdentify>(*this);
}

std::unique_ptr<Dialogue<TokenPrompt>> Ollama::tokenise(const Item&) const {
  return std::make_unique<Said<TokenPrompt>>(TokenPrompt{});
}

std::unique_ptr<Dialogue<Answer>> Ollama::read(const Item& item, const TokenPrompt&,
                                               const Sampling& sampling) const {
  return std::make_unique<OllamaRead>(*this, item, sampling);
}

HttpRequest Ollama::health() const { return {"GET", "/api/version", {}}; }

HttpRequest Ollama::nonsense() const {
  return {"POST", "/api/generate", R"({"model":["none"],"prompt":1})"};
}

HttpRequest ollama_read(const Ollama& backend, const Prompt& prompt, const Sampling& sampling) {
  const BackendSpec& spec = backend.spec();
  const bool lead = spec.lead == LeadForm::assistant;
  HttpRequest request;
  Json body;
  body["model"] = spec.model;
  if (backend.checkpoint().chat_template == Template::chat) {
    request.path = "/api/chat";
    body["messages"] = Json::array({{{"role", "system"}, {"content", prompt.system}},
                                    {{"role", "user"}, {"content", prompt.user}}});
    if (lead) body["messages"].push_back({{"role", "assistant"}, {"content", open_lead(prompt)}});
  } else {
    request.path = "/api/generate";
    Prompt sent = prompt;
    sent.lead = lead ? open_lead(prompt) : std::string();
    body["raw"] = true;
    body["prompt"] = plain_text(sent);
  }
  body["think"] = backend.prompt().reasoning;
  body["stream"] = false;
  body["truncate"] = false;
  body["shift"] = false;
  body["logprobs"] = true;
  body["top_logprobs"] = spec.k;
  body["options"] = {
      {"num_predict", 1}, {"temperature", sampling.temperature}, {"num_ctx", spec.context}};
  request.body = body.dump(-1, ' ', false, Json::error_handler_t::strict);
  return request;
}

}  // namespace preval
