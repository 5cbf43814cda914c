#pragma once
// Walks dialogues in tests: against scripted replies, or through a real transport.
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "catch.h"

namespace preval::test {

inline HttpReply ok_reply(std::string body) {
  HttpReply reply;
  reply.status = 200;
  reply.body = std::move(body);
  reply.total_ms = 10;
  return reply;
}

inline HttpReply status_reply(long status, std::string body) {
  HttpReply reply = ok_reply(std::move(body));
  reply.status = status;
  return reply;
}

/// The prompt that protocols are tested with: two labels behind the usual lead.
inline Prompt hot_or_not() {
  Prompt prompt;
  prompt.system = "Is it hot?";
  prompt.user = "Tea.";
  prompt.lead = "decision: ";
  prompt.labels = {"yes", "no"};
  prompt.options = {0, 1};
  return prompt;
}

/// What a dialogue asked, and how it ended.
template <class Result>
struct Outcome {
  std::vector<HttpRequest> asked;
  std::variant<Result, Failure> end;

  const Result& result() const {
    if (const auto* failure = std::get_if<Failure>(&end)) {
      FAIL("unexpected failure " << failure->error_class << ": " << failure->message);
    }
    return std::get<Result>(end);
  }
  const Failure& failure() const {
    REQUIRE(std::holds_alternative<Failure>(end));
    return std::get<Failure>(end);
  }
};

/// Answers every request by `answer`.
template <class Result>
Outcome<Result> converse_with(Dialogue<Result>& dialogue,
                              const std::function<HttpReply(const HttpRequest&)>& answer) {
  Outcome<Result> outcome;
  Step<Result> step = dialogue.begin();
  while (auto* request = std::get_if<HttpRequest>(&step)) {
    REQUIRE(outcome.asked.size() < 200);
    outcome.asked.push_back(*request);
    step = dialogue.reply(answer(outcome.asked.back()));
  }
  if (auto* failure = std::get_if<Failure>(&step)) {
    outcome.end = std::move(*failure);
  } else {
    outcome.end = std::get<Result>(std::move(step));
  }
  return outcome;
}

/// Answers with these replies, in this order; asking more often fails the test.
template <class Result>
Outcome<Result> converse_with(Dialogue<Result>& dialogue, std::deque<HttpReply> replies) {
  return converse_with<Result>(dialogue, [&](const HttpRequest& request) {
    INFO("unexpected request " << request.path << " " << request.body);
    REQUIRE_FALSE(replies.empty());
    HttpReply reply = std::move(replies.front());
    replies.pop_front();
    return reply;
  });
}

}  // namespace preval::test
