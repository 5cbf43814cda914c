// The plans of this repository are read as users' plans are, with every file that they name.
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/sha256.h"
#include "catch.h"
#include "plan/lock.h"
#include "plan/published.h"
#include "suite/manifest.h"

using namespace preval;

namespace {

/// Every plan that is committed. Plans of a user's own may stand beside them.
constexpr std::array kCommitted{"cross-engine", "public-local", "quickstart"};

}  // namespace

TEST_CASE("the committed plans are valid and name files that are there") {
  SystemFiles files;
  for (const char* name : kCommitted) {
    const auto path =
        std::filesystem::path(PREVAL_SOURCE_DIR) / "prereg" / fmt::format("{}.json", name);
    INFO(path.filename().string());
    const OpenPlan plan = open_plan(files, path);
    CHECK(plan.effective.name == path.stem().string());
    REQUIRE(plan.effective.datasets.size() == 1);
    CHECK(plan.effective.datasets[0].subsets.size() == 13);
    CHECK(files.exists(lock_path(path)));
    const auto drifts = check_lock(files, plan);
    INFO(describe(drifts));
    CHECK(drifts.empty());
    CHECK(check_manifests(files, plan).empty());
    if (const auto& published = plan.effective.published) {
      const std::string text = files.read(plan.resolve(published->file));
      CHECK(sha256_hex(text) == published->sha256);
      CHECK_FALSE(parse_published(text, published->file.string()).subsets.empty());
    }
  }
}
