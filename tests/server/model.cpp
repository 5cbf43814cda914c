#include "model.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>

namespace preval::test_server {

namespace {

constexpr std::size_t kMostLabels = 64;
constexpr Id kFirstByte = 3;      // one token per byte, from here
constexpr Id kFirstSpaced = 259;  // " x": a space and one letter or digit, from here
constexpr Id kFirstWord = 515;    // longer words, by their hash
constexpr double kLabelMass = 0.999, kRest = 0.001;
constexpr double kSpread = 3;  // nats between the best label and the worst

const std::vector<std::string>& label_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all{"yes", "no"};
    for (char digit = '1'; digit <= '9'; ++digit) all.emplace_back(1, digit);
    for (char letter = 'A'; letter <= 'Z'; ++letter) all.emplace_back(1, letter);
    return all;
  }();
  return words;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size();
  for (const char c : text) hash = mixed(hash, static_cast<unsigned char>(c));
  return hash;
}

Id id_of(std::string_view token) {
  if (token.size() == 1) return kFirstByte + static_cast<unsigned char>(token[0]);
  if (token.size() == 2 && token[0] == ' ')
    return kFirstSpaced + static_cast<unsigned char>(token[1]);
  return kFirstWord + static_cast<Id>(hash_of(token) % (kVocabulary - kFirstWord));
}

double rest_logprob(Id id) { return std::log(kRest) - std::log((id + 1.0) * (id + 2.0)); }

}  // namespace

int Tokenizer::label_count() { return static_cast<int>(label_words().size()); }

Tokenizer::Tokenizer() : labels_(kVocabulary) {
  for (int label = 1; label <= label_count(); ++label) {
    const std::string& word = label_words()[static_cast<std::size_t>(label - 1)];
    for (const int spaced : {0, 1}) {
      const std::string text = (spaced != 0 ? " " : "") + word;
      const Id id = tokens_of(text).front();
      labels_[static_cast<std::size_t>(id)] = label;
      tokens_[spaced].push_back(id);
    }
  }
}

std::vector<Id> Tokenizer::tokens_of(std::string_view text) {
  std::vector<Id> ids;
  ids.reserve(text.size() / 4 + 1);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    if (text.substr(at).starts_with("<|")) {
      end = std::min(text.find("|>", at), text.size() - 2) + 2;
    } else {
      if (text[end] == ' ') ++end;
      while (end < text.size() && is_word(text[end])) ++end;
      if (end == at) ++end;
    }
    const std::string_view token = text.substr(at, end - at);
    const Id id = id_of(token);
    if (id >= kFirstWord && !words_.contains(id)) words_.emplace(id, token);
    ids.push_back(id);
    at = end;
  }
  return ids;
}

std::string Tokenizer::text_of(Id id) const {
  if (id >= kFirstByte && id < kFirstSpaced)
    return std::string(1, static_cast<char>(id - kFirstByte));
  if (id >= kFirstSpaced && id < kFirstWord) {
    return std::string(" ") + static_cast<char>(id - kFirstSpaced);
  }
  const auto word = words_.find(id);
  return word != words_.end() ? word->second : "<" + std::to_string(id) + ">";
}

Continuation::Continuation(const Tokenizer& tokenizer, const std::vector<Id>& prompt) : hash_(0) {
  std::bitset<kMostLabels> named;
  for (const Id id : prompt) {
    hash_ = mixed(hash_, static_cast<std::uint64_t>(id));
    if (id >= 0 && id < kVocabulary) named.set(static_cast<std::size_t>(tokenizer.label_of(id)));
  }
  // After "decision:" comes " A", after a space or a line end "A".
  const bool spaced = !prompt.empty() && prompt.back() == kFirstByte + ':';
  double sum = 0;
  for (int label = 1; label <= Tokenizer::label_count(); ++label) {
    if (!named[static_cast<std::size_t>(label)]) continue;
    const Id id = tokenizer.label_token(label, spaced);
    const std::uint64_t draw = mixed(mixed(hash_, static_cast<std::uint64_t>(id)), 1);
    const double score = kSpread * static_cast<double>(draw >> 11) * 0x1p-53;
    labels_.emplace_back(id, score);
    sum += std::exp(score);
  }
  for (Entry& entry : labels_) entry.second += std::log(kLabelMass / sum);
  std::sort(labels_.begin(), labels_.end(),
            [](const Entry& a, const Entry& b) { return a.second > b.second; });
}

double Continuation::logprob(Id id) const {
  const auto label = std::find_if(labels_.begin(), labels_.end(),
                                  [id](const Entry& entry) { return entry.first == id; });
  return label != labels_.end() ? label->second : rest_logprob(id);
}

void Continuation::best(std::size_t k, std::vector<Entry>& out) const {
  out.assign(labels_.begin(),
             labels_.begin() + static_cast<std::ptrdiff_t>(std::min(k, labels_.size())));
  for (Id id = 0; out.size() < k && id < kVocabulary; ++id) {
    if (std::none_of(labels_.begin(), labels_.end(),
                     [id](const Entry& entry) { return entry.first == id; })) {
      out.emplace_back(id, rest_logprob(id));
    }
  }
}

}  // namespace preval::test_server
