#pragma once
// Tests that need something this machine may lack say so and are counted as skipped, never as
// passed: scripts/test.sh counts the lines that this writes.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "catch.h"

namespace preval::test {

/// Records that the current test case was skipped. The caller returns right after.
inline void skip_test(const std::string& reason) {
  // Not by std::cerr, which reporters of Catch2 catch and put into their files.
  std::fputs(("SKIPPED " + reason + "\n").c_str(), stderr);
  SUCCEED("skipped: " + reason);
}

/// The folder of real data and golden vectors, when this machine has it.
inline std::optional<std::filesystem::path> shared_data() {
  const char* named = std::getenv("PREVAL_SHARED");
  std::filesystem::path folder = named != nullptr
                                     ? std::filesystem::path(named)
                                     : std::filesystem::path(PREVAL_SOURCE_DIR) / "../shared";
  folder /= "data";
  if (!std::filesystem::is_directory(folder)) return std::nullopt;
  return folder;
}

}  // namespace preval::test
