#include "backend/model_list.h"

#include <fmt/format.h>

#include "backend/dialogue.h"
#include "base/text.h"

namespace preval {

namespace {

constexpr std::string_view kApiVersion = "/v1";

}  // namespace

std::variant<std::optional<Json>, Failure> optional_json_of(const HttpReply& reply) {
  if (reply.status == 404 || reply.status == 405 || reply.status == 501) return std::nullopt;
  if (auto failure = transport_failure(reply)) return *std::move(failure);
  auto json = json_of(reply);
  if (auto* known = std::get_if<Json>(&json)) return std::move(*known);
  return std::nullopt;
}

std::vector<ListedModel> listed_models(const Json& reply) {
  std::vector<ListedModel> models;
  if (!reply.is_object() || !reply.contains("data") || !reply["data"].is_array()) return models;
  for (const Json& entry : reply["data"]) {
    if (!entry.is_object() || !entry.contains("id") || !entry["id"].is_string()) continue;
    ListedModel model;
    model.id = entry["id"].get<std::string>();
    if (const auto owner = entry.find("owned_by"); owner != entry.end() && owner->is_string()) {
      model.owner = owner->get<std::string>();
    }
    if (const auto root = entry.find("root"); root != entry.end() && root->is_string()) {
      model.root = root->get<std::string>();
    }
    const auto context = entry.find("max_model_len");
    if (context != entry.end() && context->is_number_integer() && *context > 0 &&
        *context < 1'000'000'000) {
      model.context = context->get<int>();
    }
    models.push_back(std::move(model));
  }
  return models;
}

std::string ambiguous_model(const std::vector<ListedModel>& models, const std::string& planned) {
  if (!planned.empty()) return {};
  std::vector<std::string> names;
  bool one = true;
  for (const ListedModel& each : models) {
    names.push_back(public_name(each.id, planned));
    const std::string& first = models.front().root;
    one = one && (each.id == models.front().id || (!first.empty() && each.root == first));
  }
  if (one) return {};
  return fmt::format(
      "the server lists several models ({}): \"model\" of the backend, or --model of "
      "preval probe, has to name one",
      join(names, ", "));
}

std::string public_name(const std::string& served, const std::string& planned) {
  const bool told = served == planned || !served.starts_with('/');
  return told ? served : served.substr(served.find_last_of('/') + 1);
}

std::string api_path(std::string_view base_url, std::string_view path) {
  while (base_url.ends_with('/')) base_url.remove_suffix(1);
  const bool is_host = base_url.ends_with("//v1");
  if (base_url.ends_with(kApiVersion) && path.starts_with(kApiVersion) && !is_host) {
    path.remove_prefix(kApiVersion.size());
  }
  return std::string(path);
}

}  // namespace preval
