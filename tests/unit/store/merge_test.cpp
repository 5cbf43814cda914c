// Stores of shards and of arms that come together: what they are then, and what is refused.
#include "store/merge.h"

#include "../run/study.h"
#include "audit/store_audit.h"
#include "base/error.h"
#include "catch.h"
#include "plan/deviate.h"
#include "report/model.h"
#include "score/score.h"
#include "server/protocols.h"
#include "small_study.h"
#include "store/digest.h"

using namespace preval;
using namespace preval::test;

namespace {

using Paths = std::vector<std::filesystem::path>;

constexpr int kRecords = 30;

/// Two subsets, repeats, reversed alternatives, questions too wide for a letter each, and an arm
/// whose lists lack labels.
class MergeStudy : public Study {
 public:
  MergeStudy() {
    put_records("one", "noul", records("one", kRecords), kRecords, kRecords / 2);
    std::vector<int> widths(kRecords, 4);
    widths[3] = 30;
    put_records("two", "choice", choices("two", widths), kRecords, kRecords);
    plan()["datasets"][0]["variants"] = {"none", "reversed"};
    plan()["repeats"] = 2;
    plan()["backends"][1]["read"] = "top-k";
    plan()["backends"][1]["k"] = 8;
    plan()["backends"][1]["simulation"]["missing"] = 0.4;
    save();
    lock();
  }

  /// A run into a store of its own, which is sealed as the commands do.
  std::filesystem::path run_into(const std::string& name, const RunOptions& options = {}) {
    db_name = name + ".db";
    clock->sleep(std::chrono::seconds(10));
    last = run(options);
    seal();
    return db_path();
  }
  std::filesystem::path shard_into(const std::string& name, int index, int of,
                                   const std::vector<std::string>& arms = {}) {
    RunOptions options;
    options.shard = Shard{index, of};
    options.arms = arms;
    return run_into(name, options);
  }
  std::filesystem::path arm_into(const std::string& name, const std::string& arm) {
    RunOptions options;
    options.arms = {arm};
    return run_into(name, options);
  }
  Paths shards(int of) {
    Paths paths;
    for (int index = 1; index <= of; ++index) {
      paths.push_back(shard_into(fmt::format("s{}", index), index, of));
    }
    return paths;
  }
  void seal() {
    Db db = open_store(db_path(), Db::Mode::read_write);
    recompute_scores(db, *clock, "test");
    seal_store(db, files(), *clock);
  }

  /// Makes NAME.db of the inputs, as the command does. Returns what was merged.
  Merged merge(const std::string& name, const Paths& inputs) {
    db_name = name + ".db";
    clock->sleep(std::chrono::seconds(10));
    NewStore made(files(), db_path());
    const Merged merged = merge_stores(files(), *clock, inputs, made.db());
    recompute_scores(made.db(), *clock, "test");
    const Seal sealed = put_seal(made.db(), *clock, merged.origins);
    made.publish();
    write_seal(files(), db_path(), sealed);
    return merged;
  }
  Error refused(const Paths& inputs) {
    const Error error = thrown([&] { merge("refused", inputs); });
    CHECK_FALSE(std::filesystem::exists(db_path()));
    CHECK_FALSE(std::filesystem::exists(db_path().string() + ".part"));
    CHECK_FALSE(std::filesystem::exists(seal_path(db_path())));
    return error;
  }

  std::string digest() {
    Db db = open_store(db_path(), Db::Mode::read_only);
    return logical_digest(db).digest;
  }
  std::string rows(const std::string& sql) {
    Db db = open_store(db_path(), Db::Mode::read_only);
    return rows_of(db, sql);
  }
  /// Changes a store without its seal.
  void change(const std::filesystem::path& path, const std::string& sql) {
    Db db(path, Db::Mode::read_write);
    db.exec(sql);
    REQUIRE(db.changes() > 0);
  }
  /// What an audit finds in the store, and what it could not look at.
  std::vector<std::string> findings() {
    AuditResult result;
    Db db = open_store(db_path(), Db::Mode::read_only);
    audit_store(db, files(), open(), result);
    std::vector<std::string> lines = result.unchecked;
    for (const AuditFinding& each : result.findings)
      lines.push_back(each.field + ": " + each.registered + " → " + each.found);
    return lines;
  }

  RunResult last;
};

/// Everything that is counted, in an order of its own.
const char* const kCounted[] = {
    "SELECT arm, subset, record_id, variant, repeat, predicted, target, label_mass, entropy, tied, "
    "labels_returned, confidence FROM v_prediction ORDER BY 1, 2, 3, 4, 5",
    "SELECT arm, subset, record_id, variant, repeat, position, key, logprob, probability, source "
    "FROM v_label ORDER BY 1, 2, 3, 4, 5, 6",
    "SELECT * FROM v_accuracy",
    "SELECT * FROM v_agreement",
    "SELECT * FROM v_calibration",
    "SELECT * FROM v_completeness",
    "SELECT * FROM v_stability",
    "SELECT name, status, reason, in_plan, position FROM arm ORDER BY position",
    "SELECT name, status, found_sha256, problem, position FROM subset ORDER BY position",
    "SELECT subset_id, record_id, position, family, target, current FROM record ORDER BY 1, 2",
    "SELECT r.record_id, variant, form, hex(q.sha256), q.current FROM prompt q JOIN record r ON "
    "r.id = q.record_id ORDER BY 1, 2, 3, 4",
    "SELECT a.name, sha256, current, set_aside FROM configuration c JOIN arm a ON a.id = arm_id "
    "ORDER BY 1, 2"};

std::vector<std::string> counted_in(MergeStudy& study) {
  std::vector<std::string> all;
  for (const char* sql : kCounted) all.push_back(study.rows(sql));
  return all;
}

}  // namespace

TEST_CASE("shards that are merged are the run in one piece", "[merge]") {
  MergeStudy study;
  study.run_into("whole");
  const std::string digest = study.digest();
  const std::vector<std::string> counted = counted_in(study);
  const Paths shards = study.shards(4);
  CHECK(study.digest() != digest);

  const Merged merged = study.merge("merged", {shards[2], shards[0], shards[3], shards[1]});
  CHECK(study.digest() == digest);
  CHECK(counted_in(study) == counted);
  CHECK(study.findings().empty());
  CHECK(merged.kept_once == 0);
  CHECK(std::to_string(merged.answers) == study.value("SELECT count(*) FROM prediction"));
  CHECK(study.rows("SELECT id, shard, shards, outcome FROM run") ==
        "1|1|4|complete\n2|2|4|complete\n3|3|4|complete\n4|4|4|complete");
  CHECK(study.value("SELECT count(*) FROM event WHERE kind = 'merged'") == "4");
  CHECK(contains(study.value("SELECT detail FROM event WHERE kind = 'merged' AND run_id = 3"),
                 "run 1 of the store with the logical digest "));
  CHECK(study.value("SELECT count(*) FROM stage WHERE name = 'suite'") == "8");
  // Nothing is left to ask.
  const std::string answers = study.value("SELECT count(*) FROM prediction");
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT count(*) FROM prediction") == answers);
}

TEST_CASE("the order in which stores are named says nothing", "[merge]") {
  MergeStudy study;
  const Paths shards = study.shards(3);
  const auto everything = [&] {
    std::string all;
    for (const char* table : {"run", "prediction", "label", "record", "prompt", "stage", "event",
                              "configuration", "seal"}) {
      all += study.rows(fmt::format("SELECT * FROM {} ORDER BY 1, 2", table)) + "\n\n";
    }
    return all;
  };
  ManualClock clock;
  study.clock = &clock;
  study.merge("one", shards);
  const std::string one = everything();
  ManualClock again;
  study.clock = &again;
  study.merge("two", {shards[1], shards[2], shards[0]});
  CHECK(everything() == one);
}

TEST_CASE("arms from two stores are the run in one piece, and shards of an arm with them",
          "[merge]") {
  MergeStudy study;
  study.run_into("whole");
  const std::string digest = study.digest();
  const std::vector<std::string> counted = counted_in(study);
  const auto b = study.arm_into("b", "b");
  const auto a = study.arm_into("a", "a");
  CHECK(study.value("SELECT status FROM arm WHERE name = 'b'") == "registered");
  study.merge("arms", {a, b});
  CHECK(study.digest() == digest);
  CHECK(counted_in(study) == counted);
  CHECK(study.findings().empty());

  const auto a1 = study.shard_into("a1", 1, 2, {"a"}), a2 = study.shard_into("a2", 2, 2, {"a"});
  study.merge("both", {a1, b, a2});
  CHECK(study.digest() == digest);
  CHECK(counted_in(study) == counted);

  // A merged store is a store like any other.
  study.merge("half", {a1, a2});
  const auto half = study.db_path();
  study.merge("again", {half, b});
  CHECK(study.digest() == digest);
  CHECK(study.findings().empty());
  CHECK(study.value("SELECT count(*) FROM run") == "3");
}

TEST_CASE("failures in the end come along, and so does what was answered after one", "[merge]") {
  // Records that name a model themselves are refused: one of the first subset, one of the second.
  const test_server::TestServer server(Json{{"kind", "systemone"}});
  Study study;
  Json backend = Study::served("exact", "systemone", server.url());
  backend["read"] = "native";
  backend["model"] = "test-model";
  study.plan()["backends"] = Json::array({backend});
  study.plan()["arms"] = Json::array({Study::arm("a", "exact")});
  for (const std::string subset : {"one", "two"}) {
    std::string text = Study::records(subset, 20);
    text.insert(text.find("{\"state\": \"text 7\"") + 1, R"("model": "other", )");
    study.put_records(subset, "noul", text, 20, 10);
  }
  study.lock();
  const auto run_into = [&](const std::string& name, std::optional<Shard> shard) {
    study.db_name = name + ".db";
    RunOptions options;
    options.shard = shard;
    study.clock->sleep(std::chrono::seconds(10));
    study.run(options);
    return study.db_path();
  };
  const auto digest = [&] {
    Db db = open_store(study.db_path(), Db::Mode::read_only);
    return logical_digest(db).digest;
  };
  run_into("whole", {});
  const std::string whole = digest();
  CHECK(study.value("SELECT count(*) FROM failure WHERE final = 1") == "2");
  const Paths shards = {run_into("s1", Shard{1, 2}), run_into("s2", Shard{2, 2})};
  // Failed once more: the last word of a store is the last word of what is made from it.
  run_into("s1", Shard{1, 2});
  study.db_name = "merged.db";
  {
    NewStore made(study.files(), study.db_path());
    merge_stores(study.files(), *study.clock, {shards[1], shards[0]}, made.db());
    made.publish();
  }
  CHECK(digest() == whole);
  CHECK(study.value("SELECT count(*) FROM failure WHERE row_sha256 IS NULL") == "0");
  CHECK(study.value("SELECT sum(n_failed) FROM v_completeness") == "2");
  CHECK(study.value("SELECT count(*) FROM event WHERE kind = 'resume'") ==
        study.value("SELECT count(*) FROM run WHERE id > (SELECT min(id) FROM run WHERE shard = 1) "
                    "AND shard = 1"));
}

TEST_CASE("what two stores both hold is kept once when it is alike", "[merge]") {
  MergeStudy study;
  const auto first = study.arm_into("first", "a");
  // A copy that went on elsewhere, and the original that went on here.
  std::filesystem::copy_file(first, study.folder() / "copy.db");
  study.arm_into("copy", "b");
  const auto copy = study.db_path();
  study.merge("merged", {first, copy});
  CHECK(study.value("SELECT group_concat(outcome) FROM run") == "complete,complete");
  CHECK(study.value("SELECT count(*) FROM stage WHERE name = 'verify'") == "2");
  const std::string digest = study.digest();
  CHECK(study.findings().empty());
  study.run_into("whole");
  CHECK(study.digest() == digest);

  // Run anew, it is another run with the same answers.
  const auto again = study.arm_into("again", "a");
  const Merged merged = study.merge("twice", {again, copy});
  CHECK(study.digest() == digest);
  CHECK(std::to_string(merged.kept_once) ==
        study.value("SELECT count(*) FROM v_prediction WHERE arm = 'a'"));
  CHECK(study.value("SELECT count(*) FROM run") == "3");
}

TEST_CASE("different content under one key is drift that names the key", "[merge]") {
  MergeStudy study;
  const auto one = study.arm_into("one", "a");
  const auto two = study.arm_into("two", "a");
  {
    // An answer that is another one, with a row digest and a seal of its own.
    Db db = open_store(two, Db::Mode::read_write);
    db.exec(
        "UPDATE prediction SET predicted = 1 - predicted WHERE id = (SELECT p.id FROM prediction p "
        "JOIN prompt q ON q.id = p.prompt_id JOIN record r ON r.id = q.record_id WHERE r.record_id "
        "= 'two-5' AND q.variant = 'reversed' AND p.repeat = 1)");
    renew_row_digests(db, query_integer(db, "SELECT id FROM configuration"));
    seal_store(db, study.files(), *study.clock);
  }
  const Error error = study.refused({two, one});
  CHECK(error.kind() == ErrorKind::drift);
  CHECK(contains(error.what(), "one.db and "));
  CHECK(contains(error.what(),
                 "two.db say different things of prediction arm a, two, two-5, "
                 "reversed, repeat 1"));
}

TEST_CASE("a store that was changed since it was written or sealed is refused by its row",
          "[merge]") {
  MergeStudy study;
  const auto good = study.shard_into("good", 1, 2);
  const auto bad = study.shard_into("bad", 2, 2);
  struct Row {
    const char *sql, *says;
  };
  const Row row = GENERATE(
      Row{"UPDATE prediction SET predicted = 1 - predicted WHERE id = 1",
          "bad.db: prediction arm a, one, one-"},
      Row{"UPDATE label SET probability = 0.9 WHERE prediction_id = 2", "bad.db: prediction arm "},
      Row{"UPDATE record SET target = 1 - target WHERE record_id = 'one-3'",
          "bad.db: record one, one-3 was changed after it was written (written "},
      Row{"UPDATE option SET key = 'maybe' WHERE key = 'true'", "bad.db: option_set "},
      Row{"UPDATE configuration SET identity = '{}' WHERE id = 1",
          "bad.db: a configuration of arm a was changed"},
      Row{"UPDATE configuration SET settings = 'x' WHERE id = 1", "bad.db: configuration.settings"},
      Row{"UPDATE plan SET json = replace(json, 'test', 'best')",
          "bad.db: its copy of the plan was changed"},
      Row{"DELETE FROM label WHERE prediction_id = 1; DELETE FROM prediction WHERE id = 1",
          "bad.db: it is not what its last seal says; prediction, arm a, suite/one: "},
      Row{"UPDATE record SET current = 0 WHERE record_id = 'one-3'",
          "record, suite/one: 30 rows, "},
      Row{"UPDATE seal SET json = json_set(json, '$.at', '2020')", "bad.db: seal 1 was changed"},
      Row{"DELETE FROM seal", "bad.seal.json seals it, and it holds no seal"});
  INFO(row.sql);
  study.change(bad, std::string("PRAGMA foreign_keys = OFF; ") + row.sql);
  const Error error = study.refused({good, bad});
  INFO(error.what());
  CHECK(error.kind() == ErrorKind::drift);
  CHECK(contains(error.what(), row.says));
  CHECK(contains(error.hint(), "bad.db --explain says more"));
}

TEST_CASE("a store with other tables, or rows that lead nowhere, is refused", "[merge]") {
  MergeStudy study;
  const auto good = study.shard_into("good", 1, 2);
  const auto bad = study.shard_into("bad", 2, 2);
  Db db(bad, Db::Mode::read_write);
  SECTION("a view that is another one") {
    db.exec("DROP VIEW v_event; CREATE VIEW v_event AS SELECT 1 AS x");
    CHECK(contains(study.refused({good, bad}).what(), "view v_event is not as preval makes it"));
  }
  SECTION("a table of somebody else") {
    db.exec("CREATE TABLE mine (x)");
    CHECK(contains(study.refused({good, bad}).what(), "table mine is not preval's"));
  }
  SECTION("an answer to no prompt") {
    db.exec("PRAGMA foreign_keys = OFF; DELETE FROM prompt WHERE id = 1");
    CHECK(contains(study.refused({good, bad}).what(), "a row of "));
  }
  SECTION("another schema") {
    db.exec("PRAGMA user_version = 99");
    const Error error = study.refused({good, bad});
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(contains(error.what(), "bad.db has schema version 99"));
  }
}

TEST_CASE("shards that overlap or are missing are refused by name", "[merge]") {
  MergeStudy study;
  const auto refused = [&](const Paths& inputs) {
    const Error error = study.refused(inputs);
    CHECK(error.kind() == ErrorKind::usage);
    return std::string(error.what());
  };
  const Paths shards = study.shards(4);
  SECTION("missing") {
    CHECK(refused({shards[0], shards[1], shards[3]}) ==
          "2 shards are missing: 3/4 of arm a, 3/4 of arm b");
    const auto of_a = study.shard_into("of_a", 3, 4, {"a"});
    CHECK(refused({shards[0], shards[1], of_a, shards[3]}) == "one shard is missing: 3/4 of arm b");
    CHECK(contains(refused({shards[1]}), "6 shards are missing: 1/4 of arm a, 3/4 of arm a, "));
  }
  SECTION("twice") {
    const auto again = study.shard_into("again", 2, 4);
    const std::string what = refused({shards[0], again, shards[1], shards[2], shards[3]});
    CHECK(contains(what, "again.db and "));
    CHECK(contains(what, "s2.db both hold shard 2/4 of arm a"));
  }
  SECTION("of other numbers") {
    const auto half = study.shard_into("half", 2, 2);
    const std::string what = refused({shards[0], half});
    CHECK(contains(what, "s1.db holds shard 1/4 of arm a, "));
    CHECK(contains(what, "half.db shard 2/2"));
  }
  SECTION("and all of it") {
    const auto whole = study.run_into("whole");
    const std::string what = refused({shards[0], whole});
    CHECK(contains(what, "whole.db holds all of arm a, "));
    CHECK(contains(what, "s1.db shard 1/4 of it"));
  }
  SECTION("one store by two names") {
    std::filesystem::create_symlink(shards[0], study.folder() / "alias.db");
    CHECK(contains(refused({shards[0], study.folder() / "alias.db"}), "alias.db is named twice"));
  }
}

TEST_CASE("a shard without any record is there when it was run", "[merge]") {
  MergeStudy study;
  study.run_into("whole");
  const std::string digest = study.digest();
  // 60 records in 100 parts: some are empty.
  Paths shards = study.shards(100);
  Db db = open_store(shards[0], Db::Mode::read_only);
  bool any_empty = false;
  for (const auto& path : shards) {
    Db each = open_store(path, Db::Mode::read_only);
    any_empty = any_empty || query_integer(each, "SELECT count(*) FROM prediction") == 0;
  }
  CHECK(any_empty);
  study.merge("merged", shards);
  CHECK(study.digest() == digest);
}

TEST_CASE("stores of other plans, ledgers or kinds are refused by what differs", "[merge]") {
  MergeStudy study;
  const auto good = study.shard_into("good", 1, 2);
  const auto refused = [&](const std::filesystem::path& other, ErrorKind kind) {
    const Error error = study.refused({good, other});
    CHECK(error.kind() == kind);
    return std::string(error.what());
  };
  SECTION("another plan") {
    MergeStudy other;
    other.plan()["version"] = "2";
    other.save();
    std::filesystem::remove(other.folder() / "prereg/plan.lock.json");
    other.lock();
    const std::string what = refused(other.shard_into("other", 2, 2), ErrorKind::usage);
    CHECK(contains(what, "good.db holds plan test (sha256 "));
  }
  SECTION("a deviation that the other machine did not know") {
    deviate(study.files(), *study.clock, study.open(), {{"/repeats", 2, 3}}, "more");
    const auto other = study.shard_into("other", 2, 2);
    const std::string what = refused(other, ErrorKind::usage);
    CHECK(contains(what, "good.db was last run without deviations, "));
    CHECK(contains(what, "other.db under the ledger that ends with "));
    // Once the first machine has been told, they fit.
    study.shard_into("good", 1, 2);
    study.merge("merged", {good, other});
    CHECK(study.findings().empty());
    CHECK(study.value("SELECT count(*) FROM deviation") == "1");
    const std::string digest = study.digest();
    study.run_into("whole");
    CHECK(study.digest() == digest);
  }
  SECTION("another lock") {
    study.clock->sleep(std::chrono::hours(1));
    std::filesystem::remove(study.folder() / "prereg/plan.lock.json");
    ManualClock later;
    later.sleep(std::chrono::hours(24));
    lock_plan(study.files(), later, study.open(), "test", "");
    CHECK(contains(refused(study.shard_into("other", 2, 2), ErrorKind::drift),
                   "good.db was read under a lock of "));
  }
  SECTION("simulated answers") {
    const auto other = study.shard_into("other", 2, 2);
    study.change(other, "UPDATE plan SET simulated = 0");
    CHECK(contains(refused(other, ErrorKind::usage), "good.db holds simulated answers, "));
  }
  SECTION("no plan") {
    open_store(study.folder() / "empty.db", Db::Mode::create);
    CHECK(contains(refused(study.folder() / "empty.db", ErrorKind::usage), "holds no plan"));
    CHECK(contains(refused(study.folder() / "none.db", ErrorKind::usage), "there is no store at"));
  }
}

TEST_CASE("answers of one arm by two servers are refused", "[merge]") {
  const test_server::TestServer server(Json{{"kind", "vllm"}});
  Study study;
  study.only(Study::served("exact", "vllm", server.url()));
  study.lock();
  RunOptions options;
  Paths paths;
  for (const int index : {1, 2}) {
    study.db_name = fmt::format("s{}.db", index);
    options.shard = Shard{index, 2};
    study.clock->sleep(std::chrono::seconds(10));
    REQUIRE(study.run(options).exit_code() == 0);
    paths.push_back(study.db_path());
  }
  {
    Db db = open_store(paths[1], Db::Mode::read_write);
    Stmt query(db, "SELECT id, settings, identity FROM configuration");
    REQUIRE(query.step());
    const std::int64_t id = query.integer(0);
    Json identity = Json::parse(query.text(2));
    identity["server"]["version"] = "another";
    const std::string digest =
        canonical_sha256(Json{{"identity", identity}, {"settings", Json::parse(query.text(1))}});
    query.reset();
    Stmt(db, "UPDATE configuration SET identity = ?, sha256 = ?")
        .bind(1, identity.dump())
        .bind(2, digest)
        .run();
    renew_row_digests(db, id);
  }
  Db out = open_store(study.folder() / "out.db", Db::Mode::create);
  const Error error = thrown([&] { merge_stores(study.files(), *study.clock, paths, out); });
  CHECK(error.kind() == ErrorKind::usage);
  INFO(error.what());
  CHECK(contains(error.what(), "arm a was answered by different servers or settings in "));
  CHECK(contains(error.what(), "/server/server/version \"1.0.0\" and \"another\""));
}

TEST_CASE("of what stores say of arms and subsets the best stands", "[merge]") {
  MergeStudy study;
  const std::string whole = study.read("data/two/all.jsonl");
  study.write("data/two/all.jsonl", "other bytes\n");
  const auto without = study.arm_into("without", "a");
  CHECK(study.last.exit_code() == 3);
  study.write("data/two/all.jsonl", whole);
  const auto with = study.arm_into("with", "b");
  study.change(without, "UPDATE arm SET status = 'not run', reason = 'no key' WHERE name = 'b'");
  study.merge("merged", {with, without});
  CHECK(study.rows("SELECT name, status, reason FROM arm") == "a|started|-\nb|started|-");
  CHECK(study.rows("SELECT name, status, problem FROM subset ORDER BY 1") == "one|ok|-\ntwo|ok|-");
  CHECK(study.value("SELECT count(*) FROM record WHERE current = 1") == "60");
  CHECK(study.findings().empty());
  // The first machine had not read it: it is asked by whoever goes on.
  CHECK(study.run().exit_code() == 0);
  const std::string digest = study.digest();
  study.run_into("whole");
  CHECK(study.digest() == digest);
}

TEST_CASE("a store that was killed before its seal is taken as it is", "[merge]") {
  MergeStudy study;
  const auto one = study.shard_into("one", 1, 2);
  study.db_name = "two.db";
  RunOptions options;
  options.shard = Shard{2, 2};
  study.listener.on_progress = [](const Progress& progress) {
    if (progress.arm == "b" && progress.done == 20) throw std::runtime_error("killed");
  };
  CHECK_THROWS_AS(study.run(options), std::runtime_error);
  study.listener.on_progress = {};
  const auto two = study.db_path();
  CHECK(study.value("SELECT ended_at IS NULL FROM run") == "1");
  study.merge("merged", {one, two});
  CHECK(study.findings().empty());
  CHECK(study.run().exit_code() == 0);
  const std::string digest = study.digest();
  study.run_into("whole");
  CHECK(study.digest() == digest);
}

TEST_CASE("a new store takes nobody's place, and is there when it is whole", "[merge]") {
  MergeStudy study;
  const Paths shards = study.shards(2);
  study.merge("out", shards);
  const Error error = thrown([&] { study.merge("out", shards); });
  CHECK(error.kind() == ErrorKind::usage);
  CHECK(contains(error.what(), "out.db is there already"));
  std::filesystem::remove(study.db_path());
  CHECK(contains(thrown([&] { study.merge("out", shards); }).what(),
                 "out.seal.json is there already"));
  std::filesystem::remove(seal_path(study.db_path()));

  // What a killed merge left is in nobody's way.
  study.write("out.db.part", "half a store");
  study.merge("out", shards);
  CHECK_FALSE(std::filesystem::exists(study.folder() / "out.db.part"));
  CHECK(study.findings().empty());

  int asked = 0;
  study.db_name = "stopped.db";
  {
    NewStore made(study.files(), study.db_path());
    const auto stop = [&] { return ++asked == 2; };
    CHECK(thrown([&] {
            merge_stores(study.files(), *study.clock, shards, made.db(), stop);
          }).kind() == ErrorKind::interrupted);
  }
  CHECK_FALSE(std::filesystem::exists(study.db_path()));
  CHECK_FALSE(std::filesystem::exists(study.db_path().string() + ".part"));
}

TEST_CASE("the seal of a merged store names those of the stores it was made from", "[merge]") {
  MergeStudy study;
  const Paths shards = study.shards(2);
  const Merged merged = study.merge("merged", shards);
  const Seal seal = parse_seal(study.read("merged.seal.json"), "seal");
  REQUIRE(seal.merged.size() == 2);
  CHECK(seal.number == 1);
  CHECK(seal.sha256 == seal.computed_sha256());
  for (std::size_t i = 0; i < 2; ++i) {
    const Seal before = parse_seal(study.files().read(seal_path(shards[i])), "seal of a shard");
    CHECK(seal.merged[i].seal == before.sha256);
    CHECK(seal.merged[i].digest == before.digest);
    CHECK(before.merged.empty());
  }
  // It is part of what is sealed.
  Json changed = Json::parse(study.read("merged.seal.json"));
  changed["merged"][0]["seal"] = std::string(64, 'a');
  const Seal other = parse_seal(changed.dump(), "seal");
  CHECK(other.computed_sha256() != other.sha256);
}
