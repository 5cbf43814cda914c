#pragma once
// A stage of a run: its start, its end and how it went, in the store and for whoever listens.
#include <string>

#include "run/pipeline.h"

namespace preval {

/// A stage that lasts as long as the object. Unless done() was called it ends as failed, or as
/// interrupted when the user asked to stop.
class StageScope {
 public:
  /// `arm` is empty for stages of the whole run.
  StageScope(const RunSeams& seams, Store& store, std::string arm, std::string name);
  ~StageScope();
  StageScope(const StageScope&) = delete;
  StageScope& operator=(const StageScope&) = delete;

  void done(const std::string& detail);

 private:
  void end(std::string_view outcome, std::string_view detail);

  const RunSeams& seams_;
  Store& store_;
  std::string arm_, name_;
  std::chrono::nanoseconds start_;
  std::int64_t id_;
  bool ended_ = false;
};

}  // namespace preval
