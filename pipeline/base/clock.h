#pragma once
// The clock seam. Everything that asks for the time or waits does it through a Clock, so that tests
// decide what time it is and never sleep.
#include <chrono>
#include <string>
#include <string_view>

namespace preval {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Wall time, for stamps that people read.
  virtual std::chrono::system_clock::time_point now() = 0;
  /// Monotonic time since an arbitrary start, for durations and deadlines.
  virtual std::chrono::nanoseconds monotonic() = 0;
  /// Waits at least this long.
  virtual void sleep(std::chrono::nanoseconds duration) = 0;
};

/// The machine's own clock.
class SystemClock final : public Clock {
 public:
  std::chrono::system_clock::time_point now() override;
  std::chrono::nanoseconds monotonic() override;
  void sleep(std::chrono::nanoseconds duration) override;
};

/// A clock that tests wind by hand: sleeping advances it at once.
class ManualClock final : public Clock {
 public:
  std::chrono::system_clock::time_point now() override { return start_ + elapsed(); }
  std::chrono::nanoseconds monotonic() override { return elapsed_; }
  void sleep(std::chrono::nanoseconds duration) override { elapsed_ += duration; }

 private:
  std::chrono::system_clock::duration elapsed() const {
    return std::chrono::duration_cast<std::chrono::system_clock::duration>(elapsed_);
  }
  std::chrono::system_clock::time_point start_{std::chrono::seconds{1'700'000'000}};
  std::chrono::nanoseconds elapsed_{0};
};

/// "2026-09-24T12:34:56Z": UTC, whole seconds.
std::string utc_text(std::chrono::system_clock::time_point time);
/// Whether a text is one that utc_text() could have written.
bool is_utc_text(std::string_view text);

}  // namespace preval
