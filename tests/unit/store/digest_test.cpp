// Row digests, the logical digest and seals: what they cover, what they leave out, and how a change
// is named.
#include "store/digest.h"

#include "../base/thrown.h"
#include "../store/small_study.h"
#include "base/error.h"
#include "base/text.h"
#include "catch.h"
#include "store/bytes.h"
#include "store/row_digest.h"
#include "store/seal.h"

using namespace preval;
using namespace preval::test;

namespace {

std::vector<std::string> changed_rows(Db& db) {
  std::vector<std::string> rows;
  logical_digest(db, [&](const ChangedRow& row) { rows.push_back(row.table + " " + row.row); });
  return rows;
}

using Rows = std::vector<std::string>;

}  // namespace

TEST_CASE("values as bytes: kind, length and content, whatever the machine", "[store]") {
  TypedRow row;
  row.null().integer(-7).real(0.5).text("a:b").blob(std::string("\0\xff", 2));
  row.integer(std::optional<std::int64_t>()).real(std::optional<double>(-0.0));
  const std::string expected = std::string("ni-7;r\x3f\xe0\0\0\0\0\0\0", 14) + "t3:a:b" +
                               std::string("b2:\0\xff", 5) + "n" +
                               std::string("r\0\0\0\0\0\0\0\0", 9);
  CHECK(row.bytes() == expected);
  // Of hashlib.sha256(b"t1:a").hexdigest().
  CHECK(hex_of_bytes(TypedRow().text("a").sha256()) ==
        "8ec4b368828971f2ab8a568fef7af8d221d37348fcf017f9b9cd74337e3a855a");
}

TEST_CASE("every row that a run writes has the digest of what is read back", "[store]") {
  SmallStudy study;
  fill(study);
  CHECK(changed_rows(study.db()).empty());
  const LogicalDigest digest = logical_digest(study.db());
  CHECK(digest.rows == 5 + 9 + 1);  // records, answers, one failure that was the last word
  Rows names;
  for (const EvidenceGroup& group : digest.groups) {
    names.push_back(group.name() + " " + std::to_string(group.rows));
  }
  CHECK(names == Rows{"failure, arm b, suite/boolq 1", "prediction, arm a, suite/boolq 3",
                      "prediction, arm a, suite/massive 2", "prediction, arm b, suite/boolq 2",
                      "prediction, arm b, suite/massive 2", "record, suite/boolq 3",
                      "record, suite/massive 2"});
}

TEST_CASE("equal evidence has an equal digest, whatever came before, when and in which order",
          "[store]") {
  SmallStudy one;
  fill(one);
  const std::string digest = logical_digest(one.db()).digest;
  {
    SmallStudy two;
    two.clock().sleep(std::chrono::hours(5));
    two.begin();  // a run that did nothing: other row numbers
    fill(two);
    two.db().exec("UPDATE prediction SET latency_ms = 77");
    two.store().event("a", "warning", "something else");
    CHECK(logical_digest(two.db()).digest == digest);
  }
  one.db().exec("UPDATE record SET current = 0 WHERE id = 1");
  CHECK(logical_digest(one.db()).digest != digest);
  CHECK(changed_rows(one.db()).empty());  // the row says what it said; it only stopped counting
}

TEST_CASE("a changed row is named, whichever of its values was changed", "[store]") {
  struct Row {
    const char *change, *name;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"UPDATE prediction SET predicted = 1 WHERE id = 1",
            "prediction arm a, boolq, boolq-1, repeat 0"},
           {"UPDATE prediction SET label_mass = label_mass + 1e-15 WHERE id = 2",
            "prediction arm a, boolq, boolq-2, repeat 0"},
           {"UPDATE prediction SET floor = -3 WHERE id = 6",
            "prediction arm b, boolq, boolq-1, repeat 0"},
           {"UPDATE label SET probability = 0.91 WHERE prediction_id = 1 AND position = 0",
            "prediction arm a, boolq, boolq-1, repeat 0"},
           {"DELETE FROM label WHERE prediction_id = 3 AND position = 1",
            "prediction arm a, boolq, boolq-3, repeat 0"},
           {"UPDATE record SET target = 1 WHERE id = 1", "record boolq, boolq-1"},
           {"UPDATE record SET family = 'other' WHERE id = 5", "record massive, massive-2"},
           {"UPDATE failure SET class = 'reset'", "failure arm b, boolq, boolq-3, repeat 0"},
       }) {
    INFO(row.change);
    SmallStudy study;
    fill(study);
    const std::string before = logical_digest(study.db()).digest;
    study.db().exec(row.change);
    Rows changed = changed_rows(study.db());
    CHECK(std::find(changed.begin(), changed.end(), row.name) != changed.end());
    CHECK(logical_digest(study.db()).digest != before);
  }
}

TEST_CASE("answers that were set aside have the digests of where they are", "[store]") {
  SmallStudy study;
  fill(study);
  const auto boolq = small_records("boolq", QuestionType::noul, {"true", "false"}, {0, 1, 0});
  const std::int64_t other = study.store().put_configuration(
      "a", answer_settings(study.plan().effective, study.plan().effective.arm("a")),
      {{"engine", "other"}});
  study.begin();
  study.answer(other, 1, boolq[0], answer_of({0.9, 0.1}));
  CHECK(study.store().set_aside(other, {{"after", "another"}}) == 1);
  CHECK(changed_rows(study.db()).empty());
}

TEST_CASE("seals are chained, and say nothing new when nothing is new", "[store]") {
  SmallStudy study;
  fill(study);
  SystemFiles files;
  ManualClock clock;
  const Seal first = seal_store(study.db(), files, clock);
  CHECK(first.number == 1);
  CHECK(first.previous.empty());
  CHECK(first.digest == logical_digest(study.db()).digest);
  CHECK(first.plan_sha256 == study.plan().sha256);
  CHECK(first.sha256 == first.computed_sha256());
  clock.sleep(std::chrono::hours(1));
  CHECK(seal_store(study.db(), files, clock).sha256 == first.sha256);
  CHECK(read_seals(study.db()).size() == 1);

  const auto boolq = small_records("boolq", QuestionType::noul, {"true", "false"}, {0, 1, 0});
  study.answer(2, 3, boolq[2], answer_of({0.9, 0.1}));
  study.store().flush();
  const Seal second = seal_store(study.db(), files, clock);
  CHECK(second.number == 2);
  CHECK(second.previous == first.sha256);
  CHECK(second.digest != first.digest);
  const auto path = seal_path(study.path());
  CHECK(path.filename() == "small.seal.json");
  CHECK(parse_seal(files.read(path), "seal").sha256 == second.sha256);
  CHECK(thrown([] { parse_seal("{}", "x.seal.json"); }).kind() == ErrorKind::usage);
}
