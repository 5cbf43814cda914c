#include "run/progress.h"

#include <fmt/format.h>

#include <ostream>

#include "base/text.h"

namespace preval {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLiveEvery{100};
constexpr std::chrono::seconds kPlainEvery{30}, kPlainAtMost{1};
constexpr std::string_view kEraseLine = "\r\x1b[2K";

}  // namespace

std::string progress_text(const Progress& progress) {
  const double rate =
      progress.seconds > 0 ? static_cast<double>(progress.asked) / progress.seconds : 0;
  std::string text = fmt::format("{}/{} · {:.1f}/s · p50 {} · retries {}", grouped(progress.done),
                                 grouped(progress.total), rate,
                                 human_duration(progress.median_ms / 1000), progress.retries);
  if (progress.failed > 0) text += fmt::format(" · failed {}", grouped(progress.failed));
  // Money is worth a word where it is spent, or where it was said how much may be.
  if (progress.usd && (*progress.usd > 0 || progress.cap_usd)) {
    text += fmt::format(" · ${:.2f}", *progress.usd);
    if (progress.cap_usd) text += fmt::format(" of ${:.2f}", *progress.cap_usd);
  }
  const std::int64_t left = progress.total - progress.done - progress.failed;
  if (rate > 0 && left > 0) {
    const auto eta = static_cast<std::int64_t>(static_cast<double>(left) / rate);
    text += fmt::format(" · ETA {}:{:02}", eta / 60, eta % 60);
  }
  return text;
}

void ProgressPrinter::line(const std::string& text) {
  if (live_shown_) out_ << kEraseLine;
  live_shown_ = false;
  out_ << (look_.simulated ? "SIMULATED " : "") << text << '\n' << std::flush;
}

void ProgressPrinter::live(const std::string& text) {
  std::string shown = (look_.simulated ? "SIMULATED " : "") + text;
  // A line that wraps cannot be drawn over: cut it, at a character's start.
  while (display_width(shown) >= static_cast<std::size_t>(look_.width) && !shown.empty()) {
    do shown.pop_back();
    while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0xC0U) == 0x80U);
  }
  out_ << kEraseLine << shown << std::flush;
  live_shown_ = true;
}

void ProgressPrinter::stage_started(std::string_view arm, std::string_view stage) {
  last_tenth_ = 0;
  last_arm_ = arm;
  last_ = clock_.monotonic();
  if (look_.terminal && !look_.quiet)
    live(fmt::format("{} {} …", arm.empty() ? "run" : arm, stage));
}

void ProgressPrinter::stage_ended(std::string_view arm, std::string_view stage,
                                  std::string_view outcome, double seconds,
                                  std::string_view detail) {
  if (look_.quiet) return;
  line(fmt::format("{:<20} {:<10} {:>8}  {}{}{}", arm.empty() ? "run" : arm, stage,
                   human_duration(seconds), outcome == "ok" ? "" : outcome,
                   outcome == "ok" || detail.empty() ? "" : ": ", detail));
}

void ProgressPrinter::progressed(const Progress& progress) {
  if (look_.quiet) return;
  const auto now = clock_.monotonic();
  if (look_.terminal) {
    if (now - last_ < kLiveEvery) return;
    last_ = now;
    live(fmt::format("{} {} {}", progress.arm, progress.subset, progress_text(progress)));
    return;
  }
  const std::int64_t tenth = progress.total > 0 ? progress.done * 10 / progress.total : 10;
  const auto since = now - last_;
  // A tenth of few records is soon done: a line for each would say nothing.
  if (since < (tenth == last_tenth_ ? kPlainEvery : kPlainAtMost)) return;
  last_tenth_ = tenth;
  last_ = now;
  line(fmt::format("{:<20} {}", progress.arm, progress_text(progress)));
}

void ProgressPrinter::subset_done(const Progress& progress, std::int64_t subset_done,
                                  std::int64_t subset_total) {
  if (look_.quiet || !look_.terminal) return;
  line(
      fmt::format("{:<20} {:<22} {}/{}", progress.arm, progress.subset, subset_done, subset_total));
}

void ProgressPrinter::notice(std::string_view text) { line(printable(text)); }

void ProgressPrinter::detail(std::string_view text) {
  if (look_.verbose) line("  " + printable(text));
}

}  // namespace preval
