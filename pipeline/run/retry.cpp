#include "run/retry.h"

#include <curl/curl.h>

#include <algorithm>
#include <random>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace preval {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLongestHint = std::chrono::minutes(5);
constexpr milliseconds kSlice{200};  // how long an interrupt may go unheard

/// A 500 may be the answer to what a probe asks, or a passing trouble: it is asked once more.
bool worth_patience(const std::optional<Failure>& failure, const HttpReply& reply, int attempt) {
  return failure && failure->retry && (reply.status != 500 || attempt == 1) &&
         reply.transport != TransportStatus::timeout;
}

void check(const std::function<bool()>& interrupted) {
  if (interrupted()) throw Error(ErrorKind::interrupted, "stopped by the user");
}

}  // namespace

std::optional<milliseconds> wait_hint(const HttpReply& reply, Clock& clock) {
  std::optional<double> ms;
  if (const auto value = to_double(reply.retry_after_ms)) {
    ms = *value;
  } else if (const auto seconds = to_double(reply.retry_after)) {
    ms = *seconds * 1000;
  } else if (!reply.retry_after.empty()) {
    const std::time_t when = curl_getdate(reply.retry_after.c_str(), nullptr);
    if (when != -1) {
      ms = static_cast<double>(when - std::chrono::system_clock::to_time_t(clock.now())) * 1000;
    }
  }
  if (!ms || !(*ms >= 0)) return std::nullopt;
  const double capped = std::min(*ms, static_cast<double>(kLongestHint.count()));
  return milliseconds(static_cast<std::int64_t>(capped));
}

Backoff::Backoff() : Backoff(milliseconds(500), std::chrono::seconds(30), std::random_device()()) {}

milliseconds Backoff::delay(int attempt, const HttpReply& last, Clock& clock) {
  milliseconds ceiling = base_;
  for (int n = 1; n < attempt && ceiling < cap_; ++n) ceiling *= 2;
  ceiling = std::min(ceiling, cap_);
  const milliseconds drawn(
      static_cast<std::int64_t>(random_.uniform() * static_cast<double>(ceiling.count())));
  return std::max(drawn, wait_hint(last, clock).value_or(milliseconds(0)));
}

bool stops_arm(const Failure& failure) {
  return failure.error_class == "identity_changed" || failure.http_status == 401 ||
         failure.http_status == 403 || failure.http_status == 404;
}

HttpReply exchange_unless(Transport& transport, const Endpoint& endpoint,
                          const HttpRequest& request, const std::function<bool()>& interrupted) {
  // Shared, because a transport that is left in the middle still holds the callback.
  const auto result = std::make_shared<std::optional<HttpReply>>();
  transport.start(endpoint, request, [result](HttpReply reply) { *result = std::move(reply); });
  while (!*result) {
    check(interrupted);
    transport.wait(kSlice);
  }
  return **std::move(result);
}

void sleep_unless(Clock& clock, std::chrono::nanoseconds length,
                  const std::function<bool()>& interrupted) {
  for (; length.count() > 0; length -= kSlice) {
    check(interrupted);
    clock.sleep(std::min<std::chrono::nanoseconds>(length, kSlice));
  }
}

Ask patient_asker(Transport& transport, const Endpoint& endpoint, Clock& clock, Backoff backoff,
                  int attempts, std::function<bool()> interrupted,
                  std::function<void(const Failure&, int attempt)> asked_again) {
  return [&transport, &endpoint, &clock, backoff, attempts, interrupted = std::move(interrupted),
          asked_again = std::move(asked_again)](const HttpRequest& request) mutable {
    for (int attempt = 1;; ++attempt) {
      HttpReply reply = exchange_unless(transport, endpoint, request, interrupted);
      const std::optional<Failure> failure = transport_failure(reply);
      if (attempt >= attempts || !worth_patience(failure, reply, attempt)) return reply;
      if (asked_again) asked_again(*failure, attempt);
      sleep_unless(clock, backoff.delay(attempt, reply, clock), interrupted);
    }
  };
}

}  // namespace preval
