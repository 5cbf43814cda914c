#include "backend/acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backend/dialogue.h"

namespace preval {

namespace {

constexpr double kHighest = 1e-6;  // a log-probability of a certain token, with rounding
// No softmax over a vocabulary gives anything as low: -9999 (vLLM), the lowest bfloat16 and float
// (llama.cpp, SGLang) and the lowest half float all say that a token was masked or never computed.
constexpr double kMasked = -9000;

}  // namespace

bool is_sentinel(double logprob) { return logprob <= kMasked; }

std::optional<Failure> logprob_problem(const std::vector<TokenLogprob>& top,
                                       const HttpReply& reply) {
  std::vector<TokenId> ids;
  ids.reserve(top.size());
  for (const TokenLogprob& entry : top) {
    if (!std::isfinite(entry.logprob) || entry.logprob > kHighest) {
      return unusable("not_finite",
                      fmt::format("{} as the log-probability of token {}", entry.logprob, entry.id),
                      reply);
    }
    ids.push_back(entry.id);
  }
  std::sort(ids.begin(), ids.end());
  if (const auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end()) {
    return unusable("duplicate_key", fmt::format("token {} is there twice", *twice), reply);
  }
  return std::nullopt;
}

Failure sentinel_failure(const TokenLogprob& entry, const HttpReply& reply) {
  Failure failure =
      unusable("logprob_sentinel", fmt::format("token {}: {}", entry.id, entry.logprob), reply);
  failure.retry = failure.alone = true;
  return failure;
}

std::variant<Distribution, Failure> accept_by_id(const std::vector<TokenLogprob>& listed,
                                                 const std::vector<TokenId>& labels,
                                                 bool sentinel_is_zero, const HttpReply& reply) {
  std::vector<double> logprobs;
  std::optional<TokenLogprob> zero;
  for (const TokenId label : labels) {
    const auto found = std::find_if(listed.begin(), listed.end(),
                                    [&](const TokenLogprob& entry) { return entry.id == label; });
    if (found == listed.end()) {
      return unusable("missing_label",
                      fmt::format("token {} was asked for by id and is not in the reply", label),
                      reply);
    }
    const bool sentinel = is_sentinel(found->logprob);
    if (sentinel && !sentinel_is_zero) return sentinel_failure(*found, reply);
    if (sentinel) zero = *found;
    logprobs.push_back(sentinel ? -HUGE_VAL : found->logprob);
  }
  const bool all_zero = std::all_of(logprobs.begin(), logprobs.end(),
                                    [](double logprob) { return logprob == -HUGE_VAL; });
  if (zero && all_zero) return sentinel_failure(*zero, reply);
  return read_exact(logprobs, {}, labels);
}

std::variant<Distribution, Failure> accept_top_k(const std::vector<TokenLogprob>& top, int k,
                                                 const std::vector<TokenId>& labels,
                                                 const HttpReply& reply) {
  const auto sentinel = std::find_if(
      top.begin(), top.end(), [](const TokenLogprob& entry) { return is_sentinel(entry.logprob); });
  if (sentinel != top.end()) return sentinel_failure(*sentinel, reply);
  if (static_cast<long long>(top.size()) != k || top.empty()) {
    return unusable("unexpected_reply",
                    fmt::format("{} log-probabilities asked for, {} came", k, top.size()), reply);
  }
  Distribution distribution = read_top_k(top, labels);
  if (distribution.labels_returned == 0) {
    return unusable("no_label", fmt::format("no label among the {} best tokens", k), reply);
  }
  return distribution;
}

std::optional<Failure> echo_problem(const std::vector<TokenId>& sent,
                                    const std::vector<TokenId>& echoed, const HttpReply& reply) {
  if (sent == echoed) return std::nullopt;
  const auto [ours, theirs] = std::mismatch(sent.begin(), sent.end(), echoed.begin(), echoed.end());
  return unusable("prompt_mismatch",
                  fmt::format("{} prompt tokens were sent, {} came back, different from position "
                              "{} on",
                              sent.size(), echoed.size(), ours - sent.begin()),
                  reply);
}

std::string doubled_start(const std::vector<TokenId>& prompt, const std::optional<TokenId>& bos,
                          bool chat) {
  if (prompt.size() < 2 || prompt[0] != prompt[1]) return {};
  if (!chat && bos != prompt[0]) return {};
  return fmt::format("the prompt begins with token {} twice: a doubled BOS", prompt[0]);
}

}  // namespace preval
