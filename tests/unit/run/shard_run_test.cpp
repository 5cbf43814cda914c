// Runs over a part of the records: what is asked, counted, stored and reported of it.
#include "base/error.h"
#include "base/text.h"
#include "catch.h"
#include "report/model.h"
#include "run/pipeline.h"
#include "run/study.h"
#include "score/score.h"

using namespace preval;
using namespace preval::test;

namespace {

constexpr int kRecords = 40;

/// Two subsets of 40 records, with repeats and reversed alternatives: 40 · 2 + 40 · 4 reads an arm.
class ShardStudy : public Study {
 public:
  ShardStudy() {
    put_records("one", "noul", records("one", kRecords), kRecords, kRecords / 2);
    put_records("two", "choice", choices("two", std::vector<int>(kRecords, 3)), kRecords, kRecords);
    plan()["datasets"][0]["variants"] = {"none", "reversed"};
    plan()["datasets"][0]["smoke"] = {{"records", 3}, {"concurrency", 1}};
    plan()["repeats"] = 2;
    save();
    lock();
  }

  /// How many records of a subset are in a shard.
  std::int64_t in_shard(const std::string& subset, const Shard& shard) {
    std::int64_t count = 0;
    for (const Record& each : read_records(read("data/" + subset + "/all.jsonl"), subset, subset,
                                           [](const std::string&) {})) {
      count += shard.holds(each.sha256) ? 1 : 0;
    }
    return count;
  }
  std::int64_t reads_in(const Shard& shard) {
    return 2 * in_shard("one", shard) + 4 * in_shard("two", shard);
  }
  std::string answers() { return value("SELECT count(*) FROM prediction"); }
};

RunOptions shard(int index, int of) {
  RunOptions options;
  options.shard = Shard{index, of};
  return options;
}

}  // namespace

TEST_CASE("a shard asks its own records, in every variant and repeat, on every arm") {
  ShardStudy study;
  const Shard second{2, 3};
  const RunResult result = study.run(shard(2, 3));
  CHECK(result.exit_code() == 0);
  CHECK(result.missing_reads == 0);
  CHECK(study.answers() == std::to_string(2 * study.reads_in(second)));
  CHECK(study.listener.last.total == study.reads_in(second));

  // All records are registered, since the digest of the store is over all of them.
  CHECK(study.value("SELECT count(*) FROM record") == std::to_string(2 * kRecords));
  Db db = open_store(study.db_path(), Db::Mode::read_only);
  Stmt asked(db,
             "SELECT lower(hex(r.sha256)), count(*) FROM prediction p JOIN prompt q ON q.id = "
             "p.prompt_id JOIN record r ON r.id = q.record_id GROUP BY r.id");
  while (asked.step()) CHECK(second.holds(asked.text(0)));
  CHECK(study.value("SELECT shard || '/' || shards FROM run") == "2/3");
  CHECK(study.value("SELECT shard || '/' || shards FROM v_run") == "2/3");
}

TEST_CASE("a limit counts records of the file, of which a shard asks its own") {
  ShardStudy study;
  RunOptions options;
  options.limit = 10;
  CHECK(study.run(options).exit_code() == 0);
  const std::string whole = study.answers();
  study.db_name = "parts.db";
  for (int index = 1; index <= 3; ++index) {
    options.shard = Shard{index, 3};
    CHECK(study.run(options).exit_code() == 0);
  }
  CHECK(study.answers() == whole);
}

TEST_CASE("smoke reads are the first of the shard") {
  ShardStudy study;
  study.run(shard(1, 4));
  std::int64_t expected = 0;
  for (const std::string subset : {"one", "two"})
    expected += std::min<std::int64_t>(3, study.in_shard(subset, {1, 4}));
  const std::string smoke = study.value("SELECT detail FROM stage WHERE name = 'smoke' LIMIT 1");
  CHECK(smoke == fmt::format("{} reads, every one usable", expected));
}

TEST_CASE("all shards one after the other into one store are the whole, each a run of its own") {
  ShardStudy study;
  for (int index = 1; index <= 3; ++index) CHECK(study.run(shard(index, 3)).exit_code() == 0);
  CHECK(study.value("SELECT group_concat(shard || '/' || shards) FROM run") == "1/3,2/3,3/3");
  CHECK(study.value("SELECT count(*) FROM event WHERE kind = 'resume'") == "0");
  CHECK(study.answers() == std::to_string(2 * study.reads_in({1, 1})));
  CHECK(study.value("SELECT count(*) FROM v_completeness WHERE state <> 'complete'") == "0");
  CHECK(study.run().exit_code() == 0);
  CHECK(contains(study.listener.stages.back(), "everything is stored already"));
}

TEST_CASE("a shard that was stopped goes on where it was, and says so") {
  ShardStudy study;
  study.listener.on_progress = [&](const Progress& progress) {
    if (progress.done == 5) study.interrupt.asked = 1;
  };
  CHECK(study.run(shard(1, 2)).exit_code() == 130);
  study.interrupt.asked = 0;
  study.listener.on_progress = {};
  CHECK(study.run(shard(2, 2)).exit_code() == 0);
  CHECK(study.value("SELECT count(*) FROM event WHERE kind = 'resume'") == "0");
  CHECK(study.run(shard(1, 2)).exit_code() == 0);
  CHECK(study.answers() == std::to_string(2 * study.reads_in({1, 1})));
}

TEST_CASE("a dry run of a shard counts the shard's reads, as far as they can be known") {
  ShardStudy study;
  RunOptions options = shard(1, 4);
  const std::int64_t ours = study.reads_in({1, 4});
  ArmPlan plan = dry_run(study.files(), study.open(), options, nullptr)[0];
  CHECK(plan.registered == ours);
  CHECK(plan.left_out == 0);
  CHECK(plan.to_ask() == ours);
  study.run(options);
  study.run(shard(2, 4));
  {
    Db db = open_store(study.db_path(), Db::Mode::read_only);
    plan = dry_run(study.files(), study.open(), options, &db)[0];
    CHECK(plan.stored == ours);
    CHECK(plan.to_ask() == 0);
    options.shard = Shard{3, 4};
    CHECK(dry_run(study.files(), study.open(), options, &db)[0].stored == 0);
  }
  // Of a subset that is not here nobody knows which records are in the shard: one in four.
  std::filesystem::remove(study.folder() / "data/two/all.jsonl");
  plan = dry_run(study.files(), study.open(), shard(1, 4), nullptr)[0];
  CHECK(plan.registered == 2 * study.in_shard("one", {1, 4}) + 4 * kRecords / 4);
  CHECK(plan.left_out == 4 * kRecords / 4);
}

TEST_CASE("a report of shards says which they are, and of all of them nothing") {
  ShardStudy study;
  const auto report = [&](ReportFormat format) {
    Db db = open_store(study.db_path(), Db::Mode::read_write);
    SystemClock clock;
    recompute_scores(db, clock, "test");
    return render(build_report(db), format, {});
  };
  study.run(shard(2, 3));
  std::string text = report(ReportFormat::markdown);
  CHECK(contains(text, "SHARD 2/3: this store holds a part of the records."));
  CHECK(contains(text, "INCOMPLETE: not all records were asked on a and b."));
  CHECK(contains(text, "| shard |"));
  CHECK(contains(text, "| 2/3 |"));
  const Json run = parse_json(report(ReportFormat::json), "report")["provenance"]["runs"][0];
  CHECK(run["shard"] == 2);
  CHECK(run["shards"] == 3);
  study.run(shard(1, 3));
  CHECK(contains(report(ReportFormat::table), "SHARD 1/3 and 2/3: "));
  study.run(shard(3, 3));
  text = report(ReportFormat::markdown);
  CHECK_FALSE(contains(text, "SHARD "));
  CHECK_FALSE(contains(text, "INCOMPLETE"));
}
