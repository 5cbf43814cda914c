#include "run/stage.h"

#include "base/error.h"

namespace preval {

StageScope::StageScope(const RunSeams& seams, Store& store, std::string arm, std::string name)
    : seams_(seams),
      store_(store),
      arm_(std::move(arm)),
      name_(std::move(name)),
      start_(seams.clock.monotonic()),
      id_(store.begin_stage(arm_, name_)) {
  seams_.events.stage_started(arm_, name_);
}

StageScope::~StageScope() {
  if (ended_) return;
  try {
    end(seams_.interrupt.level() > 0 ? "interrupted" : "failed", {});
  } catch (const Error&) {
    // The store cannot take the row; the error that ended the stage is already on its way up.
  }
}

void StageScope::done(const std::string& detail) { end("ok", detail); }

void StageScope::end(std::string_view outcome, std::string_view detail) {
  ended_ = true;
  const double seconds = std::chrono::duration<double>(seams_.clock.monotonic() - start_).count();
  store_.end_stage(id_, outcome, detail);
  seams_.events.stage_ended(arm_, name_, outcome, seconds, detail);
}

}  // namespace preval
