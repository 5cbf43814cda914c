#pragma once
// Replies of vLLM, trimmed from what 0.32.0 sent, with other numbers put in.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "backend/dialogues.h"

namespace preval::test {

inline HttpReply vllm_tokens(const std::vector<int>& tokens) {
  return ok_reply(
      fmt::format(R"({{"count":{},"max_model_len":2048,"tokens":[{}],"token_strs":null}})",
                  tokens.size(), fmt::join(tokens, ",")));
}

/// What a completion says beside its log-probabilities.
struct VllmFacts {
  std::string model = "smollm2-135m", fingerprint = "vllm-0.32.0-f4bf138f", finish = "length";
  std::string echo = "[1,2,3,4,5]";
  int prompt_tokens = 5, completion_tokens = 1;
};

inline HttpReply vllm_completion(const std::string& logprobs, const VllmFacts& facts = {}) {
  return ok_reply(fmt::format(
      R"({{"id":"cmpl-9193","object":"text_completion","created":1796070433,"model":"{}","choices":[{{"index":0,)"
      R"("text":"#","logprobs":{},"finish_reason":"{}","stop_reason":null,"token_ids":[19],"prompt_logprobs":null,)"
      R"("prompt_token_ids":{},"routed_experts":null}}],"service_tier":null,"system_fingerprint":"{}","usage":)"
      R"({{"prompt_tokens":{},"total_tokens":6,"completion_tokens":{},"prompt_tokens_details":null}}}})",
      facts.model, logprobs, facts.finish, facts.echo, facts.fingerprint, facts.prompt_tokens,
      facts.completion_tokens));
}

/// `map` as it stands in the reply: {"token_id:7":-0.5}.
inline HttpReply vllm_map(const std::string& map, int sampled = 8, const VllmFacts& facts = {}) {
  return vllm_completion(
      fmt::format(R"({{"text_offset":[0],"token_logprobs":[-0.5],"tokens":["token_id:{}"],)"
                  R"("top_logprobs":[{}]}})",
                  sampled, map),
      facts);
}

inline HttpReply vllm_listed(const std::vector<std::pair<int, double>>& entries, int sampled = 8,
                             const VllmFacts& facts = {}) {
  std::string map;
  for (const auto& [id, logprob] : entries) {
    map += fmt::format(R"({}"token_id:{}":{})", map.empty() ? "" : ",", id, logprob);
  }
  return vllm_map("{" + map + "}", sampled, facts);
}

}  // namespace preval::test
