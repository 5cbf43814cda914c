// The plans of this repository are read as users' plans are, with every file that they name.
#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/sha256.h"
#include "catch.h"
#include "plan/lock.h"
#include "plan/published.h"
#include "suite/manifest.h"

using namespace preval;

namespace {

/// Every plan that is committed: what stands in prereg/ as JSON and is no lock.
std::vector<std::filesystem::path> committed_plans() {
  std::vector<std::filesystem::path> plans;
  const auto folder = std::filesystem::path(PREVAL_SOURCE_DIR) / "prereg";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name.ends_with(".json") && !name.ends_with(".lock.json")) {
      plans.push_back(entry.path());
    }
  }
  std::sort(plans.begin(), plans.end());
  return plans;
}

}  // namespace

TEST_CASE("the committed plans are valid and name files that are there") {
  SystemFiles files;
  const auto plans = committed_plans();
  // The listing itself must not come back empty-handed and pass.
  std::set<std::string> names;
  for (const auto& path : plans) names.insert(path.stem().string());
  for (const char* name : {"cross-engine", "public-local", "quickstart"}) {
    INFO(name);
    CHECK(names.contains(name));
  }
  for (const auto& path : plans) {
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
