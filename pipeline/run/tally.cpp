#include "run/tally.h"

#include <algorithm>

namespace preval {

namespace {

constexpr std::size_t kLatencyWindow = 101;

}  // namespace

Tally::Tally(RunEvents& events, Clock& clock, const std::string& arm,
             const std::vector<SubsetIndex>& subsets, std::vector<SubsetCount> counts,
             const Budget* budget)
    : events_(events),
      clock_(clock),
      subsets_(subsets),
      counts_(std::move(counts)),
      given_up_(counts_.size()),
      budget_(budget),
      start_(clock.monotonic()) {
  progress_.arm = arm;
  for (const SubsetCount& count : counts_) {
    progress_.total += count.total;
    progress_.done += count.done;
  }
}

void Tally::answered(std::size_t subset, double latency_ms) {
  latencies_.push_back(latency_ms);
  if (latencies_.size() > kLatencyWindow) latencies_.pop_front();
  ++progress_.done;
  ++counts_[subset].done;
  finished(subset);
}

void Tally::gave_up(std::size_t subset) {
  ++progress_.failed;
  ++given_up_[subset];
  finished(subset);
}

void Tally::finished(std::size_t subset) {
  ++progress_.asked;
  progress_.subset = subsets_[subset].subset->id;
  progress_.seconds = std::chrono::duration<double>(clock_.monotonic() - start_).count();
  std::vector<double> sorted(latencies_.begin(), latencies_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  progress_.median_ms = sorted.empty() ? 0 : *middle;
  if (budget_ != nullptr) {
    progress_.usd = budget_->usd();
    progress_.cap_usd = budget_->cap_usd();
  }
  events_.progressed(progress_);
  const SubsetCount& count = counts_[subset];
  if (count.done + given_up_[subset] == count.total) {
    events_.subset_done(progress_, count.done, count.total);
  }
}

}  // namespace preval
