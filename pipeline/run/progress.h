#pragma once
// The one place that knows what a terminal shows while a run goes on: a live line on a terminal,
// otherwise one line per tenth of an arm or half a minute.
#include <iosfwd>
#include <string>

#include "base/clock.h"
#include "run/events.h"

namespace preval {

class ProgressPrinter final : public RunEvents {
 public:
  struct Look {
    bool terminal = false;  ///< a live line that is drawn over
    bool color = false;
    bool quiet = false;      ///< notices only
    bool verbose = false;    ///< details as well
    int width = 80;          ///< columns
    bool simulated = false;  ///< every line says SIMULATED
  };
  ProgressPrinter(std::ostream& out, Clock& clock, Look look)
      : out_(out), clock_(clock), look_(look) {}

  void stage_started(std::string_view arm, std::string_view stage) override;
  void stage_ended(std::string_view arm, std::string_view stage, std::string_view outcome,
                   double seconds, std::string_view detail) override;
  void progressed(const Progress& progress) override;
  void subset_done(const Progress& progress, std::int64_t subset_done,
                   std::int64_t subset_total) override;
  void notice(std::string_view text) override;
  void detail(std::string_view text) override;

 private:
  void line(const std::string& text);
  void live(const std::string& text);

  std::ostream& out_;
  Clock& clock_;
  Look look_;
  bool live_shown_ = false;
  std::chrono::nanoseconds last_{0};
  std::int64_t last_tenth_ = 0;
  std::string last_arm_;
};

/// "812/3,880 · 141/s · p50 31 ms · retries 3 · ETA 0:22"
std::string progress_text(const Progress& progress);

}  // namespace preval
