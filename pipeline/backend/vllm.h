#pragma once
// vLLM's OpenAI-compatible server, on GPU, CPU or TPU. It renders the chat template and counts
// tokens itself, and newer ones tell the log-probability of any token by its id (an exact read), at
// most 128 of them; all of them tell the k best (a top-k read), where k has a limit that was fixed
// when the server started.
//
// What it does that callers must know of: fields that it does not know are ignored with a 200, so a
// label that is missing in an exact read means "not supported" and never "improbable". A request by
// id that shares a batch with a top-k request overwrites the other's values with -9999, also with a
// 200 (vllm#51789): such a read is worth one more try, alone. Its map of log-probabilities holds
// the sampled token as well, first, whatever was asked for.
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "backend/tokenise.h"

namespace preval {

class Vllm final : public Backend {
 public:
  Vllm(BackendSpec spec, Checkpoint checkpoint, PromptSpec prompt);

  std::unique_ptr<Dialogue<Identity>> identify() const override;
  std::unique_ptr<Dialogue<TokenPrompt>> tokenise(const Item& item) const override;
  std::unique_ptr<Dialogue<Answer>> read(const Item& item, const TokenPrompt& prompt,
                                         const Sampling& sampling) const override;
  HttpRequest health() const override;
  HttpRequest nonsense() const override;

  /// What the server has told so far. Filled by the dialogues, which all run on one thread.
  struct Learned {
    std::string model;                   ///< what requests ask for; empty: whatever is served
    std::vector<std::string> served;     ///< every name that /v1/models lists
    std::string answering, fingerprint;  ///< what replies say that they come from
    bool echoes = false;                 ///< a reply has repeated its prompt: all of them do
    LearnedTokens tokens;
  };

  const BackendSpec& spec() const { return spec_; }
  Learned& learned() const { return learned_; }

 private:
  BackendSpec spec_;
  Checkpoint checkpoint_;
  PromptSpec prompt_;
  mutable Learned learned_;
};

/// The one token of a /v1/completions reply. What it does not tell is empty.
struct VllmCompletion {
  std::vector<TokenLogprob> top;  ///< in reply order, with the sampled token
  std::optional<TokenId> sampled;
  std::optional<std::vector<TokenId>> prompt;  ///< as echoed
  std::optional<long long> prompt_tokens;      ///< as counted
  std::string model, fingerprint;
};

/// Understands a reply of status 200 and checks what holds for every read: one choice of one token,
/// ended by length or stop, keys by token id (text_keys), log-probabilities there (no_logprobs),
/// finite and each token once. Sentinels are left to the caller.
std::variant<VllmCompletion, Failure> read_vllm_completion(const HttpReply& reply);

/// The bodies of /v1/completions requests: by id, and for the k best.
std::string vllm_exact_body(const std::string& model, const TokenPrompt& prompt,
                            const Sampling& sampling = {});
std::string vllm_top_k_body(const std::string& model, const std::vector<TokenId>& prompt, int k,
                            const Sampling& sampling = {});

/// The label `name` of a metric in Prometheus' text form, `metric{name="value",…} 1`; empty when it
/// is not there.
std::string metric_label(std::string_view text, std::string_view metric, std::string_view name);

}  // namespace preval
