#include "plan/lock.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "plan/reader.h"

namespace preval {
namespace {

constexpr int kLockFormat = 1;
constexpr std::string_view kLockHint =
    "restore the lock from version control; a plan that has to change gets a new name and version, "
    "or a registered deviation";

/// A file's digest, or "(absent)".
std::string found_digest(Files& files, const std::filesystem::path& path) {
  return files.exists(path) ? sha256_file(files, path) : "(absent)";
}

std::vector<PlanDrift> changed_files(Files& files, const OpenPlan& plan) {
  std::vector<PlanDrift> drifts;
  for (const NamedFile& file : named_files(plan.effective)) {
    const std::string found = found_digest(files, plan.resolve(file.path));
    if (found != file.sha256) drifts.push_back({file.path.generic_string(), file.sha256, found});
  }
  return drifts;
}

bool unchanged_since_lock(const OpenPlan& plan) {
  return plan.lock && plan.lock->plan_sha256 == plan.sha256;
}

Json lock_json(const OpenPlan& plan, const std::string& locked_at, const std::string& tool,
               const std::string& git_commit) {
  Json named = Json::object();
  for (const NamedFile& file : named_files(plan.effective)) {
    named[file.path.generic_string()] = file.sha256;
  }
  Json json;
  json["preval_lock"] = kLockFormat;
  json["plan"] = {{"name", plan.effective.name}, {"sha256", plan.sha256}};
  json["files"] = std::move(named);
  json["locked_at"] = locked_at;
  json["tool"] = tool;
  json["git_commit"] = git_commit.empty() ? Json() : Json(git_commit);
  json["plan_json"] = plan.json;
  return json;
}

std::filesystem::path beside(const std::filesystem::path& plan, std::string_view ending) {
  std::filesystem::path path = plan;
  path.replace_extension();
  path += ending;
  return path;
}

}  // namespace

std::filesystem::path OpenPlan::resolve(const std::filesystem::path& relative) const {
  return (directory / relative).lexically_normal();
}

std::filesystem::path lock_path(const std::filesystem::path& plan) {
  return beside(plan, ".lock.json");
}

std::filesystem::path ledger_path(const std::filesystem::path& plan) {
  return beside(plan, ".deviations.jsonl");
}

std::vector<NamedFile> named_files(const Plan& plan) {
  std::vector<NamedFile> files{{"prompt", plan.prompt.file, plan.prompt.sha256}};
  const auto add = [&](std::string what, const std::filesystem::path& path,
                       const std::string& sha256) {
    for (const NamedFile& file : files) {
      if (file.path == path && file.sha256 == sha256) return;
    }
    files.push_back({std::move(what), path, sha256});
  };
  for (const DatasetGroup& group : plan.datasets)
    add("manifest", group.manifest, group.manifest_sha256);
  if (plan.published) add("published", plan.published->file, plan.published->sha256);
  for (const BackendSpec& backend : plan.backends) {
    if (backend.transcript) add("transcript", backend.transcript->file, backend.transcript->sha256);
  }
  return files;
}

Lock parse_lock(std::string_view text, const std::string& where) {
  Json json;
  try {
    json = parse_json(text, where);
  } catch (const Error& error) {
    // A lock is written by preval alone, so an unreadable one was edited or torn.
    throw Error(ErrorKind::drift, error.what(), std::string(kLockHint));
  }
  ObjectReader in(json, where, "", ErrorKind::drift);
  Lock lock;
  const int format = in.integer("preval_lock", not_negative);
  if (in.has("preval_lock") && format != kLockFormat) {
    throw Error(ErrorKind::usage, fmt::format("{}: lock format {} is not known", where, format),
                fmt::format("this preval reads lock format {}", kLockFormat));
  }
  std::string name;
  in.object("plan", [&](ObjectReader& plan) {
    name = plan.text("name");
    lock.plan_sha256 = plan.digest("sha256");
  });
  in.object("files", [&](ObjectReader& named) {
    for (const auto& item : json["files"].items())
      lock.files[item.key()] = named.digest(item.key());
  });
  lock.locked_at = in.text("locked_at");
  lock.tool_version = in.text("tool");
  lock.git_commit = in.text_or("git_commit", "");
  lock.plan = in.value("plan_json");
  in.finish();
  const std::string found = canonical_sha256(lock.plan);
  if (found != lock.plan_sha256) {
    throw Error(ErrorKind::drift,
                fmt::format("{}: the lock was edited: /plan/sha256 says {}, /plan_json has {}",
                            where, lock.plan_sha256, found),
                std::string(kLockHint));
  }
  const Plan plan = parse_plan(lock.plan, where + ", /plan_json");
  const auto edited = [&](const std::string& what) {
    throw Error(ErrorKind::drift, fmt::format("{}: the lock was edited: {}", where, what),
                std::string(kLockHint));
  };
  if (name != plan.name) {
    edited(fmt::format("/plan/name says {}, /plan_json has {}", name, plan.name));
  }
  if (!is_utc_text(lock.locked_at)) {
    edited(fmt::format("/locked_at is no UTC time: {}", lock.locked_at));
  }
  const std::vector<NamedFile> named = named_files(plan);
  for (const auto& [path, sha256] : lock.files) {
    // clang 14 captures no structured binding.
    const bool known = std::any_of(
        named.begin(), named.end(),
        [&listed = path](const NamedFile& file) { return file.path.generic_string() == listed; });
    if (!known) edited(fmt::format("/files names {}, the plan does not", path));
  }
  for (const NamedFile& file : named) {
    const auto entry = lock.files.find(file.path.generic_string());
    const std::string listed = entry == lock.files.end() ? "nothing" : entry->second;
    if (listed == file.sha256) continue;
    edited(fmt::format("/files says {} for {}, the plan says {}", listed,
                       file.path.generic_string(), file.sha256));
  }
  return lock;
}

OpenPlan open_plan(Files& files, const std::filesystem::path& path) {
  OpenPlan plan;
  plan.path = path;
  plan.directory = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  plan.json = parse_json(files.read(path), path.string());
  plan.effective = parse_plan(plan.json, path.string());
  plan.sha256 = canonical_sha256(plan.json);
  plan.effective_json = plan.json;

  const auto lock = lock_path(path);
  const auto ledger = ledger_path(path);
  if (files.exists(lock)) plan.lock = parse_lock(files.read(lock), lock.string());
  if (files.exists(ledger)) {
    if (!plan.lock) {
      throw Error(ErrorKind::drift,
                  fmt::format("{}: deviations of a plan that has no lock", ledger.string()),
                  fmt::format("restore {} from version control", lock.string()));
    }
    plan.deviations = parse_ledger(files.read(ledger), ledger.string(), plan.lock->plan_sha256);
    if (!plan.deviations.empty()) plan.ledger_head = plan.deviations.back().sha256;
  }
  if (unchanged_since_lock(plan) && !plan.deviations.empty()) {
    plan.effective_json = apply_deviations(plan.json, plan.deviations);
    plan.effective =
        parse_plan(plan.effective_json, fmt::format("{} with {}", path.string(), ledger.string()));
  }
  plan.effective_sha256 = canonical_sha256(plan.effective_json);
  return plan;
}

std::vector<PlanDrift> check_lock(Files& files, const OpenPlan& plan) {
  std::vector<PlanDrift> drifts;
  if (plan.lock) drifts = json_differences(plan.lock->plan, plan.json);
  for (PlanDrift& drift : changed_files(files, plan)) drifts.push_back(std::move(drift));
  return drifts;
}

bool lock_plan(Files& files, Clock& clock, const OpenPlan& plan, const std::string& tool_version,
               const std::string& git_commit) {
  if (plan.lock && !unchanged_since_lock(plan)) {
    throw Error(
        ErrorKind::drift,
        fmt::format("{} changed since it was locked at {}:\n{}", plan.path.string(),
                    plan.lock->locked_at, describe(json_differences(plan.lock->plan, plan.json))),
        "a locked plan never changes: undo the change, register a deviation, or give the new "
        "plan a file and a name of its own");
  }
  const std::vector<PlanDrift> drifts = changed_files(files, plan);
  if (!drifts.empty()) {
    throw Error(ErrorKind::drift,
                fmt::format("{}: files that the plan names are absent or have other bytes:\n{}",
                            plan.path.string(), describe(drifts)),
                "before locking, put the digests that are meant into the plan");
  }
  if (plan.lock) return false;
  const Json json = lock_json(plan, utc_text(clock.now()), tool_version, git_commit);
  files.replace(lock_path(plan.path), json.dump(2) + "\n");
  return true;
}

}  // namespace preval
