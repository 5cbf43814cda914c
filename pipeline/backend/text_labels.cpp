#include "backend/text_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "backend/acceptance.h"
#include "backend/dialogue.h"
#include "base/error.h"
#include "base/placeholders.h"
#include "base/text.h"

namespace preval {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr double kMostSum = 1.01;        // of the probabilities of one label's spellings, rounded
constexpr std::size_t kTokensNamed = 3;  // tokens that the message of a read without labels names

std::string quoted_token(std::string_view text) {
  return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
}

struct TextEntry {
  std::string text;
  std::string bytes;  ///< what the token is: as told, or the text
  double logprob = 0;

  /// Whether the bytes say which token it is.
  bool is_whole() const {
    return !bytes.empty() && !invalid_utf8(bytes) && bytes.find(kReplacement) == std::string::npos;
  }
};

bool is_byte(const Json& json) { return json.is_number_integer() && json >= 0 && json <= 255; }

/// The bytes of an entry, or nothing when the server does not tell them.
std::variant<std::optional<std::string>, Failure> token_bytes(const Json& entry,
                                                              const HttpReply& reply) {
  const auto found = entry.find("bytes");
  if (found == entry.end() || found->is_null() || found->empty()) return std::nullopt;
  const bool usable = found->is_array() && std::all_of(found->begin(), found->end(), is_byte);
  if (!usable) {
    return unusable("unexpected_reply", "a token's bytes are no list of bytes", reply);
  }
  std::string bytes;
  for (const Json& byte : *found) bytes += static_cast<char>(byte.get<int>());
  return bytes;
}

std::variant<TextEntry, Failure> text_entry(const Json& json, TokenId id, const HttpReply& reply) {
  const auto token = json.is_object() ? json.find("token") : json.end();
  if (token == json.end() || !token->is_string()) {
    return unusable("unexpected_reply", "an entry of top_logprobs without a token", reply);
  }
  TextEntry entry;
  entry.text = token->get<std::string>();
  const auto logprob = json.find("logprob");
  if (logprob != json.end() && logprob->is_null()) {
    return unusable("not_finite",
                    fmt::format("null as the log-probability of {}", quoted_token(entry.text)),
                    reply);
  }
  if (logprob == json.end() || !logprob->is_number()) {
    return unusable("unexpected_reply",
                    fmt::format("no log-probability for {}", quoted_token(entry.text)), reply);
  }
  entry.logprob = logprob->get<double>();
  if (auto problem = logprob_problem({{id, entry.logprob}}, reply)) {
    problem->message =
        fmt::format("{} as the log-probability of {}", entry.logprob, quoted_token(entry.text));
    return *std::move(problem);
  }
  auto bytes = token_bytes(json, reply);
  if (auto* failure = std::get_if<Failure>(&bytes)) return *failure;
  entry.bytes = std::get<std::optional<std::string>>(std::move(bytes)).value_or(entry.text);
  return entry;
}

/// The entry of the sampled token when it is no part of the k best: it is less likely than all the
/// others, and stands behind k of them or not at the end, where a sorted list would have it.
std::vector<TextEntry>::const_iterator only_sampled(const std::vector<TextEntry>& top,
                                                    const std::string& sampled, int k) {
  const auto found = std::find_if(top.begin(), top.end(),
                                  [&](const TextEntry& entry) { return entry.bytes == sampled; });
  if (found == top.end()) return found;
  const bool lowest = std::all_of(top.begin(), top.end(), [&](const TextEntry& entry) {
    return &entry == &*found || entry.logprob > found->logprob;
  });
  const bool extra = top.size() > static_cast<std::size_t>(k) || std::next(found) != top.end();
  return lowest && extra ? found : top.end();
}

/// The k best tokens, or why the list is none.
std::variant<std::vector<TextEntry>, Failure> text_top(const Json& position, int k,
                                                       const HttpReply& reply) {
  const auto list = position.is_object() ? position.find("top_logprobs") : position.end();
  if (list == position.end() || list->is_null() || list->empty()) {
    return unusable("no_logprobs", "the reply has no top_logprobs", reply);
  }
  if (!list->is_array()) return unusable("unexpected_reply", "top_logprobs is no list", reply);
  std::vector<TextEntry> top;
  top.reserve(list->size());
  for (const Json& json : *list) {
    auto entry = text_entry(json, static_cast<TokenId>(top.size()), reply);
    if (auto* failure = std::get_if<Failure>(&entry)) return *failure;
    top.push_back(std::get<TextEntry>(std::move(entry)));
  }
  std::size_t wanted = static_cast<std::size_t>(k);
  if (const auto token = position.find("token"); token != position.end() && token->is_string()) {
    auto bytes = token_bytes(position, reply);
    if (auto* failure = std::get_if<Failure>(&bytes)) return *failure;
    const auto& told = std::get<std::optional<std::string>>(bytes);
    const auto extra = only_sampled(top, told ? *told : token->get<std::string>(), k);
    if (extra != top.end()) {
      // It has taken the place of the last of the k best where the server counts it among them.
      if (top.size() == wanted) --wanted;
      top.erase(extra);
    }
  }
  if (top.size() != wanted) {
    return unusable("unexpected_reply",
                    fmt::format("{} log-probabilities asked for, {} came", k, top.size()), reply);
  }
  return top;
}

std::optional<Failure> text_list_problem(const std::vector<TextEntry>& top,
                                         const HttpReply& reply) {
  std::set<std::string_view> seen;
  for (const TextEntry& entry : top) {
    if (is_sentinel(entry.logprob)) {
      Failure failure = sentinel_failure({0, entry.logprob}, reply);
      failure.message = fmt::format("token {}: {}", quoted_token(entry.text), entry.logprob);
      return failure;
    }
    if (entry.is_whole() && !seen.insert(entry.bytes).second) {
      return unusable("duplicate_key",
                      fmt::format("token {} is there twice", quoted_token(entry.text)), reply);
    }
  }
  return std::nullopt;
}

/// Probabilities that add up to a little more than 1, as rounded ones do, add up to 1.
double log_of_sum(const std::vector<double>& logprobs) {
  if (logprobs.size() == 1) return logprobs.front();
  const double most = *std::max_element(logprobs.begin(), logprobs.end());
  double sum = 0;
  for (const double logprob : logprobs) sum += std::exp(logprob - most);
  const double result = most + std::log(sum);
  return result > 0 && result <= std::log(kMostSum) ? 0 : result;
}

/// The most that a label can be: its listed spellings, and those that are not in the list at the
/// lowest entry. Equal values give equal sums, since they are added in one order.
double highest_sum(std::vector<double> listed, std::size_t n_absent, double lowest) {
  listed.insert(listed.end(), n_absent, lowest);
  std::sort(listed.begin(), listed.end(), std::greater<>());
  return log_of_sum(listed);
}

/// Bound and ties where labels have several spellings, of which any may be absent.
void bound_spellings(const std::vector<std::vector<double>>& by_label, double lowest,
                     const LabelSpellings& spellings, Distribution& result) {
  const auto predicted = static_cast<std::size_t>(result.predicted);
  const double chosen = highest_sum(by_label[predicted], 0, lowest);
  result.tied_at_bound = false;
  std::size_t most_absent = 1;
  for (std::size_t i = 0; i < by_label.size(); ++i) {
    const std::size_t n_listed = std::min(by_label[i].size(), spellings.count(i));
    const std::size_t n_absent = spellings.count(i) - n_listed;
    if (by_label[i].empty()) most_absent = std::max(most_absent, n_absent);
    if (i == predicted || n_absent == 0) continue;
    if (highest_sum(by_label[i], n_absent, lowest) >= chosen) result.tied_at_bound = true;
  }
  if (most_absent > 1) {
    result.bound = std::min(0.0, lowest + std::log(static_cast<double>(most_absent)));
  }
}

/// Token ids stand for texts: label i is token i, and whatever is no label comes after them.
Distribution text_distribution(const std::vector<TextEntry>& top, const LabelSpellings& spellings) {
  std::vector<TokenLogprob> listed, merged;
  std::vector<TokenId> label_ids, listed_labels;
  std::vector<std::vector<double>> by_label(spellings.size());
  double lowest = top.front().logprob;
  for (const TextEntry& entry : top) {
    const auto id = static_cast<TokenId>(spellings.size() + listed.size());
    listed.push_back({id, entry.logprob});
    lowest = std::min(lowest, entry.logprob);
    if (const auto label = spellings.label_of(entry.bytes)) {
      by_label[*label].push_back(entry.logprob);
      listed_labels.push_back(id);
    } else {
      merged.push_back(listed.back());
    }
  }
  bool several = false;
  for (std::size_t i = 0; i < by_label.size(); ++i) {
    label_ids.push_back(static_cast<TokenId>(i));
    if (by_label[i].empty()) continue;
    several = several || by_label[i].size() > 1;
    merged.push_back({label_ids.back(), log_of_sum(by_label[i])});
  }
  if (!several) {
    // Nothing was added up: the order of the list stays, so that the first of equal entries wins.
    for (std::size_t i = 0; i < listed.size(); ++i) {
      if (const auto label = spellings.label_of(top[i].bytes)) {
        listed[i].id = static_cast<TokenId>(*label);
      }
    }
    Distribution result = read_top_k(listed, label_ids);
    if (spellings.any_several() && result.labels_returned > 0) {
      bound_spellings(by_label, lowest, spellings, result);
    }
    return result;
  }
  // Absent labels are below the lowest entry that came, even when that one went into a sum.
  merged.push_back({static_cast<TokenId>(spellings.size() + listed.size()), lowest});
  Distribution result = read_top_k(merged, label_ids);
  const Distribution as_listed = read_top_k(listed, listed_labels);
  result.entropy = as_listed.entropy;
  result.argmax_is_label = as_listed.argmax_is_label;
  bound_spellings(by_label, lowest, spellings, result);
  return result;
}

}  // namespace

LabelSpellings::LabelSpellings(const std::vector<std::string>& labels,
                               const std::vector<std::string>& templates, std::string_view where)
    : counts_(labels.size()) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    for (const std::string& spelling : templates) {
      const std::string text = fill_placeholders(spelling, {{"label", labels[i]}}, where);
      const auto [known, is_new] = labels_.emplace(text, i);
      if (is_new) ++counts_[i];
      if (known->second == i) continue;
      throw Error(
          ErrorKind::usage,
          fmt::format("{}: {} would mean both label {} and label {}", where, quoted_token(text),
                      quoted_token(labels[known->second]), quoted_token(labels[i])),
          "list spellings that keep the labels apart");
    }
  }
}

bool LabelSpellings::any_several() const {
  return std::any_of(counts_.begin(), counts_.end(), [](std::size_t count) { return count > 1; });
}

std::optional<std::size_t> LabelSpellings::label_of(std::string_view token) const {
  const auto found = labels_.find(token);
  return found == labels_.end() ? std::nullopt : std::optional(found->second);
}

std::variant<Distribution, Failure> read_text_top(const Json& position, int k,
                                                  const LabelSpellings& spellings,
                                                  const HttpReply& reply) {
  auto list = text_top(position, k, reply);
  if (auto* failure = std::get_if<Failure>(&list)) return *failure;
  const std::vector<TextEntry>& top = std::get<std::vector<TextEntry>>(list);
  if (auto problem = text_list_problem(top, reply)) return *problem;
  Distribution distribution = text_distribution(top, spellings);
  if (distribution.labels_returned == 0) {
    std::vector<std::string> best;
    for (std::size_t i = 0; i < std::min(kTokensNamed, top.size()); ++i) {
      best.push_back(quoted_token(top[i].text));
    }
    return unusable("no_label",
                    fmt::format("no label among the {} best tokens, which begin with {}",
                                top.size(), join(best, ", ")),
                    reply);
  }
  for (LabelProbability& label : distribution.labels) {
    if (label.logprob > std::log(kMostSum)) {
      return unusable("impossible_sum",
                      fmt::format("the spellings of one label have probability {:.3f} together",
                                  std::exp(label.logprob)),
                      reply);
    }
    if (label.source == LabelSource::top) label.source = LabelSource::text;
  }
  return distribution;
}

std::string open_lead(const Prompt& prompt) {
  return prompt.lead.substr(0, prompt.lead.find_last_not_of(' ') + 1);
}

}  // namespace preval
