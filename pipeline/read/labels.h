#pragma once
// Which token stands for which label. Lead and label are tokenised together ("decision: A"),
// because "decision: " and "A" tokenised apart give other tokens than the model was trained on.
#include <cstdint>
#include <string>
#include <vector>

namespace preval {

using TokenId = std::int32_t;

/// The tokens that the answer starts with, and one token per label.
struct LabelTokens {
  std::vector<TokenId> lead;    ///< shared by all labels; goes behind the prompt
  std::vector<TokenId> labels;  ///< in the order of the labels
};

/// From the token sequences of "id: label", one per label: all of one length, equal but for the
/// last token, all last tokens different. Anything else is a usage error that begins with `where`
/// and says which labels collide, or that a label is not one token.
LabelTokens find_label_tokens(const std::vector<std::vector<TokenId>>& tokenised,
                              const std::vector<std::string>& labels, const std::string& where);

}  // namespace preval
