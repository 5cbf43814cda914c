#include "plan/deviation.h"

#include "base/json.h"
#include "catch.h"
#include "expect_error.h"

using namespace preval;
using namespace preval::test;

namespace {

const std::string kPlanDigest(64, '1');

Deviation entry(int number, std::string field, Json from, Json to, std::string previous) {
  Deviation result;
  result.number = number;
  result.field = std::move(field);
  result.from = std::move(from);
  result.to = std::move(to);
  result.why = "no capacity";
  result.at = "2026-09-24T12:00:00Z";
  result.previous = std::move(previous);
  result.sha256 = entry_sha256(result);
  return result;
}

std::string ledger_error(const std::string& text) {
  return error_of(ErrorKind::drift, [&] { parse_ledger(text, "p.deviations.jsonl", kPlanDigest); });
}

}  // namespace

TEST_CASE("an entry's digest is that of its canonical JSON") {
  CHECK(entry(1, "/a", 1, 2, kPlanDigest).sha256 ==
        canonical_sha256(
            Json::parse(R"({"at":"2026-09-24T12:00:00Z","field":"/a","from":1,"number":1,)"
                        R"("previous":")" +
                        kPlanDigest + R"(","to":2,"why":"no capacity"})")));
}

TEST_CASE("an entry is one line of JSON, its digest last") {
  const Deviation first = entry(1, "/a", 1, nullptr, kPlanDigest);
  CHECK(ledger_line(first) == R"({"number":1,"field":"/a","from":1,"to":null,"why":"no capacity",)"
                              R"("at":"2026-09-24T12:00:00Z","previous":")" +
                                  kPlanDigest + R"(","sha256":")" + first.sha256 + "\"}\n");
}

TEST_CASE("a whole ledger is read in order") {
  const Deviation first = entry(1, "/a", 1, 2, kPlanDigest);
  const Deviation second = entry(2, "/b/0", "x", nullptr, first.sha256);
  const auto entries = parse_ledger(ledger_line(first) + ledger_line(second), "p", kPlanDigest);
  REQUIRE(entries.size() == 2);
  CHECK(entries[1].field == "/b/0");
  CHECK(entries[1].to.is_null());
  CHECK(entries[1].why == "no capacity");
  CHECK(parse_ledger("", "p", kPlanDigest).empty());
}

TEST_CASE("a broken chain is drift and names the line") {
  const Deviation first = entry(1, "/a", 1, 2, kPlanDigest);
  const Deviation second = entry(2, "/a", 2, 3, first.sha256);
  Deviation edited = first;
  edited.why = "another reason";
  const std::string other_plan = ledger_line(entry(1, "/a", 1, 2, std::string(64, '2')));

  check_contains(ledger_error(ledger_line(edited)),
                 "p.deviations.jsonl, line 1: the entry was changed");
  check_contains(ledger_error(ledger_line(second)), "line 1: entry 2 where 1 is due");
  check_contains(ledger_error(ledger_line(first) + ledger_line(first)),
                 "line 2: entry 1 where 2 is due");
  check_contains(ledger_error(other_plan), "line 1: \"previous\" is 2222");
  check_contains(ledger_error(other_plan), "belongs to another plan");
  check_contains(ledger_error(ledger_line(first) + ledger_line(entry(2, "/a", 2, 3, kPlanDigest))),
                 "line 2: \"previous\" is");
  check_contains(ledger_error(ledger_line(first) + ledger_line(second).substr(0, 30)),
                 "line 2: the last line is torn");
  check_contains(ledger_error(ledger_line(first) + "{broken\n"), "2");
  check_contains(ledger_error(R"({"number":1,"fields":"/a"})"
                              "\n"),
                 "line 1: /fields: unknown key");
  check_contains(ledger_error("[]\n"), "line 1: expected an object");
}

TEST_CASE("deviations replace values that are there") {
  const Json plan = Json::parse(R"({"a":1,"b":["x","y"],"c/d":{"e":1.0}})");
  CHECK(apply_deviations(plan, {}) == plan);
  const Json effective = apply_deviations(
      plan, {entry(1, "/a", 1, 2, ""), entry(2, "/a", 2, 3, ""),
             entry(3, "/b/1", "y", Json::array(), ""), entry(4, "/c~1d/e", 1, "one", "")});
  CHECK(effective.dump() == R"({"a":3,"b":["x",[]],"c/d":{"e":"one"}})");
}

TEST_CASE("deviations that do not fit the plan are drift") {
  const Json plan = Json::parse(R"({"a":1,"b":[1]})");
  const auto error = [&](std::string field, Json from) {
    return error_of(ErrorKind::drift, [&] {
      apply_deviations(plan, {entry(1, std::move(field), std::move(from), 9, "")});
    });
  };
  check_contains(error("/a", 2), "deviation 1: /a is 1, the entry says it was 2");
  check_contains(error("/x", 1), "deviation 1: /x names nothing in the plan");
  check_contains(error("/b/1", 1), "/b/1 names nothing");
  check_contains(error("/b/-", 1), "/b/- names nothing");
  check_contains(error("/b/x", 1), "/b/x names nothing");
  check_contains(error("a", 1), "a is not a JSON pointer");
  check_contains(error("/a~2", 1), "is not a JSON pointer");
}
