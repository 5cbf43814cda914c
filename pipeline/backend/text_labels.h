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
  std::size_t size() const { return counts_.size(); }
  /// How many different texts mean this label: templates that give one text count once.
  std::size_t count(std::size_t label) const { return counts_[label]; }
  /// Some label has more than one spelling.
  bool any_several() const;

 private:
  std::map<std::string, std::size_t, std::less<>> labels_;
  std::vector<std::size_t> counts_;  // of spellings, per label
};

/// The distribution over the labels from what a reply says about its one token: an object with
/// `token`, `logprob` and `top_logprobs`, a list of `k` entries {token, logprob, bytes}, best
/// first.
///
/// Several spellings of one label count together (log of the sum of their probabilities); floor,
/// entropy and the best token are those of the list as it came. The sampled token is left out when
/// it is there only because it was sampled.
///
/// Each spelling that is not in the list may be as probable as the lowest entry, e^lowest. So
/// `bound` is lowest + ln(m), at most 0, with m the most spellings that any absent label has: no
/// absent label is more probable. With one spelling per label, or no label absent, it is the lowest
/// entry. And the sum of a label that is there is a lower estimate while spellings of it are not:
/// `tied_at_bound` is told whenever another label could reach the predicted one's sum with its
/// absent spellings, all of them, at e^lowest. `bound` does not speak of such labels.
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
