#pragma once
// Replies of llama.cpp's server, trimmed from what xllamacpp 2026.10.11549 sent, with other numbers
// put in.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "backend/dialogues.h"

namespace preval::test {

using Entries = std::vector<std::pair<int, double>>;

/// What a /completion reply tells besides its numbers.
struct CompletionFacts {
  int evaluated = 5;
  int cached = 0;
  bool truncated = false;
  std::string model = "/models/tiny.gguf";
};

inline HttpReply completion_reply(const std::string& probabilities,
                                  const CompletionFacts& facts = {}) {
  return ok_reply(fmt::format(
      R"({{"index":0,"content":" no","tokens":[],"id_slot":0,"stop":true,"model":"{}","tokens_predicted":1,)"
      R"("tokens_evaluated":{},"generation_settings":{{"seed":4294967295,"temperature":0.0,"n_predict":1,)"
      R"("logit_bias":[],"samplers":["top_k","temperature"],"truncated":"no"}},"prompt":"<|im_start|>decision:",)"
      R"("has_new_line":false,"truncated":{},"stop_type":"limit","stopping_word":"","tokens_cached":{},)"
      R"("timings":{{"cache_n":{},"prompt_n":{},"prompt_ms":6.4,"predicted_n":1}}{}}})",
      facts.model, facts.evaluated, facts.truncated, facts.evaluated, facts.cached,
      facts.evaluated - facts.cached, probabilities));
}

inline std::string entry_list(const Entries& entries, const char* value) {
  std::string list;
  for (const auto& [id, number] : entries) {
    list += fmt::format(R"({}{{"id":{},"token":" t","bytes":[32,116],"{}":{}}})",
                        list.empty() ? "" : ",", id, value, number);
  }
  return list;
}

/// A raw read: natural logarithms, best first.
inline HttpReply raw_reply(const Entries& entries, const CompletionFacts& facts = {}) {
  return completion_reply(
      fmt::format(R"(,"completion_probabilities":[{{"id":{},"token":" t","bytes":[32,116],)"
                  R"("logprob":{},"top_logprobs":[{}]}}])",
                  entries.front().first, entries.front().second, entry_list(entries, "logprob")),
      facts);
}

/// A read behind the samplers: probabilities.
inline HttpReply restricted_reply(const Entries& entries, const CompletionFacts& facts = {}) {
  return completion_reply(
      fmt::format(R"(,"completion_probabilities":[{{"id":{},"token":" t","bytes":[32,116],)"
                  R"("prob":{},"top_probs":[{}]}}])",
                  entries.front().first, entries.front().second, entry_list(entries, "prob")),
      facts);
}

inline HttpReply tokens_reply(const std::vector<int>& tokens) {
  return ok_reply(fmt::format(R"({{"tokens":[{}]}})", fmt::join(tokens, ",")));
}

}  // namespace preval::test
