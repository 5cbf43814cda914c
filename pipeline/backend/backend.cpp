#include "backend/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/llamacpp.h"
#include "backend/simulated.h"
#include "base/error.h"
#include "base/text.h"

namespace preval {

namespace {

/// A server protocol: its name in plans, what it can do, how it is made. A new one is a new row
/// here.
struct Kind {
  std::string name;
  std::vector<ReadMode> modes;
  std::unique_ptr<Backend> (*make)(const BackendSpec&, const Checkpoint&, const PromptSpec&);
};

std::vector<Kind> kinds() {
  using enum ReadMode;
  return {
      {"llamacpp",
       {exact, top_k},
       [](const BackendSpec& spec, const Checkpoint& checkpoint,
          const PromptSpec& prompt) -> std::unique_ptr<Backend> {
         return std::make_unique<LlamaCpp>(spec, checkpoint, prompt);
       }},
      {"simulated",
       {exact, top_k, text_top_k, native},
       [](const BackendSpec& spec, const Checkpoint& checkpoint, const PromptSpec&)
           -> std::unique_ptr<Backend> { return std::make_unique<Simulated>(spec, checkpoint); }},
  };
}

}  // namespace

std::unique_ptr<Backend> make_backend(const BackendSpec& spec, const Checkpoint& checkpoint,
                                      const PromptSpec& prompt) {
  const std::vector<Kind> known = kinds();
  const auto kind = std::find_if(known.begin(), known.end(),
                                 [&](const Kind& entry) { return entry.name == spec.kind; });
  if (kind == known.end()) {
    std::vector<std::string> names;
    for (const Kind& entry : known) names.push_back(entry.name);
    throw Error(ErrorKind::usage,
                fmt::format("backend {}: unknown kind \"{}\"{}", spec.id, spec.kind,
                            did_you_mean(spec.kind, names)),
                "known kinds: " + join(names, ", "));
  }
  if (std::find(kind->modes.begin(), kind->modes.end(), spec.read) == kind->modes.end()) {
    std::vector<std::string> modes;
    for (const ReadMode mode : kind->modes) modes.emplace_back(to_text(mode));
    throw Error(ErrorKind::usage,
                fmt::format("backend {}: kind {} cannot read in mode {}", spec.id, spec.kind,
                            to_text(spec.read)),
                fmt::format("kind {} reads: {}", spec.kind, join(modes, ", ")));
  }
  return kind->make(spec, checkpoint, prompt);
}

}  // namespace preval
