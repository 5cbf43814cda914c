#pragma once
// Counts what comes back for one arm, over all its passes, and tells the listener.
#include <cstdint>
#include <deque>
#include <vector>

#include "run/budget.h"
#include "run/events.h"
#include "run/suite_index.h"

namespace preval {

/// Reads of one subset, what is stored already included in both.
struct SubsetCount {
  std::int64_t total = 0, done = 0;
};

class Tally {
 public:
  /// `counts`: per subset of `subsets`. `budget` may be null.
  Tally(RunEvents& events, Clock& clock, const std::string& arm,
        const std::vector<SubsetIndex>& subsets, std::vector<SubsetCount> counts,
        const Budget* budget);

  void answered(std::size_t subset, double latency_ms);
  void gave_up(std::size_t subset);
  void retried() { ++progress_.retries; }

 private:
  void finished(std::size_t subset);

  RunEvents& events_;
  Clock& clock_;
  const std::vector<SubsetIndex>& subsets_;
  std::vector<SubsetCount> counts_;
  std::vector<std::int64_t> given_up_;  // per subset
  const Budget* budget_;
  std::chrono::nanoseconds start_;
  Progress progress_;
  std::deque<double> latencies_;
};

}  // namespace preval
