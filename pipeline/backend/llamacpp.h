#pragma once
// llama.cpp's server. It counts tokens, renders the model's own chat template, and can tell the
// whole vocabulary's log-probabilities; what it cannot do is tell those of chosen tokens. So an
// exact read is a raw read of the best tokens and, when labels are missing in it, a restricted read
// in which a bias leaves nothing but labels: their ratios give the missing log-probabilities.
//
// What the server does to a prompt that callers must know of: it removes a BOS that a template
// writes when the model adds one by itself (so the BOS is put back here), and it answers without
// any log-probabilities when the token it generates is a fragment of a UTF-8 character (so such a
// read is asked again with a label as the generated token, which leaves the raw values alone).
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace preval {

/// Bias of a restricted read. More would cost digits: logits are 32-bit floats.
inline constexpr int kRestrictingBias = 100;
/// More log-probabilities than any vocabulary has: the server answers with all it has.
inline constexpr int kWholeVocabulary = 1 << 20;

class LlamaCpp final : public Backend {
 public:
  LlamaCpp(BackendSpec spec, Checkpoint checkpoint, PromptSpec prompt);

  std::unique_ptr<Dialogue<Identity>> identify() const override;
  std::unique_ptr<Dialogue<TokenPrompt>> tokenise(const Item& item) const override;
  std::unique_ptr<Dialogue<Answer>> read(const Item& item, const TokenPrompt& prompt,
                                         const Sampling& sampling) const override;
  /// An exact read out of the whole vocabulary, for checks: 5 to 26 MB per reply.
  std::unique_ptr<Dialogue<Answer>> read_whole_vocabulary(const TokenPrompt& prompt) const;
  HttpRequest health() const override;
  HttpRequest nonsense() const override;

  /// What the server has told so far. Filled by the dialogues, which all run on one thread.
  struct Learned {
    std::string model;                        ///< as replies name it
    std::optional<std::vector<TokenId>> bos;  ///< what the model adds by itself
    std::map<std::pair<std::string, std::string>, std::vector<TokenId>> labels;  ///< by lead, label
  };

  const BackendSpec& spec() const { return spec_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  const PromptSpec& prompt() const { return prompt_; }
  Learned& learned() const { return learned_; }

 private:
  BackendSpec spec_;
  Checkpoint checkpoint_;
  PromptSpec prompt_;
  mutable Learned learned_;
};

/// The file name of a model that the server names by its path: paths are no business of a store.
std::string model_file(const std::string& served);

/// The body of a /completion request for one token's log-probabilities.
std::string raw_read_body(const std::vector<TokenId>& prompt, int n_probs,
                          std::optional<TokenId> generate = std::nullopt,
                          const Sampling& sampling = {});
std::string restricted_read_body(const std::vector<TokenId>& prompt,
                                 const std::vector<TokenId>& labels);

}  // namespace preval
