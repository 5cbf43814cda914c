// The plans of this repository are read as users' plans are, with every file that they name.
#include "base/file.h"
#include "catch.h"
#include "plan/lock.h"
#include "plan/published.h"
#include "suite/manifest.h"

using namespace preval;

TEST_CASE("the committed plans are valid and name files that are there") {
  SystemFiles files;
  for (const char* name : {"quickstart", "public-local"}) {
    INFO(name);
    const auto path =
        std::filesystem::path(PREVAL_SOURCE_DIR) / "prereg" / (std::string(name) + ".json");
    const OpenPlan plan = open_plan(files, path);
    CHECK(plan.effective.name == name);
    REQUIRE(plan.effective.datasets.size() == 1);
    CHECK(plan.effective.datasets[0].subsets.size() == 13);
    const auto drifts = check_lock(files, plan);
    INFO(describe(drifts));
    CHECK(drifts.empty());
    CHECK(check_manifests(files, plan).empty());
  }
}
