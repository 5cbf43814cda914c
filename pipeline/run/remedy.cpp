#include "run/remedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace preval {

namespace {

constexpr int kUsualK = 20;  // what servers give where they do not say how much they would

/// A JSON value as one word of a shell.
std::string shell_word(const Json& value) {
  std::string word = "'";
  for (const char c : value.dump()) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  word += '\'';
  const bool plain = value.is_number() || value.is_boolean() || value.is_null();
  return plain ? value.dump() : word;
}

std::string change(const std::string& pointer, const Json& from, const Json& to) {
  return fmt::format(" --field {} --from {} --to {}", pointer, shell_word(from), shell_word(to));
}

/// A fact of the server under the name that a finding and a field of the plan's backend have for
/// it.
struct Fact {
  const char *capability, *fact, *field;
};
constexpr std::array kFacts{Fact{"context", "context", "context"}, Fact{"slots", "slots", "slots"},
                            Fact{"KV cache", "kv_cache", "kv_cache"},
                            Fact{"model", "model", "model"}};

/// The changes of `preval deviate` after which this finding would be as the plan needs it, or
/// nothing.
std::string changes_for(const OpenPlan& plan, const BackendSpec& spec, const Finding& finding,
                        const ProbeResult& found) {
  const auto at = std::find_if(plan.effective.backends.begin(), plan.effective.backends.end(),
                               [&](const BackendSpec& each) { return each.id == spec.id; }) -
                  plan.effective.backends.begin();
  const std::string backend = fmt::format("/backends/{}/", at);
  const Json& registered = plan.effective_json["backends"][static_cast<std::size_t>(at)];
  const auto now = [&](const char* field) { return registered.value(field, Json()); };
  const Capabilities& can = found.can;

  std::string changes;
  const auto fact = std::find_if(kFacts.begin(), kFacts.end(), [&](const Fact& each) {
    return finding.capability == each.capability;
  });
  if (fact != kFacts.end()) {
    // What a server that preval starts is given stands in its command: another model is a mistake.
    const bool ours = spec.server.has_value() && finding.capability == "model";
    if (!ours && found.identity.facts.contains(fact->fact)) {
      changes = change(backend + fact->field, now(fact->field), found.identity.facts[fact->fact]);
    }
  } else if (finding.capability == "reasoning switch") {
    changes = change("/prompt/reasoning", true, false);
  } else if (spec.read == ReadMode::exact && !can.by_id && can.top_k) {
    changes = change(backend + "read", "exact", "top-k") +
              change(backend + "k", now("k"), can.most_k.value_or(kUsualK));
    if (!now("raw_probs").is_null()) {
      changes += change(backend + "raw_probs", now("raw_probs"), Json());
    }
  } else if (const auto& most = spec.read == ReadMode::top_k ? can.most_k : can.most_text;
             spec.k > 0 && most && spec.k > *most) {
    changes = change(backend + "k", spec.k, *most);
  }
  return changes;
}

}  // namespace

std::string remedy(const OpenPlan& plan, const BackendSpec& spec,
                   const std::vector<Finding>& problems, const ProbeResult& found) {
  if (!found.can.anything()) return {};  // other fields would not make it readable
  std::vector<std::string> all;          // two findings may come from one field
  for (const Finding& problem : problems) {
    std::string changes = changes_for(plan, spec, problem, found);
    if (!changes.empty() && std::find(all.begin(), all.end(), changes) == all.end()) {
      all.push_back(std::move(changes));
    }
  }
  if (all.empty()) return {};
  return fmt::format("preval deviate {}{} --why TEXT", plan.path.string(), fmt::join(all, ""));
}

}  // namespace preval
