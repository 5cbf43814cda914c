#include "read/labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace preval {

namespace {

constexpr const char* kHint = "this model cannot be read by these labels: ask with another wording";

std::string ids_of(const std::vector<TokenId>& tokens) {
  return fmt::format("[{}]", fmt::join(tokens, ", "));
}

}  // namespace

LabelTokens find_label_tokens(const std::vector<std::vector<TokenId>>& tokenised,
                              const std::vector<std::string>& labels, const std::string& where) {
  if (tokenised.size() != labels.size() || labels.empty()) {
    throw Error(ErrorKind::usage, fmt::format("{}: {} token sequences for {} labels", where,
                                              tokenised.size(), labels.size()));
  }
  LabelTokens result;
  const std::vector<TokenId>& first = tokenised.front();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::vector<TokenId>& tokens = tokenised[i];
    const bool same_lead = tokens.size() == first.size() && !tokens.empty() &&
                           std::equal(tokens.begin(), tokens.end() - 1, first.begin());
    if (!same_lead) {
      throw Error(
          ErrorKind::usage,
          fmt::format("{}: label \"{}\" is not one token at the place of label \"{}\": {} and {}",
                      where, labels[i], labels.front(), ids_of(tokens), ids_of(first)),
          kHint);
    }
    const auto twin = std::find(result.labels.begin(), result.labels.end(), tokens.back());
    if (twin != result.labels.end()) {
      throw Error(ErrorKind::usage,
                  fmt::format("{}: labels \"{}\" and \"{}\" are one token, {}", where,
                              labels[static_cast<std::size_t>(twin - result.labels.begin())],
                              labels[i], tokens.back()),
                  kHint);
    }
    result.labels.push_back(tokens.back());
  }
  result.lead.assign(first.begin(), first.end() - 1);
  return result;
}

}  // namespace preval
