#include "base/clock.h"

#include <fmt/format.h>

#include <thread>

namespace preval {

std::chrono::system_clock::time_point SystemClock::now() {
  return std::chrono::system_clock::now();
}

std::chrono::nanoseconds SystemClock::monotonic() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

void SystemClock::sleep(std::chrono::nanoseconds duration) {
  std::this_thread::sleep_for(duration);
}

std::string utc_text(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(seconds - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

}  // namespace preval
