#include "backend/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "backend/dialogue.h"
#include "backend/errors.h"
#include "backend/protocols.h"
#include "base/text.h"

namespace preval {

namespace {

constexpr int kRepeats = 5;
constexpr int kSettledK = 20;        // the default limit of vLLM
constexpr int kUnlikelyIds = 32;     // tokens 0, 1, … are control tokens, bytes and rare letters
constexpr double kRawValues = 1e-3;  // nats: how far a read at another temperature may be off
constexpr double kOtherTemperature = 0.7;

template <class Result>
using Outcome = std::variant<Result, Failure>;

/// No word on what the server can do: below the protocol, a refused key, or a server (or the proxy
/// before it) that says that it cannot answer anything now.
bool is_away(const Failure& failure) {
  static const std::set<std::string> classes{"connect_failed", "reset",     "timeout",
                                             "partial_body",   "too_large", "transport_error",
                                             "not_recorded"};
  static const std::set<long> statuses{401, 403, 408, 429, 502, 503, 504};
  return statuses.contains(failure.http_status) ||
         (failure.http_status == 0 && classes.contains(failure.error_class));
}

std::string fact(const Json& facts, const char* key) {
  const auto found = facts.find(key);
  if (found == facts.end()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

/// Largest relative difference of the label probabilities, over the labels that both reads hold.
double largest_difference(const Distribution& a, const Distribution& b) {
  std::vector<std::pair<double, double>> shared;
  double sum_a = 0, sum_b = 0, largest = 0;
  for (std::size_t i = 0; i < a.labels.size(); ++i) {
    if (a.labels[i].source == LabelSource::floor || b.labels[i].source == LabelSource::floor)
      continue;
    shared.emplace_back(a.labels[i].probability, b.labels[i].probability);
    sum_a += a.labels[i].probability;
    sum_b += b.labels[i].probability;
  }
  for (const auto& [p, q] : shared) {
    if (q > 0) largest = std::max(largest, std::abs((p / sum_a) / (q / sum_b) - 1));
  }
  return largest;
}

/// Largest step between two reads of one prompt: nats, or probability where there are no nats.
double largest_step(const Answer& a, const Answer& b) {
  const Distribution &x = a.distribution, &y = b.distribution;
  double largest = 0;
  for (std::size_t i = 0; i < x.labels.size() && i < y.labels.size(); ++i) {
    const double nats = std::abs(x.labels[i].logprob - y.labels[i].logprob);
    const double step =
        std::isnan(nats) ? std::abs(x.labels[i].probability - y.labels[i].probability) : nats;
    largest = std::max(largest, step);
  }
  if (a.native && b.native && a.native->value && b.native->value) {
    largest = std::max(largest, std::abs(*a.native->value - *b.native->value));
  }
  return largest;
}

std::string most(const std::optional<int>& limit) {
  return limit ? fmt::format(" ≤ {}", *limit) : std::string();
}

class Prober {
 public:
  Prober(const BackendSpec& spec, const Checkpoint& checkpoint, const PromptSpec& prompt,
         const std::vector<Item>& items, ProbeFor purpose, const Ask& ask)
      : spec_(spec),
        checkpoint_(checkpoint),
        prompt_spec_(prompt),
        items_(items),
        planned_(purpose == ProbeFor::plan),
        ask_(ask),
        protocol_(*find_protocol(spec.transcript ? spec.transcript->protocol : spec.kind)),
        backend_(make_backend(spec, checkpoint, prompt)) {}

  ProbeResult run() {
    if (identify() && !items_.empty()) {
      item_ = *std::min_element(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
        return length(*a.prompt) < length(*b.prompt);
      });
      read_all();
    }
    if (!result_.broke) refuse_nonsense();
    return std::move(result_);
  }

 private:
  static std::size_t length(const Prompt& prompt) {
    return prompt.system.size() + prompt.user.size() + prompt.native.size();
  }

  bool speaks(ReadMode mode) const {
    return std::find(protocol_.modes.begin(), protocol_.modes.end(), mode) != protocol_.modes.end();
  }
  bool needed(ReadMode mode) const { return planned_ && spec_.read == mode; }
  bool by_token() const { return speaks(ReadMode::exact) || speaks(ReadMode::top_k); }
  bool has_server() const { return !backend_->health().path.empty(); }

  void add(std::string capability, bool ok, std::string verdict, std::string evidence = {}) {
    result_.findings.push_back(
        {std::move(capability), ok, std::move(verdict), std::move(evidence)});
  }

  void add(std::string capability, bool ok, const Failure& failure) {
    add(std::move(capability), ok, failure.error_class, failure.message);
  }

  /// Walks a dialogue. Remembers a failure that ends the probe.
  template <class Result>
  Outcome<Result> talk(std::unique_ptr<Dialogue<Result>> dialogue) {
    Outcome<Result> outcome = converse(*dialogue, ask_);
    const auto* failure = std::get_if<Failure>(&outcome);
    if (failure != nullptr && (is_away(*failure) || is_down(*failure))) result_.broke = *failure;
    return outcome;
  }

  /// A 500 is how some servers say that they cannot do what was asked, and how others say that they
  /// cannot do anything any more: their health tells.
  bool is_down(const Failure& failure) const {
    if (failure.http_status != 500 || !has_server()) return false;
    const HttpReply health = ask_(backend_->health());
    return health.transport != TransportStatus::ok || health.status >= 500;
  }

  /// The same server asked in another way. It has to learn the model's name, too.
  std::unique_ptr<Backend> backend_for(ReadMode mode, int k) const {
    BackendSpec spec = spec_;
    spec.read = mode;
    spec.k = k;
    std::unique_ptr<Backend> backend = make_backend(spec, checkpoint_, prompt_spec_);
    converse(*backend->identify(), ask_);
    return backend;
  }

  bool identify() {
    auto outcome = talk(backend_->identify());
    if (const auto* failure = std::get_if<Failure>(&outcome)) {
      if (!result_.broke) add("engine", false, *failure);
      return false;
    }
    result_.identity = std::get<Identity>(std::move(outcome));
    const Json& facts = result_.identity.facts;
    std::string engine = fact(facts, "engine");
    for (const char* key : {"version", "build"}) {
      if (const std::string text = fact(facts, key); !text.empty()) engine += " " + text;
    }
    add("engine", true, engine.empty() ? "does not say" : engine);
    check_model(facts);
    check_size(facts, "context", spec_.context, "tokens");
    check_size(facts, "slots", spec_.slots, "at once");
    if (const std::string cache = fact(facts, "kv_cache"); !cache.empty()) {
      const bool same = !planned_ || spec_.kv_cache.empty() || cache == spec_.kv_cache;
      add("KV cache", same, cache, planned_ ? "plan: " + spec_.kv_cache : std::string());
    } else if (planned_ && !spec_.kv_cache.empty()) {
      add("KV cache", true, "not told by the server", "plan: " + spec_.kv_cache);
    }
    return true;
  }

  void check_model(const Json& facts) {
    const std::string served = fact(facts, "model");
    if (served.empty()) return add("model", true, "does not say");
    std::string expected = spec_.model;
    if (expected.empty() && spec_.server && !checkpoint_.files.empty()) {
      expected = checkpoint_.files.front().name;
    }
    const bool same = !planned_ || expected.empty() || served == expected;
    add("model", same, served, expected.empty() ? std::string() : "plan: " + expected);
  }

  void check_size(const Json& facts, const char* key, int planned, std::string_view unit) {
    const auto found = facts.find(key);
    if (found == facts.end() || !found->is_number_integer()) return;
    const auto size = found->get<long long>();
    // More room changes nothing; other slots change values.
    const bool enough = std::string_view(key) == "slots" ? size == planned : size >= planned;
    add(key, !planned_ || enough, fmt::format("{} {}", size, unit),
        planned_ ? fmt::format("plan: {}", planned) : std::string());
  }

  void read_all() {
    if (by_token() && has_server()) {
      if (!learn_tokens()) return;
    } else {
      auto outcome = talk(backend_->tokenise(item_));
      if (const auto* failure = std::get_if<Failure>(&outcome))
        return add("labels", false, *failure);
      tokens_ = std::get<TokenPrompt>(std::move(outcome));
    }
    repeat();  // first, so that its first read finds a cold cache
    if (!has_server()) return;
    const std::vector<void (Prober::*)()> steps{&Prober::try_top_k, &Prober::try_by_id,
                                                &Prober::compare_modes, &Prober::try_temperature};
    for (const auto step : steps) {
      if (!result_.broke) (this->*step)();
    }
  }

  // Tokens: template, BOS, labels.

  bool learn_tokens() {
    auto outcome = talk(backend_->tokenise(item_));
    if (const auto* failure = std::get_if<Failure>(&outcome)) {
      add(failure->error_class == "label_tokens" ? "labels" : "template", false, *failure);
      return false;
    }
    tokens_ = std::get<TokenPrompt>(std::move(outcome));
    const bool chat = checkpoint_.chat_template == Template::chat;
    const std::size_t show = std::min<std::size_t>(tokens_.tokens.size(), 4);
    const std::vector<TokenId> first(tokens_.tokens.begin(), tokens_.tokens.begin() + show);
    add("template", true, chat ? "the model's own chat template" : "none: plain text",
        fmt::format("{} tokens, {} …, no token twice at the start", tokens_.tokens.size(),
                    fmt::join(first, " ")));
    if (chat && !result_.broke) switch_reasoning();
    if (!result_.broke) check_labels();
    return !result_.broke;
  }

  /// A template that does not know a switch ignores it without a word.
  void switch_reasoning() {
    PromptSpec other = prompt_spec_;
    other.reasoning = !other.reasoning;
    auto outcome = talk(make_backend(spec_, checkpoint_, other)->tokenise(item_));
    if (const auto* failure = std::get_if<Failure>(&outcome)) {
      return add("reasoning switch", !planned_ || !prompt_spec_.reasoning, *failure);
    }
    const bool honoured = std::get<TokenPrompt>(outcome).tokens != tokens_.tokens;
    add("reasoning switch", honoured || !planned_ || !prompt_spec_.reasoning,
        honoured ? "honoured" : "makes no difference",
        "the template's enable_thinking, on and off");
  }

  void check_labels() {
    std::set<std::pair<std::string, std::vector<std::string>>> seen;
    for (const Item& item : items_) {
      if (!seen.emplace(item.prompt->lead, item.prompt->labels).second) continue;
      auto outcome = talk(backend_->tokenise(item));
      if (result_.broke) return;
      if (const auto* failure = std::get_if<Failure>(&outcome))
        return add("labels", false, *failure);
    }
    add("labels", true,
        fmt::format("each one token of its own, {}", seen.size() == 1
                                                         ? std::string("one set")
                                                         : fmt::format("{} sets", seen.size())),
        fmt::format("{}: {}", join(item_.prompt->labels, " "), fmt::join(tokens_.labels, " ")));
  }

  // Reads.

  Outcome<Answer> read(const Backend& backend, const TokenPrompt& tokens, double temperature = 0) {
    return talk(backend.read(item_, tokens, Sampling{temperature}));
  }

  /// Five reads as the plan makes them: the first one cold, the others from whatever cache there
  /// is.
  void repeat() {
    const std::string name = fmt::format("{} read", to_text(spec_.read));
    const bool needs = planned_ || protocol_.modes.size() == 1;
    for (int i = 0; i < kRepeats; ++i) {
      auto outcome = read(*backend_, tokens_);
      if (result_.broke) return;
      if (const auto* failure = std::get_if<Failure>(&outcome)) {
        add(i == 0 ? name : "repeats", !needs, *failure);
        if (i == 0 && settle_for_top_k()) repeat();
        return;
      }
      reads_.push_back(std::get<Answer>(std::move(outcome)));
    }
    result_.answered_by = reads_.front().model;
    const Distribution& first = reads_.front().distribution;
    add(name, true,
        first.labels.empty()
            ? "an expected level"
            : fmt::format("{} of {} labels", first.labels_returned, first.labels.size()),
        fmt::format("{} request(s)", reads_.front().requests));
    remember_mode(reads_.front());
    if (!has_server()) return;
    report_drift();
  }

  /// Good reads show their own mode, whatever is refused later. Reads by id are shown by unlikely
  /// tokens, where there is a server to ask for them.
  void remember_mode(const Answer& answer) {
    Capabilities& can = result_.can;
    if (spec_.read == ReadMode::native) can.native = true;
    if (spec_.read == ReadMode::text_top_k) can.text = true;
    if (spec_.read == ReadMode::top_k) can.top_k = true;
    if (spec_.read == ReadMode::exact && !has_server()) can.by_id = true;
    if (spec_.read == ReadMode::top_k || spec_.read == ReadMode::text_top_k) widest_ = answer;
  }

  /// A server without reads by id may still list the best tokens. A plan does not settle.
  bool settle_for_top_k() {
    if (planned_ || spec_.read != ReadMode::exact || !speaks(ReadMode::top_k)) return false;
    spec_.k = kSettledK;
    backend_ = backend_for(ReadMode::top_k, spec_.k);
    spec_.read = ReadMode::top_k;
    return true;
  }

  void report_drift() {
    const double warm = largest_step(reads_[0], reads_[1]);
    double drift = 0;
    for (std::size_t i = 2; i < reads_.size(); ++i) {
      drift = std::max(drift, largest_step(reads_[1], reads_[i]));
    }
    // One slot of a server that computes every prompt anew has no reason to differ.
    const bool may_differ = protocol_.agreement > 1e-3 || spec_.slots > 1 || !planned_;
    const auto words = [](double step) {
      return step == 0 ? std::string("equal to the bit") : fmt::format("up to {:.2g} apart", step);
    };
    add("cold and warm", warm == 0 || may_differ, words(warm),
        "first and second read of one prompt");
    add("repeats", drift == 0 || may_differ, words(drift), fmt::format("{} reads", kRepeats));
  }

  void try_top_k() {
    const ReadMode mode = speaks(ReadMode::top_k) ? ReadMode::top_k : ReadMode::text_top_k;
    if (!speaks(mode) || protocol_.too_many_k == 0) return;
    auto outcome = read(*backend_for(mode, protocol_.too_many_k), tokens_);
    if (result_.broke) return;
    if (auto* answer = std::get_if<Answer>(&outcome)) {
      (mode == ReadMode::top_k ? result_.can.top_k : result_.can.text) = true;
      widest_ = std::move(*answer);
      return add(std::string(to_text(mode)), true, "no limit met",
                 fmt::format("asked for {}", protocol_.too_many_k));
    }
    settle_k(mode, std::get<Failure>(outcome));
  }

  /// How many can be had, where many more could not: the limit that the refusal names, the plan's
  /// own number, or a usual one. What the refusal says is believed when a read confirms it.
  void settle_k(ReadMode mode, const Failure& refusal) {
    Capabilities& can = result_.can;
    std::optional<int>& limit = mode == ReadMode::top_k ? can.most_k : can.most_text;
    bool& shown = mode == ReadMode::top_k ? can.top_k : can.text;
    const std::optional<int> named = named_limit(refusal, protocol_.too_many_k);
    const int planned = spec_.read == mode ? spec_.k : 0;
    const bool planned_works = spec_.read == mode && !reads_.empty();
    Failure last = refusal;
    for (const int k : {named.value_or(0), planned, kSettledK}) {
      if (k < 1) continue;
      auto outcome = read(*backend_for(mode, k), tokens_);
      if (result_.broke) return;
      const auto* failure = std::get_if<Failure>(&outcome);
      // No label among the k best is a fact about the prompt, not about the server.
      if (failure != nullptr && failure->error_class != "no_label") {
        last = *failure;
        continue;
      }
      shown = true;
      if (k == named && !(planned_works && planned > k)) limit = named;
      if (failure == nullptr) widest_ = std::get<Answer>(std::move(outcome));
      add(std::string(to_text(mode)), true, fmt::format("{} can be had", k),
          fmt::format("more is refused: {}", refusal.message));
      break;
    }
    if (!shown) {
      add(std::string(to_text(mode)), !needed(mode), last.error_class, last.message);
    } else if (needed(mode) && reads_.empty() && limit && spec_.k > *limit) {
      add(std::string(to_text(mode)), false,
          fmt::format("{} asked for by the plan, {} are the most", spec_.k, *limit),
          refusal.message);
    }
  }

  /// The limit in a refusal's own words. A server in trouble (5xx) names none.
  static std::optional<int> named_limit(const Failure& refusal, int asked) {
    if (refusal.http_status < 400 || refusal.http_status >= 500) return std::nullopt;
    const std::optional<int> limit = limit_in(server_message(refusal.body).text, asked);
    return limit && *limit >= 1 ? limit : std::nullopt;
  }

  /// By id: the labels, and some tokens that are among the best of no prompt. A server that takes
  /// fewer ids at once than these is asked for one of each.
  void try_by_id() {
    if (!speaks(ReadMode::exact)) return;
    const std::unique_ptr<Backend> exact = backend_for(ReadMode::exact, 0);
    TokenPrompt wide = tokens_;
    add_ids(wide.labels, kUnlikelyIds);
    auto outcome = read(*exact, wide);
    if (result_.broke) return;
    if (const auto* refusal = std::get_if<Failure>(&outcome);
        refusal != nullptr && refusal->http_status == 400) {
      wide.labels = {tokens_.labels.front(), wide.labels.back()};
      outcome = read(*exact, wide);
      if (result_.broke) return;
    }
    if (const auto* failure = std::get_if<Failure>(&outcome)) {
      return add("by id", !needed(ReadMode::exact), "not supported",
                 fmt::format("{}: {}", failure->error_class, failure->message));
    }
    result_.can.by_id = true;
    add("by id", true, "every token that was asked for",
        fmt::format("{} ids, {} of them unlikely", wide.labels.size(),
                    wide.labels.size() > 2 ? "most" : "one"));
    if (protocol_.too_many_ids > 0) find_most_ids(*exact);
  }

  void find_most_ids(const Backend& exact) {
    TokenPrompt many = tokens_;
    add_ids(many.labels, protocol_.too_many_ids);
    auto outcome = read(exact, many);
    if (result_.broke) return;
    if (std::holds_alternative<Answer>(outcome)) {
      return add("most ids", true, "no limit met",
                 fmt::format("{} ids asked for", many.labels.size()));
    }
    const Failure refusal = std::get<Failure>(outcome);
    const auto asked = static_cast<int>(many.labels.size());
    const std::optional<int> named = named_limit(refusal, asked);
    if (named && *named < asked) {
      many.labels.resize(static_cast<std::size_t>(*named));
      outcome = read(exact, many);
      if (result_.broke) return;
      if (std::holds_alternative<Answer>(outcome)) result_.can.most_ids = named;
    }
    std::size_t labels = 0;
    for (const Item& item : items_) labels = std::max(labels, item.prompt->labels.size());
    const bool enough =
        !result_.can.most_ids || static_cast<std::size_t>(*result_.can.most_ids) >= labels;
    add("most ids", enough || !needed(ReadMode::exact),
        result_.can.most_ids ? fmt::format("{}", *result_.can.most_ids)
                             : fmt::format("fewer than {}: {}", asked, refusal.error_class),
        refusal.message);
  }

  /// The labels' ids, then tokens 0, 1, … as far as they are not there yet.
  static void add_ids(std::vector<TokenId>& ids, int count) {
    const std::set<TokenId> there(ids.begin(), ids.end());
    for (TokenId id = 0; id < count; ++id) {
      if (!there.contains(id)) ids.push_back(id);
    }
  }

  /// An exact read and the widest top-k read know the same labels: they must say the same of them.
  void compare_modes() {
    if (!widest_ || !result_.can.by_id) return;
    const bool have_exact = spec_.read == ReadMode::exact && !reads_.empty();
    const std::optional<Answer> exact = have_exact ? std::optional(reads_.back()) : read_exactly();
    if (!exact) return;
    const double difference = largest_difference(exact->distribution, widest_->distribution);
    add("exact and top-k", difference <= protocol_.agreement || !needed(ReadMode::exact),
        fmt::format("{:.1e} apart", difference),
        fmt::format("relative, over {} labels; limit {:.0e}", widest_->distribution.labels_returned,
                    protocol_.agreement));
  }

  std::optional<Answer> read_exactly() {
    auto outcome = read(*backend_for(ReadMode::exact, 0), tokens_);
    if (auto* answer = std::get_if<Answer>(&outcome)) return std::move(*answer);
    return std::nullopt;
  }

  /// Log-probabilities that change with the temperature have gone through the sampler.
  void try_temperature() {
    if (reads_.empty() || spec_.read == ReadMode::native) return;
    auto outcome = read(*backend_, tokens_, kOtherTemperature);
    if (result_.broke) return;
    const bool needs =
        protocol_.raw_when_warm && (needed(ReadMode::exact) || needed(ReadMode::top_k));
    if (const auto* failure = std::get_if<Failure>(&outcome)) {
      return add("raw values", true, "not known: " + failure->error_class, failure->message);
    }
    const double step = largest_step(std::get<Answer>(outcome), reads_.back());
    const bool raw = step <= std::max(kRawValues, protocol_.agreement);
    add("raw values", raw || !needs, raw ? "the model's own" : "changed by the sampler",
        fmt::format("temperature 0 and {}: {:.2g} nats apart", kOtherTemperature, step));
  }

  void refuse_nonsense() {
    if (!has_server()) return;
    const HttpReply reply = ask_(backend_->nonsense());
    if (reply.transport != TransportStatus::ok) return;
    const ServerMessage said = server_message(reply.body);
    const bool refused = reply.status >= 400 && !said.text.empty();
    // A lenient server can be read as the plan says; it is only harder to tell what went wrong.
    add("error envelope", refused || planned_ || spec_.read == ReadMode::native,
        refused
            ? fmt::format("HTTP {}, {}", reply.status, said.type.empty() ? "no type" : said.type)
            : fmt::format("HTTP {} to a request that makes no sense", reply.status),
        said.text);
  }

  BackendSpec spec_;  // without a plan, the first way of reading that works
  const Checkpoint& checkpoint_;
  const PromptSpec& prompt_spec_;
  const std::vector<Item>& items_;
  bool planned_;
  const Ask& ask_;
  const Protocol& protocol_;
  std::unique_ptr<Backend> backend_;
  Item item_;
  TokenPrompt tokens_;
  std::vector<Answer> reads_;
  std::optional<Answer> widest_;
  ProbeResult result_;
};

}  // namespace

bool Capabilities::anything() const { return by_id || top_k || text || native; }

std::string Capabilities::verdict() const {
  std::vector<std::string> parts;
  if (by_id) parts.push_back("exact" + most(most_ids));
  if (top_k) parts.push_back("top-k" + most(most_k));
  if (text) parts.push_back((top_k || by_id ? "text" : "text only") + most(most_text));
  if (native) parts.emplace_back("native");
  return parts.empty() ? "nothing that can be read" : join(parts, ", ");
}

ProbeResult probe(const BackendSpec& spec, const Checkpoint& checkpoint, const PromptSpec& prompt,
                  const std::vector<Item>& items, ProbeFor purpose, const Ask& ask) {
  return Prober(spec, checkpoint, prompt, items, purpose, ask).run();
}

std::optional<int> limit_in(std::string_view message, int asked) {
  std::optional<int> last;
  while (true) {
    const auto begin = message.find_first_of("0123456789");
    if (begin == std::string_view::npos) return last;
    message.remove_prefix(begin);
    const auto end = std::min(message.find_first_not_of("0123456789"), message.size());
    const auto value = to_integer(message.substr(0, end));
    if (value && *value < asked) last = static_cast<int>(*value);
    message.remove_prefix(end);
  }
}

}  // namespace preval
