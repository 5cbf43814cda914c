// What the audit of a store finds, change by change.
#include "audit/store_audit.h"

#include <algorithm>

#include "../base/thrown.h"
#include "../run/study.h"
#include "../store/small_study.h"
#include "base/text.h"
#include "catch.h"
#include "plan/deviate.h"
#include "report/copy.h"
#include "report/model.h"
#include "score/score.h"
#include "store/seal.h"

using namespace preval;
using namespace preval::test;

namespace {

/// The hand-counted study, scored and sealed.
struct Sealed {
  SmallStudy study;
  SystemFiles files;

  Sealed() {
    fill(study);
    recompute_scores(study.db(), study.clock(), "0.1.0");
    seal_store(study.db(), files, study.clock());
  }
  AuditResult audit() {
    study.store().flush();
    AuditResult result;
    Db db = open_store(study.path(), Db::Mode::read_only);
    audit_store(db, files, study.plan(), result);
    return result;
  }
  /// "field: registered → found" of every finding.
  std::vector<std::string> findings() {
    std::vector<std::string> lines;
    for (const AuditFinding& each : audit().findings) {
      lines.push_back(each.field + ": " + each.registered + " → " + each.found);
    }
    return lines;
  }
};

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

bool any(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return contains(line, part); });
}

}  // namespace

TEST_CASE("a data file that changed is known by its first changed record", "[audit]") {
  Study study;
  study.lock();
  study.run();
  const std::string good = study.read("data/two/all.jsonl");
  Db db = open_store(study.db_path(), Db::Mode::read_only);
  const OpenPlan plan = study.open();
  const auto first = [&](const std::string& bytes) {
    return first_changed_record(db, plan, "suite", "two", bytes);
  };
  CHECK(first(good).empty());
  const std::size_t second = good.find('\n') + 1;
  CHECK(first(replaced(good, good.substr(second, 5), "{ \"id")) == "line 1 (record two-0)");
  CHECK(first(good.substr(0, second) + "{}\n" + good.substr(second)) == "line 2 (record two-1)");
  CHECK(first(good.substr(0, second)) == "line 2 (record two-1)");
  CHECK(first_changed_record(db, plan, "suite", "three", good).empty());
}

TEST_CASE("an audit tells what deviates, and which record of a data file is another one",
          "[audit]") {
  Study study;
  study.lock();
  study.run();
  SystemClock clock;
  const OpenPlan plan = study.open();
  deviate(study.files(), clock, plan, {{"/repeats", Json(), 2}}, "one is not enough");
  const std::string good = study.read("data/two/all.jsonl");
  study.write("data/two/all.jsonl", replaced(good, "two-2", "two-9"));
  Db db = open_store(study.db_path(), Db::Mode::read_only);
  const AuditResult result =
      audit_plan(study.files(), plan.path, {study.folder() / "data", std::nullopt, &db});
  REQUIRE(result.deviations.size() == 1);
  CHECK(result.deviations[0].field == "/repeats");
  const auto data = std::find_if(result.findings.begin(), result.findings.end(),
                                 [](const AuditFinding& each) { return each.what == "data"; });
  REQUIRE(data != result.findings.end());
  CHECK(data->first_row == "line 3 (record two-2)");
}

TEST_CASE("what a run left as its report has to say what the store says", "[audit]") {
  Study study;
  study.lock();
  study.run();
  {
    Db db = open_store(study.db_path(), Db::Mode::read_write);
    SystemClock clock;
    recompute_scores(db, clock, "0.1.0");
    const ReportModel model = build_report(db);
    for (const auto& [format, ending] : kReportCopies) {
      study.files().replace(report_path(study.db_path(), ending), render(model, format, {}));
    }
  }
  const auto reports = [&] {
    Db db = open_store(study.db_path(), Db::Mode::read_only);
    std::vector<AuditFinding> found =
        audit_plan(study.files(), study.open().path, {std::nullopt, std::nullopt, &db}).findings;
    std::erase_if(found, [](const AuditFinding& each) { return each.what != "report"; });
    return found;
  };
  CHECK(reports().empty());
  const auto path = report_path(study.db_path(), "md");
  const std::string good = study.files().read(path);
  const std::size_t second = good.find('\n') + 1;
  study.files().replace(path, good.substr(0, second) + "The best model of all.\n" +
                                  good.substr(good.find('\n', second) + 1));
  const std::vector<AuditFinding> changed = reports();
  REQUIRE(changed.size() == 1);
  CHECK(changed[0].field == path.generic_string());
  CHECK(changed[0].found == "The best model of all.");
  CHECK(changed[0].first_row == "line 2");
  std::filesystem::remove(path);
  CHECK(reports().empty());
}

TEST_CASE("a store as it was written has nothing to find", "[audit]") {
  Sealed sealed;
  const AuditResult result = sealed.audit();
  for (const AuditFinding& finding : result.findings) INFO(finding.field << " " << finding.found);
  CHECK(result.findings.empty());
  CHECK(result.unchecked.empty());
  CHECK(result.checked > 15);
}

TEST_CASE("every kind of change after a seal is found and named", "[audit]") {
  struct Row {
    const char *change, *finding;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"UPDATE prediction SET predicted = 1 WHERE id = 1",
            "prediction arm a, boolq, boolq-1, repeat 0"},
           {"UPDATE label SET probability = 0.5 WHERE prediction_id = 6",
            "prediction arm b, boolq, boolq-1, repeat 0"},
           {"DELETE FROM prediction WHERE id = 9", "prediction, arm b, suite/massive: 2 rows"},
           {"UPDATE configuration SET current = 0 WHERE id = 1", "logical digest"},
           {"UPDATE configuration SET identity = '{\"engine\":\"better\"}' WHERE id = 1",
            "configuration 1 of arm a"},
           {"UPDATE record SET target = 1 - target WHERE id = 1", "record boolq, boolq-1"},
           {"DELETE FROM record WHERE id = 99", ""},
           {"UPDATE score_accuracy SET n_correct = 3, accuracy = 1 WHERE arm_id = 1 AND scope = "
            "'boolq'",
            "score_accuracy: scores of the stored answers"},
           {"UPDATE score_calibration SET ece = ece + 1e-16 + ece * 1e-15 WHERE scope = 'boolq'",
            "score_calibration: "},
           {"DELETE FROM score_bin WHERE bin = 9", "score_bin: "},
           {"UPDATE seal SET json = json_set(json, '$.at', '2020-01-01T00:00:00Z')", "seal 1: "},
           {"UPDATE seal SET json = 'x'", "seal: "},
       }) {
    INFO(row.change);
    Sealed sealed;
    sealed.study.db().exec(row.change);
    const std::vector<std::string> lines = sealed.findings();
    if (*row.finding == '\0') {
      CHECK(lines.empty());
    } else {
      CHECK(any(lines, row.finding));
    }
  }
}

TEST_CASE("a changed row with a new digest of its own is narrowed down to its group", "[audit]") {
  Sealed sealed;
  Db& db = sealed.study.db();
  db.exec("UPDATE prediction SET labels_returned = 1 WHERE id = 4");
  std::string computed;
  logical_digest(db, [&](const ChangedRow& row) { computed = row.computed; });
  db.exec("UPDATE prediction SET row_sha256 = x'" + computed + "' WHERE id = 4");
  const std::vector<std::string> lines = sealed.findings();
  CHECK(any(lines, "logical digest: "));
  CHECK(any(lines, "prediction, arm a, suite/massive: 2 rows, "));
  CHECK_FALSE(any(lines, "suite/boolq"));
}

TEST_CASE("the seal beside the store is compared, and missed", "[audit]") {
  Sealed sealed;
  const auto path = seal_path(sealed.study.path());
  const std::string text = sealed.files.read(path);
  sealed.files.replace(path, replaced(text, "\"number\": 1", "\"number\": 2"));
  CHECK(any(sealed.findings(), "small.seal.json: "));
  std::filesystem::remove(path);
  CHECK(sealed.findings().empty());
  CHECK(contains(sealed.audit().unchecked.at(0), "small.seal.json: not there"));
}

TEST_CASE("a lock that was edited is a finding about the lock, and none about the store",
          "[audit]") {
  Study study;
  study.lock();
  REQUIRE(study.run().exit_code() == 0);
  study.write("prereg/plan.lock.json",
              replaced(study.read("prereg/plan.lock.json"), "\"locked_at\"", "\"looked_at\""));
  Db db = open_store(study.db_path(), Db::Mode::read_only);
  AuditScope scope;
  scope.store = &db;
  const AuditResult result = audit_plan(study.files(), study.folder() / "prereg/plan.json", scope);
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].what == "lock");
}

TEST_CASE("a store of another plan, and one that was never sealed, are said to be so", "[audit]") {
  Sealed sealed;
  sealed.study.plan().sha256 = std::string(64, 'a');
  // Of the same name it is this plan, changed after its answers; of another it is another study.
  AuditResult other = sealed.audit();
  REQUIRE(other.findings.size() == 1);
  CHECK(contains(other.findings[0].found, "a plan of that name with sha256"));
  sealed.study.plan().effective.name = "another";
  other = sealed.audit();
  CHECK(other.findings.empty());
  CHECK(other.checked == 0);
  CHECK(contains(other.unchecked.at(0), "holds plan small"));

  SmallStudy fresh;
  fill(fresh);
  AuditResult result;
  SystemFiles files;
  Db db = open_store(fresh.path(), Db::Mode::read_only);
  audit_store(db, files, fresh.plan(), result);
  CHECK(result.findings.empty());
  REQUIRE(result.unchecked.size() == 2);
  CHECK(contains(result.unchecked[0], "it was never sealed"));
  CHECK(contains(result.unchecked[1], "scores of store"));
}

TEST_CASE("what a store says of plan, lock, arms and views is audited", "[audit]") {
  struct Row {
    const char *sql, *found;
  };
  const Row row = GENERATE(
      Row{"DELETE FROM plan", "the plan that its runs were for → none: its row was taken out"},
      Row{"UPDATE plan SET json = replace(json, 'small', 'great')", "plan, json: "},
      Row{"UPDATE plan SET version = '2'", "plan version: 1.0.0 → 2"},
      Row{"UPDATE arm SET read = 'exact' WHERE name = 'b'", "arm b: one on top (vllm, top-k)"},
      Row{"UPDATE arm SET confirmatory = 0 WHERE name = 'a'", "exploratory, source run"},
      Row{"UPDATE arm SET source = 'simulated'", "source simulated"},
      Row{"INSERT INTO deviation VALUES (1, '/repeats', '1', '2', 'why', 'at', 'abc')",
          "deviation 1: abc → not in the ledger"},
      Row{"DROP VIEW v_event", "view v_event: as preval makes it → none"},
      Row{"DROP VIEW v_accuracy; CREATE VIEW v_accuracy AS SELECT 1.0 AS accuracy",
          "view v_accuracy: CREATE VIEW v_accuracy AS\nWITH live"},
      Row{"CREATE TRIGGER t AFTER INSERT ON prediction BEGIN DELETE FROM prediction; END",
          "trigger t: none → CREATE TRIGGER"},
      Row{"DELETE FROM seal", "the last seal of this store → a store without seals"},
      Row{"DELETE FROM scored", "no scores, since none were computed → rows"});
  Sealed sealed;
  REQUIRE(sealed.findings().empty());
  sealed.study.db().exec(std::string("PRAGMA foreign_keys = OFF; ") + row.sql);
  INFO(row.sql << "\n" << fmt::format("{}", fmt::join(sealed.findings(), "\n")));
  CHECK(any(sealed.findings(), row.found));
}

TEST_CASE("a row that was changed is not sealed, and a lost chain is not begun anew", "[audit]") {
  Sealed sealed;
  const auto seal = [&] {
    return thrown([&] { seal_store(sealed.study.db(), sealed.files, sealed.study.clock()); });
  };
  SECTION("a changed answer") {
    sealed.study.db().exec("UPDATE prediction SET predicted = 1 - predicted WHERE id = 1");
    CHECK(contains(seal().what(), "was changed after it was written: not sealed"));
  }
  SECTION("a store without its seals") {
    sealed.study.db().exec("DELETE FROM seal");
    CHECK(contains(seal().what(), "holds no seal: not sealed anew"));
  }
}

TEST_CASE("a lock made again, or a ledger cut, is refused by the store", "[audit]") {
  Study study;
  study.lock();
  study.run();
  SystemClock clock;
  SECTION("locked again, later") {
    std::filesystem::remove(study.folder() / "prereg/plan.lock.json");
    ManualClock later;
    later.sleep(std::chrono::hours(24));
    lock_plan(study.files(), later, study.open(), "test", "");
    CHECK(contains(thrown([&] { study.run(); }).what(), "were read under the lock of"));
  }
  SECTION("a deviation taken back by deleting the ledger") {
    deviate(study.files(), clock, study.open(), {{"/arms/0/boot_limit_s", 5, 6}}, "slow");
    study.run();
    std::filesystem::remove(study.folder() / "prereg/plan.deviations.jsonl");
    CHECK(contains(thrown([&] { study.run(); }).what(), "is not in the ledger any more"));
  }
}
