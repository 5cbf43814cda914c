#include "suite/manifest.h"

#include <fmt/format.h>

#include <numeric>

#include "plan/reader.h"

namespace preval {
namespace {

Manifest read_manifest(ObjectReader& in) {
  Manifest manifest;
  manifest.dataset_sha256 = in.digest("dataset_sha256");
  if (in.has("source_sha256")) manifest.source_sha256 = in.digest("source_sha256");
  manifest.count = in.integer("count", at_least_one);
  manifest.families = in.integer("families", at_least_one);
  if (in.has("labels")) manifest.labels = in.counts("labels");
  manifest.license = in.text("license");
  manifest.source = in.text_or("source", "");
  // Published manifests also say how the selection was made; nothing here depends on it.
  in.ignore(
      {"source_sha256", "limit", "converted", "skipped", "dropped_over_length", "manifest_path"});
  in.finish();
  const int labelled =
      std::accumulate(manifest.labels.begin(), manifest.labels.end(), 0,
                      [](int sum, const auto& label) { return sum + label.second; });
  if (!manifest.labels.empty() && labelled != manifest.count) {
    in.fail("labels", fmt::format("they add up to {}, count is {}", labelled, manifest.count));
  }
  return manifest;
}

}  // namespace

std::map<std::string, Manifest> parse_manifests(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  ObjectReader in(json, where);
  std::map<std::string, Manifest> manifests;
  in.each([&](const std::string& subset, ObjectReader& item) {
    manifests[subset] = read_manifest(item);
  });
  return manifests;
}

std::vector<PlanDrift> check_manifests(Files& files, const OpenPlan& plan) {
  std::vector<PlanDrift> drifts;
  const auto compare = [&](const std::string& field, const auto& registered, const auto& found) {
    if (registered != found) {
      drifts.push_back({field, fmt::format("{}", registered), fmt::format("{}", found)});
    }
  };
  for (std::size_t g = 0; g < plan.effective.datasets.size(); ++g) {
    const DatasetGroup& group = plan.effective.datasets[g];
    const auto path = plan.resolve(group.manifest);
    if (!files.exists(path)) continue;
    const auto manifests = parse_manifests(files.read(path), path.string());
    for (std::size_t s = 0; s < group.subsets.size(); ++s) {
      const Subset& subset = group.subsets[s];
      const std::string pointer = fmt::format("/datasets/{}/subsets/{}", g, s);
      const auto manifest = manifests.find(subset.id);
      if (manifest == manifests.end()) {
        drifts.push_back({pointer + "/id", subset.id,
                          fmt::format("no such subset in {}", group.manifest.generic_string())});
        continue;
      }
      compare(pointer + "/sha256", subset.sha256, manifest->second.dataset_sha256);
      compare(pointer + "/records", subset.records, manifest->second.count);
      compare(pointer + "/families", subset.families, manifest->second.families);
    }
  }
  return drifts;
}

}  // namespace preval
