#include "backend/pace.h"

#include <algorithm>
#include <cmath>

namespace preval {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr double kAtOnce = 0.1;  // seconds' worth that may be used without a pause
constexpr double kMinute = 60, kSecond = 1;

nanoseconds in_nanoseconds(double seconds) {
  return nanoseconds(static_cast<std::int64_t>(std::ceil(seconds * 1e9)));
}

}  // namespace

/// Full at the start and filling for a whole window, a bucket gives what it holds and what comes
/// in: both together are the amount.
Bucket::Bucket(double amount, double window_s)
    : most_(std::max(amount / window_s * kAtOnce, 1.0)),
      per_second_(std::max(amount - most_, amount / 2) / window_s),
      level_(most_) {}

double Bucket::level_at(nanoseconds now) const {
  if (!begun_) return most_;
  return std::min(most_,
                  level_ + std::chrono::duration<double>(now - since_).count() * per_second_);
}

nanoseconds Bucket::ready(double use) const {
  const double wanted = std::min(use, most_);
  if (!begun_ || level_ >= wanted) return since_;
  return since_ + in_nanoseconds((wanted - level_) / per_second_);
}

void Bucket::take(double use, nanoseconds now) {
  level_ = level_at(now) - use;
  since_ = now;
  begun_ = true;
}

PacedTransport::PacedTransport(std::unique_ptr<Transport> inner, Clock& clock,
                               const RateLimits& limits)
    : inner_(std::move(inner)), clock_(clock) {
  if (limits.requests_per_minute) requests_.emplace(*limits.requests_per_minute, kMinute);
  if (limits.tokens_per_second) tokens_.emplace(*limits.tokens_per_second, kSecond);
}

nanoseconds PacedTransport::ready(const HttpRequest& request) const {
  nanoseconds when{0};
  if (requests_) when = std::max(when, requests_->ready(1));
  if (tokens_ && request.tokens > 0) {
    when = std::max(when, tokens_->ready(static_cast<double>(request.tokens)));
  }
  return when;
}

void PacedTransport::send_what_is_due() {
  while (!waiting_.empty()) {
    const nanoseconds now = clock_.monotonic();
    Waiting& first = waiting_.front();
    if (ready(first.request) > now) return;
    if (requests_) requests_->take(1, now);
    if (tokens_ && first.request.tokens > 0) {
      tokens_->take(static_cast<double>(first.request.tokens), now);
    }
    Waiting due = std::move(first);
    waiting_.pop_front();
    inner_->start(due.endpoint, std::move(due.request), std::move(due.done));
  }
}

void PacedTransport::start(const Endpoint& endpoint, HttpRequest request, Done done) {
  waiting_.push_back({endpoint, std::move(request), std::move(done)});
  send_what_is_due();
}

void PacedTransport::wait(milliseconds at_most) {
  send_what_is_due();
  if (!waiting_.empty()) {
    const nanoseconds until_next = ready(waiting_.front().request) - clock_.monotonic();
    at_most = std::clamp(std::chrono::ceil<milliseconds>(until_next), milliseconds(1), at_most);
  }
  if (inner_->in_flight() > 0) {
    inner_->wait(at_most);
  } else if (!waiting_.empty()) {
    clock_.sleep(at_most);
  }
  send_what_is_due();
}

}  // namespace preval
