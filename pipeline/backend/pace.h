#pragma once
// Rate limits: what a plan says that the operator of a server allows. A request that comes too
// early waits here, before it is sent, so that nothing else has to know of rates.
#include <deque>
#include <memory>

#include "backend/transport.h"
#include "base/clock.h"

namespace preval {

/// A token bucket, named after tokens of another kind: it holds what may be used at once, and fills
/// up as time goes by. What is used in any span of `window` seconds stays within `amount`; a single
/// use of more than fits into it is made when it is full, and paid back.
class Bucket {
 public:
  Bucket(double amount, double window_s);
  /// From when on (monotonic time) so much may be used.
  std::chrono::nanoseconds ready(double use) const;
  void take(double use, std::chrono::nanoseconds now);

 private:
  double level_at(std::chrono::nanoseconds now) const;

  double most_;        // what it holds when it is full
  double per_second_;  // how fast it fills
  double level_;       // at `since_`; below 0 where a large use is being paid back
  std::chrono::nanoseconds since_{0};
  bool begun_ = false;
};

/// Sends through `inner` as fast as the limits allow, in the order in which requests come.
/// HttpRequest::tokens is what counts against tokens per second.
class PacedTransport final : public Transport {
 public:
  PacedTransport(std::unique_ptr<Transport> inner, Clock& clock, const RateLimits& limits);

  void start(const Endpoint& endpoint, HttpRequest request, Done done) override;
  void wait(std::chrono::milliseconds at_most) override;
  std::size_t in_flight() const override { return inner_->in_flight() + waiting_.size(); }

 private:
  struct Waiting {
    Endpoint endpoint;
    HttpRequest request;
    Done done;
  };

  std::chrono::nanoseconds ready(const HttpRequest& request) const;
  void send_what_is_due();

  std::unique_ptr<Transport> inner_;
  Clock& clock_;
  std::optional<Bucket> requests_, tokens_;
  std::deque<Waiting> waiting_;
};

}  // namespace preval
