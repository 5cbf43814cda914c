#include "run/json_events.h"

namespace preval {

namespace {

constexpr std::chrono::seconds kProgressEvery{1};

Json arm_or_null(std::string_view arm) { return arm.empty() ? Json() : Json(arm); }

}  // namespace

void JsonEvents::write(std::string_view event, const Json& fields) {
  if (path_.empty()) return;
  Json line = {{"at", utc_text(clock_.now())}, {"event", event}};
  line.update(fields);
  // Servers and files may say anything; a line must stay one line of JSON.
  files_.append(path_, line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void JsonEvents::stage_started(std::string_view arm, std::string_view stage) {
  write("stage_started", {{"arm", arm_or_null(arm)}, {"stage", stage}});
}

void JsonEvents::stage_ended(std::string_view arm, std::string_view stage, std::string_view outcome,
                             double seconds, std::string_view detail) {
  write("stage_ended", {{"arm", arm_or_null(arm)},
                        {"stage", stage},
                        {"outcome", outcome},
                        {"seconds", seconds},
                        {"detail", detail}});
}

void JsonEvents::progressed(const Progress& progress) {
  const auto now = clock_.monotonic();
  if (progress.arm == last_arm_ && now - last_ < kProgressEvery) return;
  last_arm_ = progress.arm;
  last_ = now;
  write("progress", {{"arm", progress.arm},
                     {"subset", progress.subset},
                     {"done", progress.done},
                     {"total", progress.total},
                     {"asked", progress.asked},
                     {"failed", progress.failed},
                     {"retries", progress.retries},
                     {"seconds", progress.seconds},
                     {"median_ms", progress.median_ms},
                     {"usd", progress.usd ? Json(*progress.usd) : Json()}});
}

void JsonEvents::subset_done(const Progress& progress, std::int64_t subset_done,
                             std::int64_t subset_total) {
  write("subset_done", {{"arm", progress.arm},
                        {"subset", progress.subset},
                        {"done", subset_done},
                        {"total", subset_total}});
}

void JsonEvents::notice(std::string_view text) { write("notice", {{"text", text}}); }

void JsonEvents::detail(std::string_view text) { write("detail", {{"text", text}}); }

void JsonEvents::ended(const std::string& outcome, int exit_code, std::int64_t missing_reads) {
  write("run_ended",
        {{"outcome", outcome}, {"exit_code", exit_code}, {"missing_reads", missing_reads}});
}

void EventTee::stage_started(std::string_view arm, std::string_view stage) {
  for (RunEvents* each : listeners_) each->stage_started(arm, stage);
}

void EventTee::stage_ended(std::string_view arm, std::string_view stage, std::string_view outcome,
                           double seconds, std::string_view detail) {
  for (RunEvents* each : listeners_) each->stage_ended(arm, stage, outcome, seconds, detail);
}

void EventTee::progressed(const Progress& progress) {
  for (RunEvents* each : listeners_) each->progressed(progress);
}

void EventTee::subset_done(const Progress& progress, std::int64_t subset_done,
                           std::int64_t subset_total) {
  for (RunEvents* each : listeners_) each->subset_done(progress, subset_done, subset_total);
}

void EventTee::notice(std::string_view text) {
  for (RunEvents* each : listeners_) each->notice(text);
}

void EventTee::detail(std::string_view text) {
  for (RunEvents* each : listeners_) each->detail(text);
}

}  // namespace preval
