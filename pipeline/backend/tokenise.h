#pragma once
// From a prompt to token ids, for servers that render their model's chat template themselves and
// give the ids: POST /tokenize with messages or with a text, in the form that vLLM has and others
// have taken over. What differs between them is in a TokeniseForm.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backend/backend.h"

namespace preval {

/// What a server's tokenizer has told so far, so that it is not asked again.
struct LearnedTokens {
  std::optional<std::vector<TokenId>> bos;  ///< what the model puts before a text by itself
  std::map<std::pair<std::string, std::string>, std::vector<TokenId>> labels;  ///< by lead, label
};

struct TokeniseForm {
  Template chat_template = Template::chat;
  Json always = Json::object();    ///< fields of every request: {"model": …}
  Json messages = Json::object();  ///< fields beside "messages"
  std::string if_refused;          ///< what to say when a request with messages gets a 400 or 422
};

/// Template (or BOS and plain text), then the labels that no earlier prompt has shown. `learned`
/// must outlive the dialogue. Refuses prompts that begin with a doubled BOS (prompt_mismatch) and
/// labels that are not one token each (label_tokens).
std::unique_ptr<Dialogue<TokenPrompt>> make_tokenise(TokeniseForm form, const Item& item,
                                                     LearnedTokens& learned);

/// A JSON array of token ids, or what is wrong with it.
std::variant<std::vector<TokenId>, Failure> token_ids_of(const Json& list, const HttpReply& reply);

}  // namespace preval
