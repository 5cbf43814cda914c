#include "read/distribution.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "stats/sums.h"

namespace preval {

namespace {

constexpr double kBelowTheLowest = 5.0;  // nats, the study's rule

std::vector<double> softmax(const std::vector<double>& logprobs) {
  const double most = *std::max_element(logprobs.begin(), logprobs.end());
  std::vector<double> result;
  result.reserve(logprobs.size());
  for (const double logprob : logprobs) result.push_back(std::exp(logprob - most));
  const double total = python_sum(result);
  for (double& value : result) value /= total;
  return result;
}

/// What depends on the reply as a whole, not on single labels.
void describe_top(const std::vector<TokenLogprob>& top, const std::vector<TokenId>& labels,
                  Distribution& result) {
  std::vector<double> terms;
  terms.reserve(top.size());
  for (const TokenLogprob& entry : top) terms.push_back(std::exp(entry.logprob) * entry.logprob);
  result.entropy = -python_sum(terms);
  const auto best = std::max_element(
      top.begin(), top.end(), [](const auto& a, const auto& b) { return a.logprob < b.logprob; });
  result.argmax_is_label = std::find(labels.begin(), labels.end(), best->id) != labels.end();
}

/// Probabilities, mass, prediction and ties from the labels' log-probabilities.
void fill_labels(const std::vector<double>& logprobs, const std::vector<LabelSource>& sources,
                 Distribution& result) {
  const std::vector<double> probabilities = softmax(logprobs);
  std::vector<double> masses;
  masses.reserve(logprobs.size());
  for (std::size_t i = 0; i < logprobs.size(); ++i) {
    result.labels.push_back({logprobs[i], probabilities[i], sources[i]});
    masses.push_back(std::exp(logprobs[i]));
  }
  result.label_mass = python_sum(masses);
  const auto best = std::max_element(probabilities.begin(), probabilities.end());
  result.predicted = static_cast<int>(best - probabilities.begin());
  result.tied = std::count(probabilities.begin(), probabilities.end(), *best) > 1;
}

}  // namespace

std::string_view to_text(LabelSource value) {
  switch (value) {
    case LabelSource::exact:
      return "exact";
    case LabelSource::top:
      return "top";
    case LabelSource::floor:
      return "floor";
    case LabelSource::text:
      return "text";
    case LabelSource::native:
      return "native";
    case LabelSource::imported:
      break;
  }
  return "imported";
}

Distribution read_top_k(const std::vector<TokenLogprob>& top, const std::vector<TokenId>& labels) {
  if (top.empty() || labels.empty()) throw std::invalid_argument("read_top_k: nothing to read");
  Distribution result;
  const auto lowest = std::min_element(
      top.begin(), top.end(), [](const auto& a, const auto& b) { return a.logprob < b.logprob; });
  result.bound = lowest->logprob;
  result.floor = lowest->logprob - kBelowTheLowest;
  std::vector<double> logprobs;
  std::vector<LabelSource> sources;
  for (const TokenId label : labels) {
    const auto found = std::find_if(top.begin(), top.end(),
                                    [&](const TokenLogprob& entry) { return entry.id == label; });
    const bool returned = found != top.end();
    logprobs.push_back(returned ? found->logprob : *result.floor);
    sources.push_back(returned ? LabelSource::top : LabelSource::floor);
    if (returned) ++result.labels_returned;
  }
  fill_labels(logprobs, sources, result);
  describe_top(top, labels, result);
  const bool absent = result.labels_returned < static_cast<int>(labels.size());
  const double best = result.labels[static_cast<std::size_t>(result.predicted)].logprob;
  result.tied_at_bound = absent && best <= *result.bound;
  return result;
}

Distribution read_exact(const std::vector<double>& label_logprobs,
                        const std::vector<TokenLogprob>& top, const std::vector<TokenId>& labels) {
  if (label_logprobs.empty() || label_logprobs.size() != labels.size()) {
    throw std::invalid_argument("read_exact: one log-probability per label is needed");
  }
  Distribution result;
  fill_labels(label_logprobs, std::vector<LabelSource>(labels.size(), LabelSource::exact), result);
  result.labels_returned = static_cast<int>(labels.size());
  if (!top.empty()) describe_top(top, labels, result);
  return result;
}

ProbabilityBounds probability_bounds(const Distribution& distribution) {
  std::vector<double> at_bound, at_nothing;
  for (const LabelProbability& label : distribution.labels) {
    const bool absent = label.source == LabelSource::floor && distribution.bound;
    at_bound.push_back(absent ? *distribution.bound : label.logprob);
    at_nothing.push_back(absent ? -HUGE_VAL : label.logprob);
  }
  if (at_bound.empty()) return {};
  // With no label returned at all there is nothing to be certain of: both extremes are uniform.
  if (distribution.labels_returned == 0) return {softmax(at_bound), softmax(at_bound)};
  return {softmax(at_bound), softmax(at_nothing)};
}

}  // namespace preval
