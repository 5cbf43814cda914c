#pragma once
// What happens during a run, told to whoever listens. The runner knows nothing of terminals; the
// one printer that does is progress.h.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace preval {

/// How far the reads of one arm have come.
struct Progress {
  std::string arm, subset;
  std::int64_t done = 0;    ///< answers of the arm, those stored before included
  std::int64_t total = 0;   ///< reads the arm is asked for in this run
  std::int64_t asked = 0;   ///< answers and final failures of this run
  std::int64_t failed = 0;  ///< given up in this run
  std::int64_t retries = 0;
  double seconds = 0;                  ///< since the arm's first read of this run
  double median_ms = 0;                ///< latency of the last answers
  std::optional<double> usd, cap_usd;  ///< spent in this run, and --max-cost; none: not known
};

class RunEvents {
 public:
  virtual ~RunEvents() = default;
  /// `arm` is empty for stages of the whole run.
  virtual void stage_started(std::string_view arm, std::string_view stage) = 0;
  virtual void stage_ended(std::string_view arm, std::string_view stage, std::string_view outcome,
                           double seconds, std::string_view detail) = 0;
  virtual void progressed(const Progress& progress) = 0;
  virtual void subset_done(const Progress& progress, std::int64_t subset_done,
                           std::int64_t subset_total) = 0;
  /// Something a person should read now: a dropped subset, an arm that is not run.
  virtual void notice(std::string_view text) = 0;
  /// Something for those who asked for more: what preflight found, an attempt that failed.
  virtual void detail(std::string_view text) = 0;
};

/// How often the user has asked to stop: 0 not at all, 1 finish what is in flight, 2 stop now.
class Interrupt {
 public:
  virtual ~Interrupt() = default;
  virtual int level() const = 0;
};

}  // namespace preval
