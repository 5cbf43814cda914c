#pragma once
// What a server protocol has to know, and nothing else: how to put a prompt into token ids, how to
// ask for label log-probabilities, and how to understand a reply or name what is wrong with it.
//
// A protocol never does I/O. It is a Dialogue: it says the next request, gets the reply, and ends
// with a result or a Failure. So every protocol is tested and fuzzed with literals, replayed from a
// transcript, and driven by one scheduler, N dialogues in flight on one thread.
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backend/transport.h"
#include "plan/plan.h"
#include "read/distribution.h"
#include "read/labels.h"
#include "read/prompt.h"

namespace preval {

/// Why there is no result. Classes are names that tests, SQL and people use: connect_failed, reset,
/// timeout, partial_body, too_large, transport_error, http_error, invalid_json, duplicate_key,
/// no_logprobs, missing_label, logprob_sentinel, not_finite, no_label, prompt_mismatch, truncated,
/// cached_prompt, label_tokens, context_exceeded, identity_changed, server_nan, text_keys,
/// impossible_sum, no_level_rule, unexpected_reply, not_recorded (replay only), record_refused
/// (nothing was asked: the record cannot be put to this kind of server).
struct Failure {
  std::string error_class, message;
  long http_status = 0;
  std::string body{};   ///< what was received, for the digest and its first 500 bytes
  bool retry = false;   ///< worth asking again (the scheduler decides when and how often)
  bool server = false;  ///< counts towards the circuit breaker
  /// With `retry`: worth one more try only, and while nothing else is in flight.
  bool alone = false;
};

/// A dialogue's next move.
template <class Result>
using Step = std::variant<HttpRequest, Result, Failure>;

template <class Result>
class Dialogue {
 public:
  virtual ~Dialogue() = default;
  virtual Step<Result> begin() = 0;
  virtual Step<Result> reply(const HttpReply& reply) = 0;
};

/// What is asked: one variant of one record, once.
struct Item {
  const Record* record = nullptr;
  const Prompt* prompt = nullptr;
  std::string_view variant = "none";
  int repeat = 0;
};

/// A prompt as the server's tokens. Empty for protocols that send text or the record itself.
struct TokenPrompt {
  std::vector<TokenId> tokens;  ///< template, messages and lead
  std::vector<TokenId> labels;  ///< in the order of prompt.labels
};

/// What a native reply says beside its probabilities.
struct NativeFacts {
  double printed_sum = 0;       ///< of the printed probabilities, as they are
  bool sum_is_off = false;      ///< by more than 0.05 from 1
  bool choice_differs = false;  ///< the named choice is not the largest printed number, by > 0.01
  std::optional<double> value;  ///< a score as an expected level, in levels from 0
};

/// A read as the protocol understood it, before anybody has judged it.
struct Answer {
  /// A native score that is an expected level has no probabilities: `labels` is empty then.
  Distribution distribution;
  std::optional<NativeFacts> native;
  int prompt_tokens = 0;  ///< as counted by the server, or by us
  int requests = 0;       ///< exchanges that the read took
  double latency_ms = 0;  ///< sum over its exchanges
  std::string model;      ///< what the reply says it came from; empty when it does not
};

/// Who answers. Part of every prediction's key.
struct Identity {
  Json facts = Json::object();  ///< engine, version, model, … as the server tells them
};

/// One thing that was tried before the run, and what came of it.
struct Finding {
  std::string capability;  ///< "exact read", "repeats", "context", …
  bool ok = false;
  std::string verdict, evidence;  ///< one line each

  std::string text() const;  ///< "not supported (missing_label: …)"
};

/// How the one token is drawn. Reads are made at 0; the probe compares with others, to find servers
/// whose log-probabilities have gone through the sampler.
struct Sampling {
  double temperature = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Who answers. Teaches the backend the server's name of the model, where it has one.
  virtual std::unique_ptr<Dialogue<Identity>> identify() const = 0;
  /// Protocols that send text or the record itself end at once, without a request.
  virtual std::unique_ptr<Dialogue<TokenPrompt>> tokenise(const Item& item) const = 0;
  virtual std::unique_ptr<Dialogue<Answer>> read(const Item& item, const TokenPrompt& prompt,
                                                 const Sampling& sampling) const = 0;
  /// The request that is answered with 200 as soon as the server serves.
  virtual HttpRequest health() const = 0;
  /// A request that makes no sense, to see how the server refuses it.
  virtual HttpRequest nonsense() const = 0;
};

/// The protocol of `spec.kind` (of the recorded protocol for kind replay). Throws usage for a kind
/// that this build does not know, naming those it does, and for a read mode that the kind cannot
/// do.
std::unique_ptr<Backend> make_backend(const BackendSpec& spec, const Checkpoint& checkpoint,
                                      const PromptSpec& prompt);

/// The read modes of a protocol; empty for a kind that is unknown.
std::vector<ReadMode> read_modes(std::string_view kind);
/// Every protocol by name, in the order of the documentation.
std::vector<std::string> backend_kinds();

/// Failure of a reply that is not a 200 with a body, by the retry table; nothing when it is one.
std::optional<Failure> transport_failure(const HttpReply& reply);

}  // namespace preval
