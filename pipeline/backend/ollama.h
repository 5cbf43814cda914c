#pragma once
// Ollama's own interface (/api/…). It renders with a template of its own and tells the best tokens
// by text and bytes, twenty at most, since version 0.12.11; older ones and models that run at
// ollama.com ignore the request and answer without (class no_logprobs). So it is read in mode
// text-top-k.
//
// Three of its habits are switched off. It cuts a prompt that is too long without a word: with
// `truncate` and `shift` false it refuses instead (since 0.12.6), and a prompt that fills the
// context is taken for a cut one. It lets models think when they can: `think` is always said. And
// it takes what prompts have in common from a cache, which cannot be switched off: repeats may
// differ in the last digits.
//
// A checkpoint with template chat is asked through /api/chat. With lead assistant the last message
// is the answer's beginning; whether the model goes on with it or begins a new message is up to the
// model's template, so look at a few answers first. A checkpoint without a template is asked
// through /api/generate with the plain text; lead none then leaves out the lead.
#include <memory>
#include <string>

#include "backend/backend.h"

namespace preval {

class Ollama final : public Backend {
 public:
  /// Throws a usage error without `model`, which every request must name.
  Ollama(BackendSpec spec, Checkpoint checkpoint, PromptSpec prompt);

  std::unique_ptr<Dialogue<Identity>> identify() const override;
  std::unique_ptr<Dialogue<TokenPrompt>> tokenise(const Item& item) const override;
  std::unique_ptr<Dialogue<Answer>> read(const Item& item, const TokenPrompt& prompt,
                                         const Sampling& sampling) const override;
  HttpRequest health() const override;
  HttpRequest nonsense() const override;

  const BackendSpec& spec() const { return spec_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  const PromptSpec& prompt() const { return prompt_; }
  /// The server's version, for messages; known after identify().
  std::string& version() const { return version_; }

 private:
  BackendSpec spec_;
  Checkpoint checkpoint_;
  PromptSpec prompt_;
  mutable std::string version_;
};

/// The request for the label token of `prompt`.
HttpRequest ollama_read(const Ollama& backend, const Prompt& prompt, const Sampling& sampling);

}  // namespace preval
