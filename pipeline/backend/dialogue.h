#pragma once
// How protocols are written down: as member functions, each of which understands one reply and
// names the next request together with the function that will understand its reply.
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "backend/backend.h"

namespace preval {

/// A failure of a reply that came whole but cannot be used: final.
Failure unusable(std::string_view error_class, std::string message, const HttpReply& reply);

/// The JSON of a small reply, or invalid_json (a duplicate key is that, too).
std::variant<Json, Failure> json_of(const HttpReply& reply);

/// The value of a key that is there and not null; nullptr otherwise, and of what is no object.
const Json* value_of(const Json& json, std::string_view key);

/// Walks one dialogue to its end, waiting for each exchange.
template <class Result>
std::variant<Result, Failure> converse(Dialogue<Result>& dialogue, const Ask& ask) {
  Step<Result> step = dialogue.begin();
  while (auto* request = std::get_if<HttpRequest>(&step)) {
    step = dialogue.reply(ask(std::move(*request)));
  }
  if (auto* result = std::get_if<Result>(&step)) return std::move(*result);
  return std::get<Failure>(std::move(step));
}

/// A dialogue that needs no exchange.
template <class Result>
class Said final : public Dialogue<Result> {
 public:
  explicit Said(Result result) : result_(std::move(result)) {}
  Step<Result> begin() override { return std::move(result_); }
  Step<Result> reply(const HttpReply&) override {
    throw std::logic_error("nothing was asked, so nothing can be answered");
  }

 private:
  Result result_;
};

/// The base of every protocol's dialogues. `Self` derives from it.
template <class Self, class Result>
class Scripted : public Dialogue<Result> {
 public:
  Step<Result> reply(const HttpReply& reply) final {
    if (auto failure = transport_failure(reply)) return *std::move(failure);
    return (static_cast<Self*>(this)->*next_)(reply);
  }

 protected:
  using Understand = Step<Result> (Self::*)(const HttpReply&);

  Step<Result> ask(HttpRequest request, Understand next) {
    next_ = next;
    return request;
  }

 private:
  Understand next_ = nullptr;
};

}  // namespace preval
