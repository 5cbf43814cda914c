#pragma once
// Labels in lists of token texts. Servers that do not tell token ids name the best tokens by their
// text, and a label is found by exactly that text: " A", "A" and "a" are three tokens, of which
// only those count that the plan lists. Which spellings a model uses can be seen; guessing
// (trimming, folding case) would add up what the model keeps apart.
//
// Text does not always say which token it is: control tokens are printed as nothing, and pieces of
// a UTF-8 character as U+FFFD. Where a reply gives the bytes, the bytes decide.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backend/backend.h"

namespace preval {

/// The token texts that mean the labels of one prompt.
class LabelSpellings {
 public:
  /// `templates` hold {label}: "{label}", " {label}". Throws a usage error that begins with `where`
  /// when one text would mean two labels.
  LabelSpellings(const std::vector<std::string>& labels, const std::vector<std::string>& templates,
                 std::string_view where);

  /// The position of the label that this token means, or nothing.
  std::optional<std::size_t> label_of(std::string_view token) const;
  /// How many labels there are.
  std::size_t size() const { return size_; }

 private:
  std::map<std::string, std::size_t, std::less<>> labels_;
  std::size_t size_;
};

/// The distribution over the labels from what a reply says about its one token: an object with
/// `token`, `logprob` and `top_logprobs`, a list of `k` entries {token, logprob, bytes}, best
/// first.
///
/// Several spellings of one label count together (log of the sum of their probabilities); floor,
/// bound, entropy and the best token are those of the list as it came. The sampled token is left
/// out when it is there only because it was sampled.
///
/// Failures: no_logprobs (no list, or an empty one), not_finite, logprob_sentinel, duplicate_key
/// (one whole text twice), unexpected_reply (another number of entries than `k`, entries of another
/// form), no_label (none of the entries is a label).
std::variant<Distribution, Failure> read_text_top(const Json& position, int k,
                                                  const LabelSpellings& spellings,
                                                  const HttpReply& reply);

/// The lead as the beginning of an answer: without the space at its end, which belongs to the token
/// that follows ("decision:" and " A").
std::string open_lead(const Prompt& prompt);

}  // namespace preval
