#include "store/seal.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace preval {

namespace {

Json groups_json(const std::vector<EvidenceGroup>& groups) {
  Json list = Json::array();
  for (const EvidenceGroup& group : groups) {
    list.push_back({{"table", group.table},
                    {"arm", group.arm},
                    {"dataset", group.dataset},
                    {"subset", group.subset},
                    {"rows", group.rows},
                    {"digest", group.digest}});
  }
  return list;
}

/// Everything but its own digest.
Json seal_json(const Seal& seal) {
  Json json = {{"preval_seal", 1},
               {"number", seal.number},
               {"at", seal.at},
               {"plan_sha256", seal.plan_sha256},
               {"effective_sha256", seal.effective_sha256},
               {"ledger_head", seal.ledger_head},
               {"digest", seal.digest},
               {"groups", groups_json(seal.groups)},
               {"previous", seal.previous}};
  for (const SealOrigin& each : seal.merged) {
    json["merged"].push_back({{"digest", each.digest}, {"seal", each.seal}});
  }
  return json;
}

/// As it stands in the store and in the file.
Json whole_json(const Seal& seal) {
  Json json = seal_json(seal);
  json["sha256"] = seal.sha256;
  return json;
}

Seal seal_of(const Json& json) {
  Seal seal;
  seal.number = json.at("number").get<std::int64_t>();
  seal.at = json.at("at").get<std::string>();
  seal.plan_sha256 = json.at("plan_sha256").get<std::string>();
  seal.effective_sha256 = json.at("effective_sha256").get<std::string>();
  seal.ledger_head = json.at("ledger_head").get<std::string>();
  seal.digest = json.at("digest").get<std::string>();
  for (const Json& group : json.at("groups")) {
    seal.groups.push_back(
        {group.at("table").get<std::string>(), group.at("arm").get<std::string>(),
         group.at("dataset").get<std::string>(), group.at("subset").get<std::string>(),
         group.at("rows").get<std::int64_t>(), group.at("digest").get<std::string>()});
  }
  seal.previous = json.at("previous").get<std::string>();
  for (const Json& each : json.value("merged", Json::array())) {
    seal.merged.push_back(
        {each.at("digest").get<std::string>(), each.at("seal").get<std::string>()});
  }
  seal.sha256 = json.at("sha256").get<std::string>();
  return seal;
}

}  // namespace

std::string Seal::computed_sha256() const { return canonical_sha256(seal_json(*this)); }

std::filesystem::path seal_path(const std::filesystem::path& db) {
  return db.parent_path() / (db.stem().string() + ".seal.json");
}

Seal parse_seal(std::string_view text, const std::string& name) {
  try {
    return seal_of(parse_json(text, name));
  } catch (const Json::exception& problem) {
    throw Error(ErrorKind::usage, fmt::format("{} is no seal: {}", name, problem.what()));
  }
}

std::vector<Seal> read_seals(Db& db) {
  std::vector<Seal> seals;
  Stmt query(db, "SELECT number, json FROM seal ORDER BY number");
  while (query.step()) {
    try {
      seals.push_back(parse_seal(query.text(1), fmt::format("seal {}", query.integer(0))));
    } catch (const Error& error) {
      throw Error(ErrorKind::drift, fmt::format("{}: {}", db.path().string(), error.message()),
                  "no run writes this; restore a copy of the store");
    }
  }
  return seals;
}

Seal put_seal(Db& db, Clock& clock, const std::vector<SealOrigin>& merged) {
  Stmt plan(db, "SELECT sha256, effective_sha256, coalesce(ledger_head, '') FROM plan");
  if (!plan.step()) {
    throw Error(ErrorKind::usage,
                fmt::format("{} holds no plan: nothing to seal", db.path().string()));
  }
  Seal seal;
  seal.plan_sha256 = plan.text(0);
  seal.effective_sha256 = plan.text(1);
  seal.ledger_head = plan.text(2);
  plan.reset();
  std::optional<ChangedRow> changed;
  LogicalDigest now = logical_digest(db, [&](const ChangedRow& row) {
    if (!changed) changed = row;
  });
  if (changed) {
    throw Error(ErrorKind::drift,
                fmt::format("{}: {} {} was changed after it was written: not sealed",
                            db.path().string(), changed->table, changed->row),
                "preval audit PLAN --explain names every such row; restore a copy of the store");
  }
  seal.digest = now.digest;
  seal.groups = std::move(now.groups);

  const std::vector<Seal> seals = read_seals(db);
  const Seal* last = seals.empty() ? nullptr : &seals.back();
  const bool known =
      last != nullptr && last->digest == seal.digest && last->plan_sha256 == seal.plan_sha256 &&
      last->effective_sha256 == seal.effective_sha256 && last->ledger_head == seal.ledger_head;
  if (known) return *last;
  seal.number = last == nullptr ? 1 : last->number + 1;
  seal.at = utc_text(clock.now());
  seal.previous = last == nullptr ? std::string() : last->sha256;
  seal.merged = merged;
  seal.sha256 = seal.computed_sha256();
  Stmt put(db, "INSERT INTO seal (number, at, digest, sha256, json) VALUES (?, ?, ?, ?, ?)");
  put.bind(1, seal.number).bind(2, seal.at).bind(3, seal.digest).bind(4, seal.sha256);
  put.bind(5, whole_json(seal).dump()).run();
  return seal;
}

void write_seal(Files& files, const std::filesystem::path& db, const Seal& seal) {
  files.replace(seal_path(db), whole_json(seal).dump(1) + "\n");
}

Seal seal_store(Db& db, Files& files, Clock& clock) {
  const std::filesystem::path kept = seal_path(db.path());
  if (query_integer(db, "SELECT count(*) FROM seal") == 0 && files.exists(kept)) {
    throw Error(ErrorKind::drift,
                fmt::format("{} seals a store, and {} holds no seal: not sealed anew",
                            kept.string(), db.path().string()),
                "restore the store it belongs to; if it is of an older store, move it away");
  }
  const Seal seal = put_seal(db, clock);
  write_seal(files, db.path(), seal);
  return seal;
}

}  // namespace preval
