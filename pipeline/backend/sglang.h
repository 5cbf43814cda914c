#pragma once
// SGLang's server, by its own /generate: prompts and labels go as token ids, and any token's
// log-probability can be asked for (an exact read), without a limit on how many. Newer versions
// render the chat template behind /tokenize; older ones take no messages there, and then only a
// plan with `template: none` can be read, which this says instead of guessing a template.
//
// What it does that callers must know of: its log-probabilities are those behind the temperature,
// except at temperature 0, where reads are made; minus infinity comes as the lowest 32-bit float,
// and anything that is no number as null.
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "backend/tokenise.h"

namespace preval {

class Sglang final : public Backend {
 public:
  Sglang(BackendSpec spec, Checkpoint checkpoint, PromptSpec prompt);

  std::unique_ptr<Dialogue<Identity>> identify() const override;
  std::unique_ptr<Dialogue<TokenPrompt>> tokenise(const Item& item) const override;
  std::unique_ptr<Dialogue<Answer>> read(const Item& item, const TokenPrompt& prompt,
                                         const Sampling& sampling) const override;
  HttpRequest health() const override;
  HttpRequest nonsense() const override;

  /// What the server has told so far. Filled by the dialogues, which all run on one thread.
  struct Learned {
    std::string weights;  ///< weight_version; empty before identify()
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

/// The one token of a /generate reply.
struct SglangGeneration {
  std::vector<TokenLogprob> listed;  ///< the ids asked for, or the k best, in reply order
  std::optional<TokenId> sampled;
  long long prompt_tokens = -1;  ///< as counted by the server, cached ones included
  std::string weights;           ///< weight_version; empty when it does not say
};

/// Understands a reply of status 200 to a read by id (ReadMode::exact) or of the k best, and checks
/// what holds for every read: one token, ended by length or stop, log-probabilities there
/// (no_logprobs), finite and each token once. Sentinels are left to the caller.
std::variant<SglangGeneration, Failure> read_sglang_generation(const HttpReply& reply,
                                                               ReadMode mode);

/// The bodies of /generate requests: by id, and for the k best.
std::string sglang_exact_body(const TokenPrompt& prompt, const Sampling& sampling = {});
std::string sglang_top_k_body(const std::vector<TokenId>& prompt, int k,
                              const Sampling& sampling = {});

}  // namespace preval
