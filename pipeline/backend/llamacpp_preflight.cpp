// Tries on one record what the plan relies on. Every outcome is a finding with its evidence; only a
// server that cannot be reached ends the preflight early.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "backend/dialogue.h"
#include "backend/errors.h"
#include "backend/llamacpp.h"

namespace preval {

namespace {

constexpr int kRepeats = 5;
constexpr double kRefereeAgreement =
    1e-4;  // relative, of label probabilities with the whole vocabulary's

using Findings = std::vector<Finding>;

std::string fact(const Json& facts, const char* key) {
  const auto found = facts.find(key);
  if (found == facts.end()) return "not told";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

long long number_of(const Json& facts, const char* key) {
  const auto found = facts.find(key);
  return found != facts.end() && found->is_number() ? found->get<long long>() : -1;
}

std::string ids_of(const std::vector<TokenId>& tokens) {
  return fmt::format("{}", fmt::join(tokens, " "));
}

/// Largest relative difference of the label probabilities, over the labels that `read` really
/// holds.
double largest_difference(const Distribution& read, const Distribution& reference) {
  double ours = 0, theirs = 0, largest = 0;
  const auto returned = [&](std::size_t i) { return read.labels[i].source != LabelSource::floor; };
  for (std::size_t i = 0; i < read.labels.size(); ++i) {
    if (!returned(i)) continue;
    ours += read.labels[i].probability;
    theirs += reference.labels[i].probability;
  }
  for (std::size_t i = 0; i < read.labels.size(); ++i) {
    if (!returned(i)) continue;
    const double p = read.labels[i].probability / ours,
                 q = reference.labels[i].probability / theirs;
    if (q > 0) largest = std::max(largest, std::abs(p / q - 1));
  }
  return largest;
}

double largest_step(const Distribution& a, const Distribution& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.labels.size(); ++i) {
    largest = std::max(largest, std::abs(a.labels[i].logprob - b.labels[i].logprob));
  }
  return largest;
}

class Preflight final : public Dialogue<Findings> {
 public:
  Preflight(const LlamaCpp& backend, const Item& item) : backend_(backend), item_(item) {}

  Step<Findings> begin() override {
    return follow<Identity>(backend_.identify(),
                            [this](auto outcome) { return on_identity(outcome); });
  }

  Step<Findings> reply(const HttpReply& reply) override {
    const auto resume = std::exchange(resume_, nullptr);
    return resume(reply);
  }

 private:
  template <class X>
  using Done = std::function<Step<Findings>(const std::variant<X, Failure>&)>;

  /// Walks another dialogue to its end, then goes on with `done`. A failure that is worth asking
  /// again says nothing about what the server can do, so it ends the preflight.
  template <class X>
  Step<Findings> follow(std::unique_ptr<Dialogue<X>> dialogue, Done<X> done) {
    std::shared_ptr<Dialogue<X>> shared = std::move(dialogue);
    return advance<X>(shared, shared->begin(), std::move(done));
  }

  template <class X>
  Step<Findings> advance(std::shared_ptr<Dialogue<X>> dialogue, Step<X> step, Done<X> done) {
    if (auto* request = std::get_if<HttpRequest>(&step)) {
      resume_ = [this, dialogue, done](const HttpReply& reply) {
        return advance<X>(dialogue, dialogue->reply(reply), done);
      };
      return std::move(*request);
    }
    if (auto* failure = std::get_if<Failure>(&step)) {
      if (failure->retry) return std::move(*failure);
      return done(std::move(*failure));
    }
    return done(std::get<X>(std::move(step)));
  }

  void add(std::string capability, bool ok, std::string verdict, std::string evidence = {}) {
    findings_.push_back({std::move(capability), ok, std::move(verdict), std::move(evidence)});
  }

  void add(std::string capability, const Failure& failure) {
    add(std::move(capability), false, failure.error_class, failure.message);
  }

  Step<Findings> on_identity(const std::variant<Identity, Failure>& outcome) {
    if (auto* failure = std::get_if<Failure>(&outcome)) {
      add("engine", *failure);
      return std::move(findings_);
    }
    const Json& facts = std::get<Identity>(outcome).facts;
    const BackendSpec& spec = backend_.spec();
    add("engine", true, fmt::format("llama.cpp, build {}", fact(facts, "build")));
    check_model(facts);
    const long long context = number_of(facts, "context"), slots = number_of(facts, "slots");
    add("context", context >= spec.context, fmt::format("{} tokens per slot", context),
        fmt::format("plan: {}", spec.context));
    add("slots", slots == spec.slots, fmt::format("{}", slots),
        fmt::format("plan: {}", spec.slots));
    if (!spec.kv_cache.empty()) {
      add("KV cache", true, fmt::format("{}, as the command says", spec.kv_cache),
          "the server does not tell");
    }
    return follow<TokenPrompt>(backend_.tokenise(item_),
                               [this](auto next) { return on_tokens(next); });
  }

  void check_model(const Json& facts) {
    const std::string served = fact(facts, "model");
    const auto& files = backend_.checkpoint().files;
    const bool same = files.empty() || served == files.front().name;
    add("model", same,
        fmt::format("{}, {}, vocabulary {}", served, fact(facts, "ftype"),
                    fact(facts, "vocabulary")),
        files.empty() ? "the plan names no file" : fmt::format("plan: {}", files.front().name));
  }

  Step<Findings> on_tokens(const std::variant<TokenPrompt, Failure>& outcome) {
    if (auto* failure = std::get_if<Failure>(&outcome)) {
      add(failure->error_class == "label_tokens" ? "labels" : "template", *failure);
      return ask_nonsense();
    }
    prompt_ = std::get<TokenPrompt>(outcome);
    const bool chat = backend_.checkpoint().chat_template == Template::chat;
    const auto& bos = *backend_.learned().bos;
    add("template", true, chat ? "the model's own chat template" : "none: plain text",
        fmt::format("{} tokens, {}", prompt_.tokens.size(),
                    bos.empty() ? "the model adds no BOS" : fmt::format("BOS {} once", bos[0])));
    add("labels", true, "each is one token of its own", ids_of(prompt_.labels));
    return follow<Answer>(backend_.read_whole_vocabulary(prompt_),
                          [this](auto next) { return on_reference(next); });
  }

  Step<Findings> on_reference(const std::variant<Answer, Failure>& outcome) {
    if (auto* failure = std::get_if<Failure>(&outcome)) {
      add("whole vocabulary", *failure);
      return ask_nonsense();
    }
    reference_ = std::get<Answer>(outcome).distribution;
    return repeat();
  }

  Step<Findings> repeat() {
    return follow<Answer>(backend_.read(item_, prompt_),
                          [this](auto next) { return on_read(next); });
  }

  const char* capability() const {
    return backend_.spec().read == ReadMode::top_k ? "top-k read" : "exact read";
  }

  Step<Findings> on_read(const std::variant<Answer, Failure>& outcome) {
    if (auto* failure = std::get_if<Failure>(&outcome)) {
      add(reads_.empty() ? capability() : "repeats", *failure);
      return ask_nonsense();
    }
    reads_.push_back(std::get<Answer>(outcome));
    if (reads_.size() < kRepeats) return repeat();
    const Answer& first = reads_.front();
    const double difference = largest_difference(first.distribution, reference_);
    add(capability(), difference <= kRefereeAgreement,
        fmt::format("{} of {} labels, {:.1e} from the whole vocabulary",
                    first.distribution.labels_returned, first.distribution.labels.size(),
                    difference),
        fmt::format("{} requests, limit {:.0e} (relative)", first.requests, kRefereeAgreement));
    check_repeats();
    return ask_nonsense();
  }

  /// Several slots compute in batches, which changes values: then the plan cannot expect equal
  /// bits.
  void check_repeats() {
    double largest = 0;
    for (const Answer& answer : reads_) {
      largest = std::max(largest, largest_step(answer.distribution, reads_.front().distribution));
    }
    const bool may_differ = backend_.spec().slots > 1;
    add("repeats", largest == 0 || may_differ,
        largest == 0 ? fmt::format("{} reads, equal to the bit", kRepeats)
                     : fmt::format("{} reads, up to {:.2g} nats apart", kRepeats, largest),
        may_differ ? "several slots: values may differ" : "one slot");
    add("prompt cache", true, "every prompt token computed anew",
        fmt::format("{} reads of one prompt", kRepeats + 1));
  }

  Step<Findings> ask_nonsense() {
    resume_ = [this](const HttpReply& reply) { return on_nonsense(reply); };
    return HttpRequest{"POST", "/completion", R"({"prompt":[1],"n_predict":"many"})"};
  }

  Step<Findings> on_nonsense(const HttpReply& reply) {
    if (auto failure = transport_failure(reply); failure && failure->retry)
      return *std::move(failure);
    const ServerMessage said = server_message(reply.body);
    const bool refused = reply.status >= 400 && !said.text.empty();
    add("error envelope", refused,
        refused
            ? fmt::format("HTTP {}, {}", reply.status, said.type.empty() ? "no type" : said.type)
            : fmt::format("HTTP {} to a request that makes no sense", reply.status),
        said.text);
    return std::move(findings_);
  }

  const LlamaCpp& backend_;
  Item item_;
  std::function<Step<Findings>(const HttpReply&)> resume_;
  Findings findings_;
  TokenPrompt prompt_;
  Distribution reference_;
  std::vector<Answer> reads_;
};

}  // namespace

std::unique_ptr<Dialogue<Findings>> LlamaCpp::preflight(const Item& item) const {
  return std::make_unique<Preflight>(*this, item);
}

}  // namespace preval
