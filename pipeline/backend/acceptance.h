#pragma once
// What must hold for the numbers of every reply, whatever the protocol: the rules of acceptance
// that are not about one server's JSON.
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backend/backend.h"

namespace preval {

/// Numbers that stand for minus infinity: -9999 (vLLM), the lowest number of some format
/// (llama.cpp, SGLang), and whatever else is lower than any softmax gives.
bool is_sentinel(double logprob);

/// A log-probability that is not finite or above 1e-6 (not_finite), or a token that is there twice
/// (duplicate_key). Sentinels are left to the caller.
std::optional<Failure> logprob_problem(const std::vector<TokenLogprob>& top,
                                       const HttpReply& reply);

/// Failure logprob_sentinel, which is worth one more try alone: vLLM writes sentinels over the
/// answers that share a batch with a request by id.
Failure sentinel_failure(const TokenLogprob& entry, const HttpReply& reply);

/// What a reply to a read by id says of the labels. Every label must be there (missing_label: a
/// server that ignores the ids would otherwise make probabilities up), and with a value: at a
/// sentinel a label has probability 0 if `sentinel_is_zero` and another label has more, else the
/// read fails (logprob_sentinel, as above). `listed` may hold other tokens, too; entropy and best
/// token are left to the caller, who knows what they are.
std::variant<Distribution, Failure> accept_by_id(const std::vector<TokenLogprob>& listed,
                                                 const std::vector<TokenId>& labels,
                                                 bool sentinel_is_zero, const HttpReply& reply);

/// A read of the `k` best: as many must be there (unexpected_reply), none at a sentinel, and at
/// least one of them a label (no_label).
std::variant<Distribution, Failure> accept_top_k(const std::vector<TokenLogprob>& top, int k,
                                                 const std::vector<TokenId>& labels,
                                                 const HttpReply& reply);

/// prompt_mismatch when the ids that a reply echoes are not those that were sent, naming the first
/// difference.
std::optional<Failure> echo_problem(const std::vector<TokenId>& sent,
                                    const std::vector<TokenId>& echoed, const HttpReply& reply);

/// A prompt that begins with one token twice, in words; empty when it does not. No chat template
/// does that; a plain text may, by chance, unless the token is the BOS.
std::string doubled_start(const std::vector<TokenId>& prompt, const std::optional<TokenId>& bos,
                          bool chat);

}  // namespace preval
