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

bool is_utc_text(std::string_view text) {
  constexpr std::string_view form = "0000-00-00T00:00:00Z";
  if (text.size() != form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == '0' ? !digit : text[i] != form[i]) return false;
  }
  const auto part = [&](std::size_t at, std::size_t length) {
    unsigned value = 0;
    for (std::size_t i = at; i < at + length; ++i) value = value * 10 + (text[i] - '0');
    return value;
  };
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(part(0, 4))),
                                         std::chrono::month(part(5, 2)),
                                         std::chrono::day(part(8, 2))};
  return date.ok() && part(11, 2) < 24 && part(14, 2) < 60 && part(17, 2) < 60;
}

}  // namespace preval
