#pragma once
// Servers that decide themselves: TypeSafe's Jev, and what answers the same request, POST
// /v1/systemone (vLLM, llama.cpp and SGLang with a decision model, callo in front of any model,
// kev, Nimble, SelfJev). The record's own input is sent as it stands, with the model in front of
// it; the reply has a probability per option, or per level with the expected level. No token is
// read, so there are no log-probabilities (NaN), and a label mass only where the server tells one.
//
// The model of a request is the plan's, else the first one that the server lists (as compatible
// servers want one, whichever). A reply from another model than the plan's is refused: hosted names
// like jev-latest move, so a plan names the version.
#include <memory>
#include <string>

#include "backend/backend.h"

namespace preval {

class SystemOne final : public Backend {
 public:
  SystemOne(BackendSpec spec, const Checkpoint&, const PromptSpec&) : spec_(std::move(spec)) {}

  std::unique_ptr<Dialogue<Identity>> identify() const override;
  std::unique_ptr<Dialogue<TokenPrompt>> tokenise(const Item& item) const override;
  /// Throws a usage error for a record whose input names a model itself.
  std::unique_ptr<Dialogue<Answer>> read(const Item& item, const TokenPrompt& prompt,
                                         const Sampling& sampling) const override;
  /// The list of models: hosted interfaces have no address for their health.
  HttpRequest health() const override;
  HttpRequest nonsense() const override;

  /// What replies have told so far. All dialogues run on one thread.
  struct Learned {
    std::string listed;    ///< the first model of the server's list
    std::string answered;  ///< who answered the first read
  };

  const BackendSpec& spec() const { return spec_; }
  Learned& learned() const { return learned_; }
  /// The model that requests name; empty: none.
  const std::string& model() const { return spec_.model.empty() ? learned_.listed : spec_.model; }

 private:
  BackendSpec spec_;
  mutable Learned learned_;
};

/// `native` ("{"state":…}") with the model in front, not a byte of it changed. An empty model adds
/// nothing.
std::string systemone_body(const std::string& native, const std::string& model);

}  // namespace preval
