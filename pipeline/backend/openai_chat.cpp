#include "backend/openai_chat.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/dialogue.h"
#include "backend/errors.h"
#include "backend/llamacpp.h"
#include "backend/model_list.h"
#include "backend/text_labels.h"
#include "base/error.h"

namespace preval {

namespace {

/// The model as the plan names it, and what the list of models says of it, where there is one.
class OpenAiIdentify final : public Dialogue<Identity> {
 public:
  explicit OpenAiIdentify(const OpenAiChat& backend) : backend_(backend) {}

  Step<Identity> begin() override { return backend_.health(); }

  Step<Identity> reply(const HttpReply& reply) override {
    auto json = optional_json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const std::string& model = backend_.spec().model;
    Identity identity;
    identity.facts["engine"] = "openai-chat";
    identity.facts["model"] = model;
    const auto& list = std::get<std::optional<Json>>(json);
    if (!list) return identity;
    const std::vector<ListedModel> models = listed_models(*list);
    const auto found = std::find_if(models.begin(), models.end(),
                                    [&](const ListedModel& each) { return each.id == model; });
    // Lists of hosted interfaces leave models out, and llama.cpp serves its one model under any
    // name.
    identity.facts["listed"] = found != models.end();
    if (found == models.end()) return identity;
    if (!found->owner.empty()) identity.facts["owner"] = found->owner;
    if (found->context) identity.facts["context"] = *found->context;
    return identity;
  }

 private:
  const OpenAiChat& backend_;
};

/// A reply's number of tokens, or -1.
int usage_count(const Json& answer, const char* key) {
  const Json::json_pointer place(fmt::format("/usage/{}", key));
  if (!answer.contains(place) || !answer[place].is_number_unsigned()) return -1;
  return static_cast<int>(std::min<std::uint64_t>(answer[place].get<std::uint64_t>(), 1U << 30));
}

class OpenAiRead final : public Scripted<OpenAiRead, Answer> {
 public:
  OpenAiRead(const OpenAiChat& backend, const Item& item, const Sampling& sampling)
      : backend_(backend),
        prompt_(item.prompt),
        sampling_(sampling),
        spellings_(prompt_->labels, backend.spec().spellings,
                   fmt::format("backend {}: spellings", backend.spec().id)) {}

  Step<Answer> begin() override {
    with_max_tokens_ = backend_.learned().max_tokens;
    return ask({"POST", api_path(backend_.spec().url, "/v1/chat/completions"),
                chat_read_body(backend_, *prompt_, sampling_)},
               &OpenAiRead::on_answer);
  }

 private:
  Step<Answer> on_answer(const HttpReply& reply) {
    answer_.latency_ms += reply.total_ms;
    ++answer_.requests;
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const Json& said = std::get<Json>(json);
    auto position = position_of(said, reply);
    if (auto* failure = std::get_if<Failure>(&position)) return *failure;
    const Json* token = std::get<const Json*>(position);
    if (token == nullptr) {
      if (with_max_tokens_) {
        return unusable("unexpected_reply", "several tokens were generated where one was asked for",
                        reply);
      }
      backend_.learned().max_tokens = true;
      return begin();
    }
    if (auto problem = take_model(said, reply)) return *problem;
    answer_.prompt_tokens = std::max(usage_count(said, "prompt_tokens"), 0);
    auto read = read_text_top(*token, backend_.spec().k, spellings_, reply);
    if (auto* failure = std::get_if<Failure>(&read)) return *failure;
    answer_.distribution = std::get<Distribution>(std::move(read));
    return std::move(answer_);
  }

  /// What the reply says about its token; nothing when it has generated several.
  static std::variant<const Json*, Failure> position_of(const Json& said, const HttpReply& reply) {
    const auto choices = said.is_object() ? said.find("choices") : said.end();
    if (choices == said.end() || !choices->is_array()) {
      // Proxies put the errors of what is behind them into a reply of status 200.
      const std::string words = server_message(reply.body).text;
      return unusable("unexpected_reply",
                      words.empty() ? "the reply has no choices" : "no choices: " + words, reply);
    }
    if (choices->size() != 1) {
      return unusable("unexpected_reply",
                      fmt::format("{} choices where one was asked for", choices->size()), reply);
    }
    const Json::json_pointer place("/logprobs/content");
    const Json& choice = choices->front();
    if (const std::string why = withheld(choice); !why.empty()) {
      return unusable("withheld", why, reply);
    }
    if (!choice.is_object() || !choice.contains(place) || !choice[place].is_array() ||
        choice[place].empty()) {
      return unusable("no_logprobs",
                      "the reply has no log-probabilities: this model or server does not give any",
                      reply);
    }
    if (choice[place].size() > 1 || usage_count(said, "completion_tokens") > 1) return nullptr;
    return &choice[place].front();
  }

  /// An answer that was filtered or refused is not what the model says: why, or empty.
  static std::string withheld(const Json& choice) {
    if (!choice.is_object()) return {};
    const Json::json_pointer refusal("/message/refusal");
    if (choice.contains(refusal) && choice[refusal].is_string() && choice[refusal] != "") {
      return "refused: " + choice[refusal].get<std::string>();
    }
    const auto finish = choice.find("finish_reason");
    if (finish == choice.end() || finish->is_null() || *finish == "length" || *finish == "stop") {
      return {};
    }
    return "finish_reason " + finish->dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  /// The interface knows a model by several names (gpt-4o is gpt-4o-2024-08-06 today), so the first
  /// answer says which one it is, and the others have to come from there, too.
  std::optional<Failure> take_model(const Json& said, const HttpReply& reply) {
    const auto model = said.find("model");
    if (model == said.end() || !model->is_string()) return std::nullopt;
    answer_.model = model_file(model->get<std::string>());
    std::string& first = backend_.learned().model;
    if (first.empty()) first = answer_.model;
    if (answer_.model == first) return std::nullopt;
    return unusable("identity_changed",
                    fmt::format("answered by {}, where {} answered before", answer_.model, first),
                    reply);
  }

  const OpenAiChat& backend_;
  const Prompt* prompt_;
  Sampling sampling_;
  LabelSpellings spellings_;
  Answer answer_;
  bool with_max_tokens_ = false;
};

}  // namespace

OpenAiChat::OpenAiChat(BackendSpec spec, const Checkpoint& checkpoint, PromptSpec prompt)
    : spec_(std::move(spec)), prompt_(std::move(prompt)) {
  if (spec_.model.empty()) {
    throw Error(ErrorKind::usage,
                fmt::format("backend {}: kind openai-chat needs \"model\"", spec_.id),
                "every request names the model it is for");
  }
  if (checkpoint.chat_template == Template::none) {
    throw Error(
        ErrorKind::usage,
        fmt::format("backend {}: kind openai-chat cannot read checkpoint {}, whose template "
                    "is \"none\"",
                    spec_.id, checkpoint.id),
        "a chat endpoint puts every prompt into a template");
  }
}

std::unique_ptr<Dialogue<Identity>> OpenAiChat::identify() const {
  return std::make_unique<OpenAiIdentify>(*this);
}

std::unique_ptr<Dialogue<TokenPrompt>> OpenAiChat::tokenise(const Item&) const {
  return std::make_unique<Said<TokenPrompt>>(TokenPrompt{});
}

std::unique_ptr<Dialogue<Answer>> OpenAiChat::read(const Item& item, const TokenPrompt&,
                                                   const Sampling& sampling) const {
  return std::make_unique<OpenAiRead>(*this, item, sampling);
}

HttpRequest OpenAiChat::health() const { return {"GET", api_path(spec_.url, "/v1/models"), {}}; }

HttpRequest OpenAiChat::nonsense() const {
  return {"POST", api_path(spec_.url, "/v1/chat/completions"),
          Json{{"model", spec_.model}, {"messages", "none"}}.dump()};
}

std::string chat_read_body(const OpenAiChat& backend, const Prompt& prompt,
                           const Sampling& sampling) {
  const BackendSpec& spec = backend.spec();
  const bool lead = spec.lead == LeadForm::assistant;
  Json body;
  body["model"] = spec.model;
  body["messages"] = Json::array({{{"role", "system"}, {"content", prompt.system}},
                                  {{"role", "user"}, {"content", prompt.user}}});
  if (lead) body["messages"].push_back({{"role", "assistant"}, {"content", open_lead(prompt)}});
  body["logprobs"] = true;
  body["top_logprobs"] = spec.k;
  body[backend.learned().max_tokens ? "max_tokens" : "max_completion_tokens"] = 1;
  body["temperature"] = sampling.temperature;
  body["n"] = 1;
  if (lead) {
    body["continue_final_message"] = true;
    body["add_generation_prompt"] = false;
    body["chat_template_kwargs"]["enable_thinking"] = backend.prompt().reasoning;
  }
  return body.dump(-1, ' ', false, Json::error_handler_t::strict);
}

}  // namespace preval
