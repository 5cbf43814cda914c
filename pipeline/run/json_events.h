#pragma once
// What happens during a run, for programs that watch it: one line of JSON per event, appended to a
// file (--json-events). Every line has "at" (UTC) and "event"; the fields of each event:
//
//   stage_started  arm (null: of the whole run), stage
//   stage_ended    arm, stage, outcome (ok | failed | interrupted), seconds, detail
//   progress       arm, subset, done, total, asked, failed, retries, seconds, median_ms,
//                  usd (spent in this run; null: a price is not known);
//                  at most one a second and arm
//   subset_done    arm, subset, done, total
//   notice         text
//   detail         text: what preflight found, an attempt that failed
//   run_ended      outcome, exit_code, missing_reads; the last line of a run that ended
#include <filesystem>
#include <initializer_list>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "run/events.h"

namespace preval {

class JsonEvents final : public RunEvents {
 public:
  /// Writes nothing when `path` is empty.
  JsonEvents(Files& files, Clock& clock, std::filesystem::path path)
      : files_(files), clock_(clock), path_(std::move(path)) {}

  void stage_started(std::string_view arm, std::string_view stage) override;
  void stage_ended(std::string_view arm, std::string_view stage, std::string_view outcome,
                   double seconds, std::string_view detail) override;
  void progressed(const Progress& progress) override;
  void subset_done(const Progress& progress, std::int64_t subset_done,
                   std::int64_t subset_total) override;
  void notice(std::string_view text) override;
  void detail(std::string_view text) override;
  void ended(const std::string& outcome, int exit_code, std::int64_t missing_reads);

 private:
  void write(std::string_view event, const Json& fields);

  Files& files_;
  Clock& clock_;
  std::filesystem::path path_;
  std::string last_arm_;
  std::chrono::nanoseconds last_{0};
};

/// Tells several listeners, in their order.
class EventTee final : public RunEvents {
 public:
  EventTee(std::initializer_list<RunEvents*> listeners) : listeners_(listeners) {}

  void stage_started(std::string_view arm, std::string_view stage) override;
  void stage_ended(std::string_view arm, std::string_view stage, std::string_view outcome,
                   double seconds, std::string_view detail) override;
  void progressed(const Progress& progress) override;
  void subset_done(const Progress& progress, std::int64_t subset_done,
                   std::int64_t subset_total) override;
  void notice(std::string_view text) override;
  void detail(std::string_view text) override;

 private:
  std::vector<RunEvents*> listeners_;
};

}  // namespace preval
