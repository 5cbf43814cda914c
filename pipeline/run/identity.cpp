#include "run/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace preval {

namespace {

constexpr std::array<std::string_view, 5> kWho{"engine", "version", "build", "model", "digest"};

std::string words(const Json& facts, const std::string& name) {
  if (!facts.contains(name)) return "nothing";
  return facts[name].is_string() ? facts[name].get<std::string>() : facts[name].dump();
}

}  // namespace

std::string identity_difference(const Json& registered, const Json& found) {
  for (const Json* facts : {&registered, &found}) {
    for (const auto& [name, value] : facts->items()) {
      const bool both = registered.contains(name) && found.contains(name);
      if (!both && std::find(kWho.begin(), kWho.end(), name) == kWho.end()) continue;
      const std::string before = words(registered, name), after = words(found, name);
      if (before != after) return fmt::format("{}: registered {}, found {}", name, before, after);
    }
  }
  return {};
}

Json facts_of_identity(const Json& identity) {
  Json facts = identity.value("server", Json::object());
  if (identity.contains("answered_by")) facts["answered by"] = identity["answered_by"];
  if (identity.value("engine", "") != "") facts["version command"] = identity["engine"];
  return facts;
}

}  // namespace preval
