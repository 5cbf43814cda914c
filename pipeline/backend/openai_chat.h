#pragma once
// Any endpoint that speaks OpenAI's chat completions: hosted models, and the local servers that
// imitate them. It renders and tokenises behind the interface and tells the best tokens by their
// text, twenty of them at most in most places, so it is read in mode text-top-k and by nothing
// else.
//
// Hosted interfaces refuse fields that they do not know (HTTP 400), local ones ignore them. So a
// request holds what OpenAI documents and nothing more, unless the plan's lead needs more:
//   lead none       system and user message; the model begins an answer of its own, so the prompt
//                   has to ask for the label alone.
//   lead assistant  a third message holds the answer lead, without the space at its end, for the
//                   server to go on with. llama.cpp does so by itself; vLLM and SGLang need
//                   continue_final_message and add_generation_prompt; all three need thinking
//                   switched off (chat_template_kwargs), since llama.cpp refuses to continue a
//                   message otherwise. OpenAI's own interface begins a new message: lead none
//                   there.
//
// One token is asked for with max_completion_tokens, since OpenAI refuses max_tokens for its newer
// models and refuses both together. Servers that know max_tokens only ignore the other field and
// write on: after the first such reply the read is made again with max_tokens, and so is every
// later one.
#include <memory>
#include <string>

#include "backend/backend.h"

namespace preval {

class OpenAiChat final : public Backend {
 public:
  /// Throws a usage error without `model`, which every request must name, and for a checkpoint
  /// without a chat template, since plain text cannot be sent here.
  OpenAiChat(BackendSpec spec, const Checkpoint& checkpoint, PromptSpec prompt);

  std::unique_ptr<Dialogue<Identity>> identify() const override;
  std::unique_ptr<Dialogue<TokenPrompt>> tokenise(const Item& item) const override;
  std::unique_ptr<Dialogue<Answer>> read(const Item& item, const TokenPrompt& prompt,
                                         const Sampling& sampling) const override;
  HttpRequest health() const override;
  HttpRequest nonsense() const override;

  /// What replies have told so far. All dialogues run on one thread.
  struct Learned {
    std::string model;  ///< who answered the first read: a later read may not come from another
    bool max_tokens = false;  ///< max_completion_tokens was ignored
  };

  const BackendSpec& spec() const { return spec_; }
  const PromptSpec& prompt() const { return prompt_; }
  Learned& learned() const { return learned_; }

 private:
  BackendSpec spec_;
  PromptSpec prompt_;
  mutable Learned learned_;
};

/// The body of a request for the label token of `prompt`.
std::string chat_read_body(const OpenAiChat& backend, const Prompt& prompt,
                           const Sampling& sampling);

}  // namespace preval
