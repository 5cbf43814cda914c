#pragma once
// From a question to the text a model sees. The wording lives in a prompt file that the plan pins
// by SHA-256; nothing here contains a sentence of it.
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "suite/record.h"

namespace preval {

/// The wording of prompts, from a file under prereg/prompts/ (prereg/FORMAT.md, "Prompt file").
struct PromptFile {
  std::string name;
  std::string opening, question, closing;  ///< with {id}, {instructions}, {label_list}
  std::string alternative,
      alternative_bare;               ///< with {label}, {name}, {description}; bare: no description
  std::string verdict, verdict_bare;  ///< the same for yes/no, which has no names
};

PromptFile parse_prompt_file(std::string_view text, const std::string& where);

/// One prompt, rendered. The label token follows `lead` directly.
struct Prompt {
  std::string system, user;
  std::string lead;                 ///< "decision: "
  std::vector<std::string> labels;  ///< label texts, in the order presented
  std::vector<int> options;         ///< presented position → index into question.alternatives
  std::string native;  ///< native reads: the record's input as JSON; everything above but labels
                       ///< and options is empty then
  std::string sha256;  ///< of what is sent: everything above, as canonical JSON; of `native` alone

  /// Of the texts that are sent.
  std::size_t bytes() const { return system.size() + user.size() + lead.size() + native.size(); }
};

/// What a record becomes before it is sent: messages with a lead, or its own input.
enum class PromptForm { messages, native };
std::string_view to_text(PromptForm value);
PromptForm prompt_form(ReadMode mode);

/// Label texts of a question: yes/no, 1…N (N <= 9) or A, B, …; throws usage errors that name record
/// and question for fewer than 2 or more than 26 alternatives, an empty id, or one with ':' or
/// '\n'.
std::vector<std::string> label_texts(const Record& record);

/// Renders one record. `variant` is "none" or "reversed" (choice questions only).
Prompt render_prompt(const PromptFile& wording, const Record& record, std::string_view variant,
                     bool state_ascii);

/// The record's own input, alternatives of choice questions in reverse order for `reversed`. Labels
/// are the stored keys, of which there may be as many as the server takes.
Prompt native_prompt(const Record& record, std::string_view variant);

/// What a record becomes for a read of this form.
Prompt prompt_for(const PromptFile& wording, const PromptSpec& spec, const Record& record,
                  std::string_view variant, PromptForm form);

/// The prompt as plain text, for checkpoints without a chat template: system text, user text and
/// lead, joined by blank lines; the lead stays open for the label.
std::string plain_text(const Prompt& prompt);

}  // namespace preval
