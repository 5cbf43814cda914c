#pragma once
// A language model of a few lines: always the same answer to the same prompt. Text becomes tokens
// by a simple rule (a word with the space before it, or any other byte, is a token), so every label
// is one token; log-probabilities are a hash of prompt and token.
//
// The labels that a prompt names share 0.999 of the mass and are always the best tokens; token id n
// of the rest has 0.001 / ((n + 1)(n + 2)), which sums to 0.001 over all ids.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace preval::test_server {

using Id = std::int32_t;
using Entry = std::pair<Id, double>;  // token, natural logarithm of its probability

inline constexpr Id kVocabulary = 32'000;
inline constexpr Id kBos = 1;

/// Text and tokens. Remembers the words that it has seen, so that ids can be written out again.
class Tokenizer {
 public:
  Tokenizer();
  std::vector<Id> tokens_of(std::string_view text);
  /// Any valid id has a text, if only "<n>".
  std::string text_of(Id id) const;
  /// 1 + the index of the label word ("yes", "no", "1" … "9", "A" … "Z") that a token is; 0: none.
  int label_of(Id id) const { return labels_[static_cast<std::size_t>(id)]; }
  /// The token of a label word, with or without the space before it.
  Id label_token(int label, bool spaced) const { return tokens_[spaced ? 1 : 0][label - 1]; }
  static int label_count();

 private:
  std::unordered_map<Id, std::string> words_;
  std::vector<int> labels_;
  std::vector<Id> tokens_[2];
};

/// What comes after one prompt.
class Continuation {
 public:
  Continuation(const Tokenizer& tokenizer, const std::vector<Id>& prompt);
  double logprob(Id id) const;
  /// The k best, best first.
  void best(std::size_t k, std::vector<Entry>& out) const;
  /// The best token alone.
  Entry first() const { return labels_.empty() ? Entry{0, logprob(0)} : labels_.front(); }
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t hash_;
  std::vector<Entry> labels_;  // best first
};

}  // namespace preval::test_server
