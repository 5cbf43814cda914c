#pragma once
// A plan that uses every key, with the files that it names, for tests to take apart.
#include <string>

#include "base/json.h"
#include "base/sha256.h"
#include "memory_files.h"

namespace preval::test {

inline const std::string kDigest(64, 'a');

inline Json example_plan() {
  Json plan = Json::parse(R"({
    "preval_plan": 1, "name": "example", "version": "1.0.0", "description": "d", "authors": ["A", "B"],
    "hypotheses": [
      {"id": "H1", "statement": "s", "metric": "agreement", "kind": "bound", "arms": ["a", "b"],
       "dataset": "suite", "at_least": 0.9, "confirmatory": true},
      {"id": "H2", "statement": "s", "metric": "accuracy", "kind": "equivalence", "arms": ["a", "b"],
       "dataset": "suite", "subsets": ["boolq"], "confirmatory": true},
      {"id": "H3", "statement": "s", "metric": "ece10", "kind": "difference", "arms": ["c"],
       "dataset": "suite", "direction": "greater", "confirmatory": false},
      {"id": "H4", "statement": "s", "metric": "brier", "kind": "bound", "arms": ["c"],
       "dataset": "own", "at_most": 0.5, "confirmatory": false}],
    "datasets": [
      {"id": "suite", "title": "Suite", "scoring": "suite", "data": "../data", "manifest": "manifest.json",
       "manifest_sha256": "", "variants": ["none", "reversed"], "smoke": {"records": 5, "concurrency": 2},
       "latency": {"records": 100},
       "subsets": [{"id": "boolq", "type": "noul", "records": 3, "families": 2, "sha256": ""},
                   {"id": "massive", "type": "choice", "records": 2, "families": 2, "sha256": ""}]},
      {"id": "own", "title": "Own", "scoring": "own", "data": "own", "manifest": "manifest.json",
       "manifest_sha256": "",
       "subsets": [{"id": "stars", "type": "score", "records": 1, "families": 1, "sha256": ""}]}],
    "prompt": {"file": "prompts/p.json", "sha256": "", "reasoning": true, "state": "utf-8"},
    "checkpoints": [
      {"id": "small", "name": "Small", "revision": "r1", "weights_dtype": "Q4_1", "license": "MIT",
       "template": "none", "terms": {"id": "t", "url": "https://example.org/terms"},
       "files": [{"name": "small.gguf", "sha256": "", "bytes": 100}, {"name": "more.gguf", "sha256": "", "bytes": 23}]},
      {"id": "hosted", "name": "Hosted", "revision": "r2", "weights_dtype": "unknown", "license": "none", "files": []}],
    "backends": [
      {"id": "exact", "kind": "llamacpp", "read": "exact", "raw_probs": 32,
       "server": {"command": ["{root}/serve", "--port", "{port}", "-m", "{checkpoint}"], "version_command": ["v"]},
       "kv_cache": "f16", "context": 4096, "slots": 2, "threads": 3, "concurrency": 4,
       "timeouts": {"connect_s": 1, "first_byte_s": 2.5, "total_s": 3}, "attempts": 5, "breaker": 6,
       "price": {"usd_per_hour": 2.97, "usd_per_million_input_tokens": 0.042}},
      {"id": "top32", "kind": "vllm", "read": "top-k", "k": 32, "url": "http://host:1", "key_env": "KEY", "model": "m"},
      {"id": "made-up", "kind": "simulated", "read": "top-k", "k": 3,
       "simulation": {"accuracy": 0.5, "sharpness": 1.5, "missing": 0.25, "seed": 7}}],
    "arms": [
      {"id": "a", "checkpoint": "small", "backend": "exact", "confirmatory": true, "fallback_group": "g", "boot_limit_s": 90},
      {"id": "b", "checkpoint": "small", "backend": "top32", "confirmatory": true},
      {"id": "c", "checkpoint": "hosted", "backend": "made-up", "confirmatory": false}],
    "repeats": 2,
    "calibration": {"suite_bins": 5, "task_bins": 6, "split_seed": 9, "splits": 3, "labels": 4},
    "margins": {"accuracy": 0.03}, "budget": {"usd": 1.5, "hours": 2},
    "published": {"file": "published.json", "sha256": ""}
  })");
  plan["datasets"][0]["manifest_sha256"] = plan["datasets"][1]["manifest_sha256"] = kDigest;
  for (Json& group : plan["datasets"]) {
    for (Json& subset : group["subsets"]) subset["sha256"] = kDigest;
  }
  for (Json& file : plan["checkpoints"][0]["files"]) file["sha256"] = kDigest;
  plan["prompt"]["sha256"] = plan["published"]["sha256"] = kDigest;
  return plan;
}

/// Records whose digests, counts and families the plan of example_study() registers.
inline const std::string kBoolq =
    R"({"id":"q1","family":"f1","input":{"state":"It rains.","questions":{"decision":{"type":"noul","instructions":"Wet?","criteria":{"false":"","true":"It is wet."}}}},"reference":{"target":true}})"
    "\n"
    R"({"id":"q2","family":"f1","input":{"state":"Sun.","questions":{"decision":{"type":"noul","instructions":"Wet?","criteria":{"false":"","true":"It is wet."}}}},"reference":{"target":false}})"
    "\n"
    R"({"id":"q3","family":"f2","input":{"state":{"text":"Fog."},"questions":{"decision":{"type":"noul","instructions":"Wet?","criteria":{"false":null,"true":null}}}},"reference":{"target":true}})"
    "\n";
inline const std::string kMassive =
    R"({"id":"m1","family":"m1","input":{"state":"wake me","questions":{"decision":{"type":"choice","instructions":"Who?","criteria":{"play":null,"alarm":"Alarms"}}}},"reference":{"target":"alarm"}})"
    "\n"
    R"({"id":"m2","family":"m2","input":{"state":"a song","questions":{"decision":{"type":"choice","instructions":"Who?","criteria":{"play":null,"alarm":"Alarms"}}}},"reference":{"target":"play"}})"
    "\n";
inline const std::string kStars =
    R"({"id":"s1","family":"s","input":{"state":"fine","questions":{"decision":{"type":"score","instructions":"Stars?","criteria":["none","one","two"]}}},"reference":{"target":2}})"
    "\n";

/// The example plan at study/plan.json with everything it names, in memory, all digests right.
inline Json example_study(MemoryFiles& files) {
  Json plan = example_plan();
  Json manifest = Json::object();
  const auto register_subset = [&](Json& subset, const std::string& path,
                                   const std::string& bytes) {
    files.content[path] = bytes;
    subset["sha256"] = sha256_hex(bytes);
    manifest[subset["id"].get<std::string>()] = {{"dataset_sha256", subset["sha256"]},
                                                 {"count", subset["records"]},
                                                 {"families", subset["families"]},
                                                 {"labels", {{"any", subset["records"]}}},
                                                 {"license", "CC0"},
                                                 {"source", "own"}};
  };
  register_subset(plan["datasets"][0]["subsets"][0], "data/boolq/all.jsonl", kBoolq);
  register_subset(plan["datasets"][0]["subsets"][1], "data/massive/all.jsonl", kMassive);
  register_subset(plan["datasets"][1]["subsets"][0], "study/own/stars/all.jsonl", kStars);
  files.content["study/manifest.json"] = manifest.dump();
  files.content["study/prompts/p.json"] = "wording";
  files.content["study/published.json"] = "figures";
  for (Json& group : plan["datasets"]) {
    group["manifest_sha256"] = sha256_hex(files.content["study/manifest.json"]);
  }
  plan["prompt"]["sha256"] = sha256_hex("wording");
  plan["published"]["sha256"] = sha256_hex("figures");
  files.content["study/plan.json"] = plan.dump();
  return plan;
}

}  // namespace preval::test
