#include "backend/simulated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "backend/dialogue.h"
#include "base/python_random.h"
#include "base/sha256.h"

namespace preval {

namespace {

constexpr double kSpread = 0.9;        // of the room that confidences have
constexpr double kAboveChance = 0.01;  // the least mean confidence above 1/K
constexpr double kJitter = 0.02;       // nats between backends, variants and repeats
constexpr double kLeastMass = 0.5;
constexpr double kLeastDoubt = 1e-6;  // nobody is quite certain: ln 0 is no log-probability
constexpr int kBytesPerToken = 4;

PythonRandom random_for(const std::string& text) {
  const std::string digest = sha256_hex(text);
  std::uint64_t seed = 0;
  for (const char digit : std::string_view(digest).substr(0, 16)) {
    seed = seed << 4 | static_cast<std::uint64_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  }
  return PythonRandom(seed);
}

double signed_uniform(PythonRandom& random) { return 2 * random.uniform() - 1; }

/// Calibrated probabilities over the alternatives, and how much of the vocabulary's mass they
/// share.
struct Belief {
  std::vector<double> probabilities;
  double mass = 1;
};

Belief believe(const Simulation& simulation, const Record& record, PythonRandom random) {
  const std::size_t count = record.question.alternatives.size();
  const double chance = 1.0 / static_cast<double>(count);
  const double mean = std::clamp(simulation.accuracy, chance + kAboveChance, 1 - kLeastDoubt);
  const double confidence =
      mean + signed_uniform(random) * kSpread * std::min(1 - mean, mean - chance);
  const bool right =
      random.uniform() < (simulation.accuracy < chance ? simulation.accuracy : confidence);
  auto predicted = static_cast<std::size_t>(record.target);
  if (!right) predicted = (predicted + 1 + random.below(count - 1)) % count;

  Belief belief;
  std::vector<double> uneven(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (i != predicted) uneven[i] = random.uniform();
  }
  const auto others = static_cast<double>(count - 1);
  const double middle = std::accumulate(uneven.begin(), uneven.end(), 0.0) / others;
  const double share = (1 - confidence) / others;
  const double room = kSpread * std::min(share, confidence - share);
  for (std::size_t i = 0; i < count; ++i) {
    belief.probabilities.push_back(i == predicted ? confidence
                                                  : share + room * (uneven[i] - middle));
  }
  // Each read adds its jitter: no labels may then have more probability than there is.
  belief.mass = std::exp(-kJitter) * (kLeastMass + (1 - kLeastMass) * random.uniform());
  return belief;
}

/// A reply's list for these label log-probabilities: the labels, and one token for all the rest.
std::vector<TokenLogprob> top_of(const std::vector<double>& logprobs) {
  std::vector<TokenLogprob> top;
  double mass = 0;
  for (std::size_t i = 0; i < logprobs.size(); ++i) {
    top.push_back({static_cast<TokenId>(i), logprobs[i]});
    mass += std::exp(logprobs[i]);
  }
  if (mass < 1) top.push_back({static_cast<TokenId>(logprobs.size()), std::log(1 - mass)});
  std::stable_sort(top.begin(), top.end(),
                   [](const auto& a, const auto& b) { return a.logprob > b.logprob; });
  return top;
}

/// Cuts the list behind its first `kept` labels.
void cut_behind(std::vector<TokenLogprob>& top, std::size_t labels, std::size_t kept) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < top.size(); ++i) {
    if (static_cast<std::size_t>(top[i].id) >= labels) continue;
    if (seen == kept) {
      top.resize(i);
      return;
    }
    ++seen;
  }
}

/// ln(mass * p_i^sharpness / sum p_j^sharpness), computed without powers that could vanish.
std::vector<double> sharpened(const Belief& belief, double sharpness) {
  std::vector<double> logs;
  for (const double p : belief.probabilities) logs.push_back(sharpness * std::log(p));
  const double most = *std::max_element(logs.begin(), logs.end());
  double total = 0;
  for (const double value : logs) total += std::exp(value - most);
  const double shift = std::log(belief.mass) - most - std::log(total);
  for (double& value : logs) value += shift;
  return logs;
}

LabelSource source_of(ReadMode mode, LabelSource source) {
  if (mode == ReadMode::text_top_k && source == LabelSource::top) return LabelSource::text;
  return mode == ReadMode::native ? LabelSource::native : source;
}

}  // namespace

std::unique_ptr<Dialogue<Identity>> Simulated::identify() const {
  Identity identity;
  identity.facts["engine"] = "simulated";
  identity.facts["accuracy"] = spec_.simulation.accuracy;
  identity.facts["sharpness"] = spec_.simulation.sharpness;
  identity.facts["missing"] = spec_.simulation.missing;
  identity.facts["seed"] = spec_.simulation.seed;
  return std::make_unique<Said<Identity>>(std::move(identity));
}

std::unique_ptr<Dialogue<TokenPrompt>> Simulated::tokenise(const Item& item) const {
  TokenPrompt prompt;
  prompt.labels.resize(item.prompt->labels.size());
  std::iota(prompt.labels.begin(), prompt.labels.end(), 0);
  return std::make_unique<Said<TokenPrompt>>(std::move(prompt));
}

std::unique_ptr<Dialogue<Answer>> Simulated::read(const Item& item, const TokenPrompt&,
                                                  const Sampling&) const {
  return std::make_unique<Said<Answer>>(answer(item));
}

HttpRequest Simulated::health() const { return {}; }
HttpRequest Simulated::nonsense() const { return {}; }

Answer Simulated::answer(const Item& item) const {
  const Record& record = *item.record;
  const Prompt& prompt = *item.prompt;
  const std::string text =
      fmt::format("{}/{}/{}/{}", spec_.simulation.seed, checkpoint_.id, record.subset, record.id);
  const Belief belief = believe(spec_.simulation, record, random_for(text));
  PythonRandom random =
      random_for(fmt::format("{}/{}/{}/{}", text, spec_.id, item.variant, item.repeat));

  std::vector<double> by_option = sharpened(belief, spec_.simulation.sharpness);
  for (double& logprob : by_option) logprob += kJitter * signed_uniform(random);
  std::vector<double> logprobs;
  std::vector<TokenId> labels;
  for (std::size_t i = 0; i < prompt.options.size(); ++i) {
    logprobs.push_back(by_option[static_cast<std::size_t>(prompt.options[i])]);
    labels.push_back(static_cast<TokenId>(i));
  }

  std::vector<TokenLogprob> top = top_of(logprobs);
  Answer answer;
  if (spec_.read == ReadMode::exact || spec_.read == ReadMode::native) {
    answer.distribution = read_exact(logprobs, top, labels);
  } else {
    std::size_t missing = 0;
    for (std::size_t i = 1; i < labels.size(); ++i) {
      if (random.uniform() < spec_.simulation.missing) ++missing;
    }
    cut_behind(top, labels.size(), labels.size() - missing);
    answer.distribution = read_top_k(top, labels);
  }
  for (LabelProbability& label : answer.distribution.labels) {
    label.source = source_of(spec_.read, label.source);
  }
  answer.prompt_tokens = static_cast<int>(
      (prompt.system.size() + prompt.user.size() + prompt.lead.size()) / kBytesPerToken);
  answer.requests = 0;
  answer.model = "simulated";
  return answer;
}

}  // namespace preval
