#include "backend/systemone.h"

#include <fmt/format.h>

#include "backend/dialogue.h"
#include "backend/llamacpp.h"
#include "backend/model_list.h"
#include "backend/systemone_answer.h"

namespace preval {

namespace {

/// The list of models and the version, from those servers that have them.
class SystemOneIdentify final : public Dialogue<Identity> {
 public:
  explicit SystemOneIdentify(const SystemOne& backend) : backend_(backend) {}

  Step<Identity> begin() override { return backend_.health(); }

  Step<Identity> reply(const HttpReply& reply) override {
    auto json = optional_json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const auto& told = std::get<std::optional<Json>>(json);
    if (!listed_) {
      listed_ = true;
      take_models(told);
      return HttpRequest{"GET", "/version", {}};
    }
    if (told && told->is_object() && told->contains("version") && (*told)["version"].is_string()) {
      identity_.facts["version"] = (*told)["version"];
    }
    return std::move(identity_);
  }

 private:
  void take_models(const std::optional<Json>& told) {
    identity_.facts["engine"] = "systemone";
    const std::vector<ListedModel> models =
        told ? listed_models(*told) : std::vector<ListedModel>{};
    if (!models.empty()) {
      backend_.learned().listed = models.front().id;
      if (!models.front().owner.empty()) identity_.facts["owner"] = models.front().owner;
      if (models.front().context) identity_.facts["context"] = *models.front().context;
    }
    if (!backend_.model().empty()) identity_.facts["model"] = model_file(backend_.model());
  }

  const SystemOne& backend_;
  Identity identity_;
  bool listed_ = false;
};

class SystemOneRead final : public Scripted<SystemOneRead, Answer> {
 public:
  SystemOneRead(const SystemOne& backend, const Item& item) : backend_(backend), item_(item) {}

  Step<Answer> begin() override {
    if (auto problem = record_names_model()) return *std::move(problem);
    return ask({"POST", api_path(backend_.spec().url, "/v1/systemone"),
                systemone_body(item_.prompt->native, backend_.model())},
               &SystemOneRead::on_answer);
  }

 private:
  Step<Answer> on_answer(const HttpReply& reply) {
    auto json = json_of(reply);
    if (auto* failure = std::get_if<Failure>(&json)) return *failure;
    const Json& said = std::get<Json>(json);
    std::string model;
    if (said.is_object() && said.contains("model") && said["model"].is_string()) {
      model = said["model"].get<std::string>();
    }
    if (auto problem = other_model(model, reply)) return *problem;
    auto read = read_systemone(said, item_, backend_.spec(), reply);
    if (auto* failure = std::get_if<Failure>(&read)) return *failure;
    Answer& answer = std::get<Answer>(read);
    answer.requests = 1;
    answer.latency_ms = reply.total_ms;
    answer.model = model_file(model);
    return std::move(answer);
  }

  /// Which model answers is the plan's to say. Of two members of one name servers take either, so
  /// such a record is not asked.
  std::optional<Failure> record_names_model() const {
    const Record& record = *item_.record;
    if (!record.input.is_object() || !record.input.contains("model")) return std::nullopt;
    return unusable("record_refused",
                    fmt::format("record {} (subset {}, line {}): its input names a model, which is "
                                "the plan's to name",
                                record.id, record.subset, record.line),
                    {});
  }

  /// The plan's model has to answer; without one, whichever answered first.
  std::optional<Failure> other_model(const std::string& model, const HttpReply& reply) {
    if (model.empty()) return std::nullopt;
    std::string& first = backend_.learned().answered;
    if (first.empty()) first = model;
    const std::string& expected = backend_.spec().model.empty() ? first : backend_.spec().model;
    if (model == expected) return std::nullopt;
    return unusable(
        "identity_changed",
        fmt::format("answered by {}, where {} was {}", model_file(model), model_file(expected),
                    backend_.spec().model.empty() ? "answering before" : "asked"),
        reply);
  }

  const SystemOne& backend_;
  Item item_;
};

}  // namespace

std::unique_ptr<Dialogue<Identity>> SystemOne::identify() const {
  return std::make_unique<SystemOneIdentify>(*this);
}

std::unique_ptr<Dialogue<TokenPrompt>> SystemOne::tokenise(const Item&) const {
  return std::make_unique<Said<TokenPrompt>>(TokenPrompt{});
}

std::unique_ptr<Dialogue<Answer>> SystemOne::read(const Item& item, const TokenPrompt&,
                                                  const Sampling&) const {
  return std::make_unique<SystemOneRead>(*this, item);
}

HttpRequest SystemOne::health() const { return {"GET", api_path(spec_.url, "/v1/models"), {}}; }

HttpRequest SystemOne::nonsense() const {
  return {"POST", api_path(spec_.url, "/v1/systemone"), R"({"questions":"many"})"};
}

std::string systemone_body(const std::string& native, const std::string& model) {
  if (model.empty()) return native;
  const std::string name = Json(model).dump(-1, ' ', false, Json::error_handler_t::strict);
  return fmt::format(R"({{"model":{},{})", name, std::string_view(native).substr(1));
}

}  // namespace preval
