#pragma once
// What a server can do, found by trying and not by its name. Servers ignore fields that they do not
// know, cut lists without a word, put log-probabilities through their sampler, or add a second BOS;
// every one of these looks like an answer. The probe asks a few small questions whose answers tell,
// through the same protocols that the run reads with.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace preval {

/// What was found out. A limit that is not known is nothing.
struct Capabilities {
  bool by_id = false;           ///< log-probabilities of chosen tokens, whatever their rank
  std::optional<int> most_ids;  ///< more are refused; nothing: no limit was met
  bool top_k = false;           ///< log-probabilities of the k best tokens
  std::optional<int> most_k;
  bool text = false;  ///< the k best by their text only
  std::optional<int> most_text;
  bool native = false;  ///< the server's own decision

  bool anything() const;  ///< whether it can be read from at all
  /// "exact ≤ 128, top-k ≤ 32", "text only ≤ 20", "native", or "nothing that can be read".
  std::string verdict() const;
};

struct ProbeResult {
  Identity identity;
  Capabilities can;
  std::string answered_by;  ///< the model that the reads' replies name; empty when they do not
  std::vector<Finding> findings;
  /// A failure below the protocol (no connection, a server that does not answer): what was found
  /// before it stands, what would have come after it was not tried.
  std::optional<Failure> broke;
};

/// What is needed of the server: the read mode of `spec`, or nothing in particular.
enum class ProbeFor { plan, knowledge };

/// Probes the server of `spec` with the given prompts, the shortest one for the reads and every one
/// for its labels. `ask` makes one exchange. A finding is not ok when the plan (with
/// ProbeFor::plan) could not be read as it says, or when the server does something that spoils
/// every read.
ProbeResult probe(const BackendSpec& spec, const Checkpoint& checkpoint, const PromptSpec& prompt,
                  const std::vector<Item>& items, ProbeFor purpose, const Ask& ask);

/// The number that a refusal gives as its limit ("… greater than max allowed: 32"), or nothing: the
/// last one that is less than what was asked for, since a refusal often repeats that.
std::optional<int> limit_in(std::string_view message, int asked);

}  // namespace preval
