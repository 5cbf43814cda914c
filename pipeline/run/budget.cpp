#include "run/budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace preval {

namespace {

constexpr std::int64_t kTemplateTokens = 512;  // what a chat template may put around a text
constexpr double kMillion = 1e6, kHour = 3600;

}  // namespace

bool has_price(const BackendSpec& backend) {
  return !backend.asks_server() || backend.usd_per_hour || backend.usd_per_million_input_tokens;
}

std::int64_t most_tokens(const Prompt& prompt) {
  return static_cast<std::int64_t>(prompt.bytes()) + kTemplateTokens;
}

void Budget::begin_arm(const BackendSpec& backend) {
  end_arm();
  backend_ = &backend;
  up_since_ = clock_.monotonic();
}

void Budget::end_arm() {
  if (backend_ == nullptr) return;
  const Usage arm = this->arm();
  seconds_ += arm.seconds;
  usd_ += arm.usd.value_or(0);
  all_known_ = all_known_ && arm.usd;
  backend_ = nullptr;
  calls_ = tokens_ = reserved_ = 0;
}

double Budget::arm_seconds() const {
  if (backend_ == nullptr) return 0;
  return std::chrono::duration<double>(clock_.monotonic() - up_since_).count();
}

double Budget::usd_of_tokens(std::int64_t tokens) const {
  if (backend_ == nullptr) return 0;
  return static_cast<double>(tokens) / kMillion *
         backend_->usd_per_million_input_tokens.value_or(0);
}

double Budget::usd_of_arm() const {
  const double servers = backend_ == nullptr ? 0 : backend_->replicas;
  const double per_hour = backend_ == nullptr ? 0 : backend_->usd_per_hour.value_or(0);
  return usd_of_tokens(tokens_) + servers * per_hour * arm_seconds() / kHour;
}

std::optional<std::string> Budget::reserve(std::int64_t tokens_at_most) {
  // What is in flight, this read with it, at its dearest.
  const double hourly = backend_ == nullptr ? 0 : backend_->usd_per_hour.value_or(0);
  const double open = usd_of_tokens(reserved_ + tokens_at_most) + hourly * slowest_s_ / kHour;
  const double now = usd_known() + open;
  const auto over = [](const std::optional<double>& cap, double value) {
    return cap && value > *cap;
  };
  std::string why;
  if (over(caps_.usd, now)) {
    why = fmt::format("--max-cost: ${:.4f} of ${:.4f} are spent, and the next read could pass it",
                      usd_known(), *caps_.usd);
  } else if (over(caps_.plan_usd, now + before_.usd.value_or(0)) && open > 0) {
    why = fmt::format(
        "the plan's budget: ${:.4f} of ${:.4f} are spent, and the next read could "
        "pass it",
        usd_known() + before_.usd.value_or(0), *caps_.plan_usd);
  } else if (over(caps_.plan_hours,
                  (before_.seconds + seconds_ + arm_seconds() + slowest_s_) / kHour)) {
    why = fmt::format("the plan's budget of {:.4g} hours is used up", *caps_.plan_hours);
  }
  if (why.empty()) {
    reserved_ += tokens_at_most;
    return std::nullopt;
  }
  reached_ = true;
  return why;
}

void Budget::settle(std::int64_t reserved, int calls, std::int64_t tokens, double ms) {
  reserved_ -= reserved;
  calls_ += calls;
  tokens_ += tokens * std::max(calls, 1);
  slowest_s_ = std::max(slowest_s_, ms / 1000);
}

Usage Budget::arm() const {
  Usage usage{calls_, tokens_, arm_seconds(), std::nullopt};
  if (backend_ != nullptr && has_price(*backend_)) usage.usd = usd_of_arm();
  return usage;
}

double Budget::usd_known() const { return usd_ + usd_of_arm(); }

std::optional<double> Budget::usd() const {
  const bool known = all_known_ && (backend_ == nullptr || has_price(*backend_));
  return known ? std::optional(usd_known()) : std::nullopt;
}

}  // namespace preval
