#include "plan/plan.h"

#include <fmt/format.h>

#include <stdexcept>

namespace preval {
namespace {

template <class T>
const T& find_by_id(const std::vector<T>& items, std::string_view id, std::string_view what) {
  for (const T& item : items) {
    if (item.id == id) return item;
  }
  throw std::out_of_range(fmt::format("plan has no {} \"{}\"", what, id));
}

}  // namespace

std::string_view to_text(QuestionType value) {
  switch (value) {
    case QuestionType::noul:
      return "noul";
    case QuestionType::choice:
      return "choice";
    case QuestionType::score:
      return "score";
  }
  throw std::logic_error("unknown question type");
}

std::string_view to_text(ReadMode value) {
  switch (value) {
    case ReadMode::exact:
      return "exact";
    case ReadMode::top_k:
      return "top-k";
    case ReadMode::text_top_k:
      return "text-top-k";
    case ReadMode::native:
      return "native";
  }
  throw std::logic_error("unknown read mode");
}

std::string_view to_text(ScoringProfile value) {
  switch (value) {
    case ScoringProfile::suite:
      return "suite";
    case ScoringProfile::tasks:
      return "tasks";
    case ScoringProfile::own:
      return "own";
  }
  throw std::logic_error("unknown scoring profile");
}

std::string_view to_text(Template value) {
  switch (value) {
    case Template::chat:
      return "chat";
    case Template::none:
      return "none";
  }
  throw std::logic_error("unknown template");
}

std::string_view to_text(LeadForm value) {
  switch (value) {
    case LeadForm::assistant:
      return "assistant";
    case LeadForm::none:
      return "none";
  }
  throw std::logic_error("unknown form of the lead");
}

std::string_view to_text(ScoredNative value) {
  switch (value) {
    case ScoredNative::probabilities:
      return "probabilities";
    case ScoredNative::choice:
      return "choice";
  }
  throw std::logic_error("unknown rule of what is scored");
}

std::string_view to_text(LevelRule value) {
  switch (value) {
    case LevelRule::none:
      return "none";
    case LevelRule::nearest:
      return "nearest";
    case LevelRule::floor:
      return "floor";
    case LevelRule::ceiling:
      return "ceiling";
  }
  throw std::logic_error("unknown rule of levels");
}

bool BackendSpec::asks_server() const { return kind != "simulated" && kind != "replay"; }

const Checkpoint& Plan::checkpoint(std::string_view id) const {
  return find_by_id(checkpoints, id, "checkpoint");
}

const BackendSpec& Plan::backend(std::string_view id) const {
  return find_by_id(backends, id, "backend");
}

const Arm& Plan::arm(std::string_view id) const { return find_by_id(arms, id, "arm"); }

Json answer_settings(const Plan& plan, const Arm& arm) {
  const Checkpoint& checkpoint = plan.checkpoint(arm.checkpoint);
  const BackendSpec& backend = plan.backend(arm.backend);
  Json files = Json::array();
  for (const CheckpointFile& file : checkpoint.files) files.push_back(file.sha256);
  Json settings;
  settings["checkpoint"] = {{"revision", checkpoint.revision},
                            {"weights_dtype", checkpoint.weights_dtype},
                            {"template", to_text(checkpoint.chat_template)},
                            {"files", std::move(files)}};
  Json& asked = settings["backend"];
  asked = {{"kind", backend.kind},
           {"read", to_text(backend.read)},
           {"kv_cache", backend.kv_cache},
           {"context", backend.context},
           {"slots", backend.slots},
           {"threads", backend.threads},
           {"concurrency", backend.concurrency}};
  if (backend.k > 0) asked["k"] = backend.k;
  if (backend.kind == "llamacpp" && backend.read == ReadMode::exact) {
    asked["raw_probs"] = backend.raw_probs;
  }
  if (!backend.model.empty()) asked["model"] = backend.model;
  // Interfaces that say little about themselves are told apart by where they are.
  if (!backend.url.empty()) asked["url"] = backend.url;
  if (!backend.replica_urls.empty()) asked["replica_urls"] = backend.replica_urls;
  if (backend.read == ReadMode::text_top_k) {
    asked["lead"] = to_text(backend.lead);
    asked["spellings"] = backend.spellings;
  }
  if (backend.read == ReadMode::native) {
    asked["scored"] = to_text(backend.scored);
    asked["score_level"] = to_text(backend.score_level);
  }
  if (backend.sentinel_is_zero) asked["sentinel_is_zero"] = true;
  if (backend.transcript) {
    asked["transcript"] = {{"protocol", backend.transcript->protocol},
                           {"sha256", backend.transcript->sha256}};
  }
  if (backend.server) asked["command"] = backend.server->command;
  if (backend.kind == "simulated") {
    asked["simulation"] = {{"accuracy", backend.simulation.accuracy},
                           {"sharpness", backend.simulation.sharpness},
                           {"missing", backend.simulation.missing},
                           {"seed", backend.simulation.seed}};
  }
  if (backend.read == ReadMode::native) return settings;  // the record is sent as it is
  settings["prompt"] = {{"sha256", plan.prompt.sha256},
                        {"reasoning", plan.prompt.reasoning},
                        {"state", plan.prompt.state_ascii ? "ascii" : "utf-8"}};
  return settings;
}

}  // namespace preval
