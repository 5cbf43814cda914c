#pragma once
// How protocols are written down: as member functions, each of which understands one reply and
// names the next request together with the function that will understand its reply.
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
