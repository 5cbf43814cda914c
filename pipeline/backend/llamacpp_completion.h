#pragma once
// The reply of llama.cpp's /completion, read as it streams by: a reply with the whole vocabulary
// takes 5 to 26 MB, of which a few thousand numbers matter and a tree of JSON nodes would take ten
// times that.
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backend/backend.h"

namespace preval {

/// What a /completion reply says about its one token. Numbers that it does not tell are -1.
struct Completion {
  /// top_logprobs (nats) or, of a read behind the samplers, top_probs as they are; in reply order.
  std::vector<TokenLogprob> top;
  bool probabilities = false;  ///< `top` holds probabilities
  int positions = 0;           ///< tokens that log-probabilities came for
  long long predicted = -1;    ///< tokens generated
  long long evaluated = -1;    ///< prompt tokens, as counted by the server
  long long cached = -1;       ///< prompt tokens that the server did not compute anew
  bool truncated = false;
  std::string model;  ///< alias or path of the served model
};

/// Reads a reply of status 200. Failures: invalid_json, duplicate_key (a key or a token id given
/// twice), not_finite (null where a number should be), unexpected_reply (several choices, no
/// object).
std::variant<Completion, Failure> read_completion(const HttpReply& reply);

/// What must hold for every reply before its numbers are looked at: one token predicted and
/// described, nothing truncated, every prompt token counted and computed anew, and numbers that can
/// be log-probabilities (at most 1e-6) or probabilities (0 to 1 + 1e-6). Sentinels are left to the
/// caller, since they are an honest "0" for tokens that nobody asked about.
std::optional<Failure> completion_problem(const Completion& completion, std::size_t prompt_tokens,
                                          const HttpReply& reply);

}  // namespace preval
