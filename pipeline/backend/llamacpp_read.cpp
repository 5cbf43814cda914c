#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "backend/acceptance.h"
#include "backend/dialogue.h"
#include "backend/llamacpp.h"
#include "backend/llamacpp_completion.h"

namespace preval {

namespace {

constexpr int kEnlarge = 8;  // how much more is asked for when no label is among the best tokens

/// How far a restricted read may be from the raw read of the same prompt, relatively, before the
/// whole vocabulary decides: float32 logits with the bias on them are good to about 1e-5.
constexpr double kAgreement = 1e-4;

/// What both kinds of reads share: accepting replies and keeping account.
template <class Self>
class Read : public Scripted<Self, Answer> {
 protected:
  Read(const LlamaCpp& backend, const TokenPrompt& prompt, const Sampling& sampling)
      : backend_(backend), prompt_(prompt), sampling_(sampling) {}

  Step<Answer> ask_raw(int n_probs, typename Scripted<Self, Answer>::Understand next) {
    n_probs_ = n_probs;
    return this->ask(
        {"POST", "/completion", raw_read_body(prompt_.tokens, n_probs, generate_, sampling_)},
        next);
  }

  /// A usable reply with log-probabilities, or with `probabilities`, or what is wrong with it.
  std::variant<Completion, Failure> accept(const HttpReply& reply, bool probabilities = false) {
    answer_.latency_ms += reply.total_ms;
    ++answer_.requests;
    auto read = read_completion(reply);
    auto* completion = std::get_if<Completion>(&read);
    if (completion == nullptr) return read;
    if (auto problem = completion_problem(*completion, prompt_.tokens.size(), reply))
      return *problem;
    const std::string& expected = backend_.learned().model;
    if (!expected.empty() && !completion->model.empty() && completion->model != expected) {
      return unusable("identity_changed",
                      fmt::format("answered by {}, where {} was serving",
                                  model_file(completion->model), model_file(expected)),
                      reply);
    }
    // The two kinds come in fields of their own; one taken for the other would look like an answer.
    if (completion->probabilities != probabilities) {
      return unusable("no_logprobs",
                      probabilities ? "a restricted read without probabilities"
                                    : "probabilities after sampling, where log-probabilities were "
                                      "asked for",
                      reply);
    }
    answer_.model = model_file(completion->model);
    answer_.prompt_tokens = static_cast<int>(completion->evaluated);
    return read;
  }

  /// Whether a read without log-probabilities is worth asking once more with a label generated.
  bool try_with_label(const Failure& failure) {
    if (failure.error_class != "no_logprobs" || generate_) return false;
    generate_ = prompt_.labels.front();
    return true;
  }

  const LlamaCpp& backend_;
  TokenPrompt prompt_;
  Sampling sampling_;
  Answer answer_;
  int n_probs_ = 0;

 private:
  std::optional<TokenId> generate_;
};

class TopKRead final : public Read<TopKRead> {
 public:
  TopKRead(const LlamaCpp& backend, const TokenPrompt& prompt, const Sampling& sampling)
      : Read(backend, prompt, sampling) {}

  Step<Answer> begin() override { return ask_raw(backend_.spec().k, &TopKRead::on_raw); }

 private:
  Step<Answer> on_raw(const HttpReply& reply) {
    auto read = accept(reply);
    if (auto* failure = std::get_if<Failure>(&read)) {
      if (try_with_label(*failure)) return ask_raw(n_probs_, &TopKRead::on_raw);
      return *failure;
    }
    const std::vector<TokenLogprob>& top = std::get<Completion>(read).top;
    if (n_probs_ < kWholeVocabulary && static_cast<int>(top.size()) != n_probs_) {
      return unusable("unexpected_reply",
                      fmt::format("{} log-probabilities asked for, {} came", n_probs_, top.size()),
                      reply);
    }
    const auto sentinel = std::find_if(top.begin(), top.end(), [](const TokenLogprob& entry) {
      return is_sentinel(entry.logprob);
    });
    if (sentinel != top.end()) {
      return unusable("logprob_sentinel",
                      fmt::format("token {}: {}", sentinel->id, sentinel->logprob), reply);
    }
    answer_.distribution = read_top_k(top, prompt_.labels);
    if (answer_.distribution.labels_returned == 0) {
      return unusable("no_label", fmt::format("no label among the {} best tokens", n_probs_),
                      reply);
    }
    return std::move(answer_);
  }
};

class ExactRead final : public Read<ExactRead> {
 public:
  ExactRead(const LlamaCpp& backend, const TokenPrompt& prompt, int n_probs,
            const Sampling& sampling)
      : Read(backend, prompt, sampling), first_(n_probs) {}

  Step<Answer> begin() override { return ask_raw(first_, &ExactRead::on_raw); }

 private:
  Step<Answer> on_raw(const HttpReply& reply) {
    auto read = accept(reply);
    if (auto* failure = std::get_if<Failure>(&read)) {
      if (try_with_label(*failure)) return ask_raw(n_probs_, &ExactRead::on_raw);
      return *failure;
    }
    Completion& completion = std::get<Completion>(read);
    const bool whole = static_cast<int>(completion.top.size()) < n_probs_;
    take(std::move(completion.top));
    const auto absent = std::find(logprobs_.begin(), logprobs_.end(), std::nullopt);
    if (absent == logprobs_.end()) return finish();
    if (whole || n_probs_ >= kWholeVocabulary) {
      const TokenId label = prompt_.labels[static_cast<std::size_t>(absent - logprobs_.begin())];
      if (sentinels_.contains(label)) {
        if (backend_.spec().sentinel_is_zero && anchor()) return finish_with_zeros(reply);
        return unusable("logprob_sentinel", fmt::format("label token {}", label), reply);
      }
      return unusable("missing_label",
                      fmt::format("token {} is not among the {} that came, of {} asked for", label,
                                  top_.size(), n_probs_),
                      reply);
    }
    if (!anchor())
      return ask_raw(std::min(n_probs_ * kEnlarge, kWholeVocabulary), &ExactRead::on_raw);
    return ask({"POST", "/completion", restricted_read_body(prompt_.tokens, prompt_.labels)},
               &ExactRead::on_restricted);
  }

  Step<Answer> on_restricted(const HttpReply& reply) {
    auto read = accept(reply, true);
    if (auto* failure = std::get_if<Failure>(&read)) return *failure;
    if (!complete(std::get<Completion>(read).top))
      return ask_raw(kWholeVocabulary, &ExactRead::on_raw);
    return finish();
  }

  /// Sorts a raw reply into labels and the rest. Sentinels are dropped: to the server they are
  /// zeros, and an exact read wants to know how much above zero.
  void take(std::vector<TokenLogprob> top) {
    logprobs_.assign(prompt_.labels.size(), std::nullopt);
    sentinels_.clear();
    top_.clear();
    for (const TokenLogprob& entry : top) {
      const auto label = std::find(prompt_.labels.begin(), prompt_.labels.end(), entry.id);
      const bool is_label = label != prompt_.labels.end();
      if (is_sentinel(entry.logprob)) {
        if (is_label) sentinels_.insert(entry.id);
        continue;
      }
      top_.push_back(entry);
      if (is_label)
        logprobs_[static_cast<std::size_t>(label - prompt_.labels.begin())] = entry.logprob;
    }
  }

  /// The whole vocabulary has nothing but sentinels for some labels, and the plan takes these for
  /// what the server says they are.
  Step<Answer> finish_with_zeros(const HttpReply& reply) {
    for (std::size_t i = 0; i < logprobs_.size(); ++i) {
      if (logprobs_[i]) continue;
      if (!sentinels_.contains(prompt_.labels[i])) {
        return unusable("missing_label",
                        fmt::format("token {} is not in the whole vocabulary", prompt_.labels[i]),
                        reply);
      }
      logprobs_[i] = -HUGE_VAL;
    }
    return finish();
  }

  /// The best label that the raw read has shown.
  std::optional<std::size_t> anchor() const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < logprobs_.size(); ++i) {
      if (logprobs_[i] && (!best || *logprobs_[i] > *logprobs_[*best])) best = i;
    }
    return best;
  }

  /// Fills in what the raw read lacks: lp_j = lp_i + ln(p_j / p_i). False when the restricted read
  /// cannot be believed: a label without a probability, a rest for tokens that are no labels, or a
  /// contradiction to the raw read.
  bool complete(const std::vector<TokenLogprob>& restricted) {
    std::vector<double> probabilities(prompt_.labels.size(), 0);
    double sum = 0;
    for (const TokenLogprob& entry : restricted) {
      const auto label = std::find(prompt_.labels.begin(), prompt_.labels.end(), entry.id);
      if (label == prompt_.labels.end()) continue;
      probabilities[static_cast<std::size_t>(label - prompt_.labels.begin())] = entry.logprob;
      sum += entry.logprob;
    }
    const std::size_t best = *anchor();
    if (std::abs(sum - 1) > kAgreement || !(probabilities[best] > 0)) return false;
    const double lowest =
        std::min_element(top_.begin(), top_.end(), [](const auto& a, const auto& b) {
          return a.logprob < b.logprob;
        })->logprob;
    std::vector<std::optional<double>> all = logprobs_;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!(probabilities[i] > 0)) return false;
      const double derived = *logprobs_[best] + std::log(probabilities[i] / probabilities[best]);
      if (all[i] ? std::abs(derived - *all[i]) > kAgreement : derived > lowest + kAgreement)
        return false;
      if (!all[i]) all[i] = derived;
    }
    logprobs_ = std::move(all);
    return true;
  }

  Step<Answer> finish() {
    std::vector<double> logprobs;
    for (const std::optional<double>& logprob : logprobs_) logprobs.push_back(*logprob);
    answer_.distribution = read_exact(logprobs, top_, prompt_.labels);
    return std::move(answer_);
  }

  int first_;
  std::vector<std::optional<double>> logprobs_;  // of the labels
  std::vector<TokenLogprob> top_;                // of the last raw read
  std::set<TokenId> sentinels_;                  // labels that had no other value there
};

}  // namespace

std::unique_ptr<Dialogue<Answer>> LlamaCpp::read(const Item&, const TokenPrompt& prompt,
                                                 const Sampling& sampling) const {
  if (spec_.read == ReadMode::top_k) return std::make_unique<TopKRead>(*this, prompt, sampling);
  return std::make_unique<ExactRead>(*this, prompt, spec_.raw_probs, sampling);
}

std::unique_ptr<Dialogue<Answer>> LlamaCpp::read_whole_vocabulary(const TokenPrompt& prompt) const {
  return std::make_unique<ExactRead>(*this, prompt, kWholeVocabulary, Sampling{});
}

}  // namespace preval
