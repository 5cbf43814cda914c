#include "backend/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/protocols.h"
#include "base/error.h"
#include "base/text.h"

namespace preval {

std::unique_ptr<Backend> make_backend(const BackendSpec& spec, const Checkpoint& checkpoint,
                                      const PromptSpec& prompt) {
  const std::string& kind = spec.transcript ? spec.transcript->protocol : spec.kind;
  const Protocol* protocol = find_protocol(kind);
  if (protocol == nullptr) {
    const std::vector<std::string> names = backend_kinds();
    throw Error(
        ErrorKind::usage,
        fmt::format("backend {}: unknown kind \"{}\"{}", spec.id, kind, did_you_mean(kind, names)),
        "known kinds: " + join(names, ", "));
  }
  const std::vector<ReadMode>& modes = protocol->modes;
  if (std::find(modes.begin(), modes.end(), spec.read) == modes.end()) {
    std::vector<std::string> names;
    for (const ReadMode mode : modes) names.emplace_back(to_text(mode));
    throw Error(ErrorKind::usage,
                fmt::format("backend {}: kind {} cannot read in mode {}", spec.id, kind,
                            to_text(spec.read)),
                fmt::format("kind {} reads: {}", kind, join(names, ", ")));
  }
  return protocol->make(spec, checkpoint, prompt);
}

std::vector<ReadMode> read_modes(std::string_view kind) {
  const Protocol* protocol = find_protocol(kind);
  return protocol == nullptr ? std::vector<ReadMode>{} : protocol->modes;
}

std::vector<std::string> backend_kinds() {
  std::vector<std::string> names;
  for (const Protocol& each : protocols()) names.emplace_back(each.name);
  return names;
}

std::string Finding::text() const {
  return evidence.empty() ? verdict : verdict + " (" + evidence + ")";
}

}  // namespace preval
