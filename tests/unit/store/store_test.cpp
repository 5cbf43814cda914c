#include "store/store.h"

#include "../base/thrown.h"
#include "base/error.h"
#include "catch.h"
#include "small_study.h"

using namespace preval;
using namespace preval::test;

namespace {

std::string text(Db& db, const std::string& sql) { return rows_of(db, sql, "NULL"); }

}  // namespace

TEST_CASE("a run registers its plan, arms and subsets", "[store]") {
  SmallStudy study;
  Lock lock;
  lock.plan_sha256 = study.plan().sha256;
  lock.locked_at = "2026-09-23T00:00:00Z";
  study.plan().lock = lock;
  Deviation deviation;
  deviation.number = 1;
  deviation.field = "/backends/1/k";
  deviation.from = 32;
  deviation.to = 20;
  deviation.why = "the server allows 20";
  deviation.at = "2026-09-24T00:00:00Z";
  deviation.sha256 = "abc";
  study.plan().deviations = {deviation};
  study.plan().ledger_head = "abc";
  const Json published = Json::parse(
      R"({"preval_published": 1, "model": "jev", "source": "s", "subsets": {"boolq": {"n": 3,
          "accuracy": 0.667, "ece": 0.1, "dataset_sha256": ")" +
      sha256_hex("bytes of boolq") + "\"}}}");
  RunInfo info;
  info.limit = 5;
  CHECK(study.begin(info, published) == 1);

  Db& db = study.db();
  CHECK(text(db, "SELECT name, version, locked_at, ledger_head, simulated FROM plan") ==
        "small|1.0.0|2026-09-23T00:00:00Z|abc|0");
  CHECK(text(db,
             "SELECT name, position, checkpoint, backend, kind, read, confirmatory, source, status "
             "FROM arm ORDER BY position") ==
        "a|0|one|exact|vllm|exact|1|run|registered\nb|1|one|top|vllm|top-k|1|run|registered\n"
        "c|2|two|exact|vllm|exact|1|run|registered");
  CHECK(text(db,
             "SELECT name, position, type, registered_records, status FROM subset ORDER BY "
             "position") == "boolq|0|noul|3|missing\nmassive|1|choice|2|missing");
  CHECK(text(db, "SELECT * FROM v_deviation") ==
        "1|/backends/1/k|32|20|the server allows 20|2026-09-24T00:00:00Z|abc");
  CHECK(text(db, "SELECT subset, model, n, accuracy, ece, brier FROM published") ==
        "boolq|jev|3|0.667|0.1|NULL");
  CHECK(text(db,
             "SELECT started_at, ended_at, exploratory, record_limit, host, git_commit FROM run") ==
        "2023-11-14T22:13:20Z|NULL|0|5|test host|NULL");

  study.clock().sleep(std::chrono::seconds(90));
  study.store().end_run("complete", 0);
  CHECK(text(db, "SELECT ended_at, outcome, exit_code FROM run") ==
        "2023-11-14T22:14:50Z|complete|0");
}

TEST_CASE("a store holds one plan, and no simulated answers among measured ones", "[store]") {
  SmallStudy study;
  study.begin();
  Json other = study.plan().json;
  other["version"] = "2.0.0";
  const OpenPlan changed = opened(other);
  Error error = thrown([&] { study.store().begin_run(changed, Json(), {}); });
  CHECK(error.kind() == ErrorKind::usage);
  CHECK(contains(error.what(), "holds plan small"));
  CHECK(contains(error.what(), "one differs"));
  CHECK(contains(error.hint(), "--db small.db"));
  other["name"] = "another";
  CHECK(contains(thrown([&] { study.store().begin_run(opened(other), Json(), {}); }).what(),
                 "is another"));

  RunInfo simulated;
  simulated.simulated = true;
  error = thrown([&] { study.begin(simulated); });
  CHECK(error.kind() == ErrorKind::usage);
  CHECK(contains(error.what(), "holds measured answers, this run would add simulated ones"));
  CHECK(text(study.db(), "SELECT count(*) FROM run") == "1");

  // The same plan with more deviations is the same plan.
  study.plan().effective_sha256 = std::string(64, 'b');
  CHECK(study.begin() == 2);
  CHECK(text(study.db(), "SELECT effective_sha256 = sha256 FROM plan") == "0");
}

TEST_CASE("a deviation can take an arm or a subset out", "[store]") {
  SmallStudy study;
  fill(study);
  Json fewer = study.plan().json;
  fewer["arms"].erase(1);
  fewer["datasets"][0]["subsets"].erase(0);
  const std::string sha256 = study.plan().sha256;
  study.plan() = opened(fewer);
  study.plan().sha256 = sha256;
  study.begin();
  CHECK(text(study.db(), "SELECT arm, subset, n_answered FROM v_accuracy") ==
        "a|massive|2\nc|massive|0");
  CHECK(text(study.db(), "SELECT count(*) FROM prediction") == "9");
}

TEST_CASE("a run that goes on after another says so", "[store]") {
  SmallStudy study;
  study.begin();
  study.close();
  study.open();
  study.begin();
  CHECK(text(study.db(), "SELECT run_id, kind, detail FROM event") ==
        "2|resume|run 1, started 2023-11-14T22:13:20Z, never ended: it was killed, or the machine "
        "went "
        "down; what it had committed is kept");
  CHECK(text(study.db(), "SELECT outcome FROM run WHERE id = 1") == "killed");
  study.store().end_run("interrupted", 130);
  study.begin();
  CHECK(text(study.db(), "SELECT detail FROM event WHERE run_id = 3") ==
        "goes on after run 2 (interrupted)");
  study.store().end_run("complete", 0);
  study.begin();
  CHECK(text(study.db(), "SELECT count(*) FROM event WHERE run_id = 4") == "0");
}

TEST_CASE("what verify found stands, and an absent file takes nothing back", "[store]") {
  SmallStudy study;
  study.begin();
  const std::string states = "SELECT status, problem FROM subset WHERE name = 'boolq'";
  study.check("boolq", SubsetStatus::mismatch, "only line ends differ");
  CHECK(text(study.db(), states) == "mismatch|only line ends differ");
  CHECK(text(study.db(), "SELECT kind, name, detail FROM v_drift") ==
        "subset|boolq|only line ends differ");
  study.check("boolq", SubsetStatus::ok);
  CHECK(text(study.db(), states) == "ok|NULL");
  study.check("boolq", SubsetStatus::missing, "no such file");
  CHECK(text(study.db(), states) == "ok|NULL");
  study.check("boolq", SubsetStatus::mismatch, "other bytes");
  study.check("boolq", SubsetStatus::missing, "no such file");
  CHECK(text(study.db(), states) == "missing|no such file");

  study.check("boolq", SubsetStatus::ok);
  study.plan().effective.datasets[0].subsets[0].sha256 = std::string(64, 'c');
  study.begin();
  CHECK(text(study.db(), states) == "missing|NULL");
}

TEST_CASE("records and prompts that changed are kept but no longer current", "[store]") {
  SmallStudy study;
  study.begin();
  auto records = small_records("boolq", QuestionType::noul, {"true", "false"}, {0, 1, 0});
  const auto first = study.store().put_records("suite", "boolq", records);
  CHECK(study.store().put_records("suite", "boolq", records) == first);
  CHECK(text(study.db(), "SELECT count(*) FROM option_set") == "1");
  CHECK(text(study.db(), "SELECT key FROM option ORDER BY position") == "true\nfalse");

  records[1].sha256 = sha256_hex("another line");
  std::swap(records[0], records[2]);
  const auto second = study.store().put_records("suite", "boolq", records);
  CHECK(second[0] == first[2]);
  CHECK(second[1] != first[1]);
  CHECK(text(study.db(), "SELECT record_id, position, current FROM record ORDER BY id") ==
        "boolq-1|2|1\nboolq-2|1|0\nboolq-3|0|1\nboolq-2|1|1");

  const std::string old_wording = sha256_hex("old"), new_wording = sha256_hex("new");
  const std::int64_t old_prompt =
      study.store().put_prompt(second[0], "none", PromptForm::messages, old_wording);
  CHECK(study.store().put_prompt(second[0], "none", PromptForm::messages, old_wording) ==
        old_prompt);
  study.store().flush();
  CHECK(study.store().put_prompt(second[0], "none", PromptForm::messages, old_wording) ==
        old_prompt);
  const std::int64_t new_prompt =
      study.store().put_prompt(second[0], "none", PromptForm::messages, new_wording);
  const std::int64_t reversed =
      study.store().put_prompt(second[0], "reversed", PromptForm::messages, old_wording);
  CHECK(new_prompt == old_prompt + 1);
  CHECK(reversed == new_prompt + 1);
  study.store().flush();
  CHECK(text(study.db(), "SELECT id, variant, current FROM prompt ORDER BY id") ==
        "1|none|0\n2|none|1\n3|reversed|1");
  CHECK(study.store().put_prompt(second[0], "none", PromptForm::messages, old_wording) ==
        old_prompt);
  study.store().flush();
  CHECK(text(study.db(), "SELECT id, current FROM prompt ORDER BY id") == "1|1\n2|0\n3|1");
}

TEST_CASE("another server or other settings make another configuration", "[store]") {
  SmallStudy study;
  study.begin();
  const Json settings = {{"k", 32}};
  const std::int64_t one = study.store().put_configuration("a", settings, {{"version", "1"}});
  CHECK(study.store().put_configuration("a", settings, {{"version", "1"}}) == one);
  const std::int64_t two = study.store().put_configuration("a", settings, {{"version", "2"}});
  CHECK(two != one);
  CHECK(study.store().put_configuration("b", settings, {{"version", "2"}}) != two);
  CHECK(text(study.db(),
             "SELECT id, settings, identity, current FROM configuration WHERE arm_id = 1 ORDER BY "
             "id") == "1|{\"k\":32}|{\"version\":\"1\"}|0\n2|{\"k\":32}|{\"version\":\"2\"}|1");
  CHECK(study.store().put_configuration("a", settings, {{"version", "1"}}) == one);
  CHECK(text(study.db(), "SELECT id FROM configuration WHERE arm_id = 1 AND current = 1") == "1");
}

TEST_CASE("a server takes the place of another with its first answer, and not before", "[store]") {
  SmallStudy study;
  fill(study);
  const std::string counted = "SELECT sum(n_answered) FROM v_accuracy WHERE arm = 'a'";
  const Json settings =
      parse_json(text(study.db(), "SELECT settings FROM configuration WHERE id = 1"), "settings");
  const std::int64_t other = study.store().put_configuration("a", settings, {{"engine", "other"}});
  CHECK(text(study.db(), counted) == "5");
  study.begin();
  const auto boolq = small_records("boolq", QuestionType::noul, {"true", "false"}, {0, 1, 0});
  Failure failure;
  failure.error_class = "http_error";
  study.fail(other, 1, boolq[0], 1, true, failure);
  study.store().flush();
  CHECK(text(study.db(), counted) == "5");
  study.answer(other, 1, boolq[0], answer_of({0.9, 0.1}));
  study.store().flush();
  CHECK(text(study.db(), counted) == "1");
  CHECK(text(study.db(), "SELECT count(*) FROM prediction") == "10");

  // What the other one answered in this run is set aside: it is kept, and counts nowhere.
  // What an earlier server had finished counts again.
  CHECK(study.store().set_aside(other, {{"engine", "other, then another"}}) == 1);
  CHECK(text(study.db(), counted) == "5");
  CHECK(text(study.db(), "SELECT count(*) FROM prediction") == "10");
  CHECK(text(study.db(), "SELECT sum(predictions) FROM v_drift WHERE kind = 'configuration'") ==
        "1");
  CHECK_FALSE(study.store().has_prediction(other, 1, 0));
  study.answer(other, 1, boolq[0], answer_of({0.9, 0.1}));
  study.store().flush();
  CHECK(text(study.db(), counted) == "1");
}

TEST_CASE("answers of settings that the plan no longer has stop counting when a run begins",
          "[store]") {
  SmallStudy study;
  fill(study);
  Json changed = study.plan().json;
  changed["backends"][0]["context"] = 1024;
  const std::string sha256 = study.plan().sha256;
  study.plan() = opened(changed);
  study.plan().sha256 = sha256;
  study.begin();
  const std::string counted = "SELECT sum(n_answered) FROM v_accuracy GROUP BY arm ORDER BY arm";
  CHECK(text(study.db(), counted) == "0\n4\n0");
  study.plan() = opened(two_subset_plan());
  study.begin();
  CHECK(text(study.db(), counted) == "0\n4\n0");  // until its server is back
  study.store().make_current(study.start("a"));
  CHECK(text(study.db(), counted) == "5\n4\n0");
}

TEST_CASE("what was no read can fail, too", "[store]") {
  SmallStudy study;
  study.begin();
  Failure failure;
  failure.error_class = "http_error";
  failure.message = "HTTP 503";
  failure.http_status = 503;
  failure.body = "busy";
  study.store().put_failure("a", "preflight", 2, false, failure);
  study.store().flush();
  CHECK(text(study.db(),
             "SELECT arm, stage, subset, record_id, attempt, final, class, http_status, body_head "
             "FROM v_failure") == "a|preflight|NULL|NULL|2|0|http_error|503|busy");
  CHECK(text(study.db(), "SELECT kind, detail FROM v_event") ==
        "retry|preflight: http_error: HTTP 503");
}

TEST_CASE("an answer is stored with all its labels, in the record's own order of options",
          "[store]") {
  SmallStudy study;
  study.begin();
  const auto records = small_records("massive", QuestionType::choice, {"x", "y", "z"}, {2, 0});
  const auto ids = study.store().put_records("suite", "massive", records);
  const Prompt reversed = prompt_of(records[0], true);
  const std::int64_t prompt =
      study.store().put_prompt(ids[0], "reversed", PromptForm::messages, reversed.sha256);
  const std::int64_t configuration =
      study.store().put_configuration("b", Json::object(), Json::object());
  Answer answer = answer_of({0.5, 0.25, 0.25});
  answer.distribution.labels[2].source = LabelSource::floor;
  answer.distribution.labels_returned = 2;
  answer.distribution.floor = -9.5;
  answer.distribution.bound = -4.5;
  answer.distribution.entropy = 1.5;
  answer.distribution.argmax_is_label = false;
  answer.distribution.tied_at_bound = true;
  study.store().put_prediction(configuration, {prompt, 0}, {&records[0], &reversed, "reversed", 0},
                               answer);
  CHECK(study.store().has_prediction(configuration, prompt, 0));  // although it still gathers
  CHECK(text(study.db(), "SELECT count(*) FROM prediction") == "0");
  study.store().flush();
  CHECK(study.store().has_prediction(configuration, prompt, 0));
  CHECK_FALSE(study.store().has_prediction(configuration, prompt, 1));
  CHECK_FALSE(study.store().has_prediction(configuration + 1, prompt, 0));
  CHECK(text(study.db(),
             "SELECT predicted, tied, tied_at_bound, label_mass, entropy, argmax_is_label, "
             "labels_returned, "
             "floor, bound, prompt_tokens, requests, latency_ms, run_id, exploratory FROM "
             "prediction") == "2|0|1|0.9|1.5|0|2|-9.5|-4.5|10|1|5.0|1|0");
  CHECK(text(study.db(),
             "SELECT position, option, probability, name FROM label JOIN label_source s ON s.id = "
             "source ORDER BY position") == "0|2|0.5|exact\n1|1|0.25|exact\n2|0|0.25|floor");

  const Prompt other = prompt_of(small_records("q", QuestionType::noul, {"true", "false"}, {0})[0]);
  CHECK_THROWS_AS(study.store().put_prediction(configuration, {prompt, 1},
                                               {&records[0], &other, "none", 1}, answer),
                  std::logic_error);
}

TEST_CASE("answers are committed in groups: when many, when old, when told", "[store]") {
  SmallStudy study;
  study.begin();
  const auto records = small_records("boolq", QuestionType::noul, {"true", "false"}, {0});
  const auto prompts = study.add_records("boolq", records);
  const std::int64_t configuration = study.start("a");
  Db reader = open_store(study.path(), Db::Mode::read_only);
  const auto committed = [&] { return query_integer(reader, "SELECT count(*) FROM prediction"); };
  int repeat = 0;
  const auto answer = [&] {
    study.answer(configuration, prompts[0], records[0], answer_of({0.9, 0.1}), repeat++);
  };
  answer();
  CHECK(committed() == 0);
  study.clock().sleep(std::chrono::milliseconds(199));
  answer();
  CHECK(committed() == 0);
  study.clock().sleep(std::chrono::milliseconds(1));
  answer();
  CHECK(committed() == 3);
  for (std::size_t i = 1; i < Store::kBatchRows; ++i) answer();
  CHECK(committed() == 3);
  answer();
  CHECK(committed() == 3 + static_cast<int>(Store::kBatchRows));
  answer();
  study.store().event("a", "note", "everything else is committed at once, and what waits with it");
  CHECK(committed() == 4 + static_cast<int>(Store::kBatchRows));
  study.store().flush_if_due();
  answer();
  study.store().flush_if_due();
  CHECK(committed() == 4 + static_cast<int>(Store::kBatchRows));
  study.clock().sleep(Store::kBatchAge);
  study.store().flush_if_due();
  CHECK(committed() == 5 + static_cast<int>(Store::kBatchRows));
  answer();
  study.close();
  CHECK(committed() == 6 + static_cast<int>(Store::kBatchRows));
}

TEST_CASE("what a full disk kept out is committed when there is room again", "[store]") {
  SmallStudy study;
  study.begin();
  const auto records = small_records("boolq", QuestionType::noul, {"true", "false"}, {0});
  const auto prompts = study.add_records("boolq", records);
  const std::int64_t configuration = study.start("a");
  study.store().flush();
  const std::int64_t pages = query_integer(study.db(), "PRAGMA page_count");
  study.db().exec("PRAGMA max_page_count = " + std::to_string(pages + 2));
  int repeat = 0;
  const auto answer = [&] {
    study.answer(configuration, prompts[0], records[0], answer_of({0.9, 0.1}), repeat++);
  };
  const Error error = thrown([&] {
    while (repeat < 5000) answer();
  });
  CHECK(error.kind() == ErrorKind::io);
  CHECK(contains(error.what(), "database or disk is full"));
  CHECK(contains(error.hint(), "what was committed stays"));
  const std::int64_t committed = query_integer(study.db(), "SELECT count(*) FROM prediction");
  CHECK(committed % static_cast<std::int64_t>(Store::kBatchRows) == 0);
  CHECK(committed < repeat);
  study.db().exec("PRAGMA max_page_count = 1000000");
  study.store().flush();
  CHECK(query_integer(study.db(), "SELECT count(*) FROM prediction") == repeat);
  CHECK(query_integer(study.db(), "SELECT count(*) FROM label") == 2 * repeat);
}

TEST_CASE("exploratory and registered answers do not stand in for each other", "[store]") {
  SmallStudy study;
  RunInfo exploratory;
  exploratory.exploratory = true;
  study.begin(exploratory);
  const auto records = small_records("massive", QuestionType::choice, {"play", "alarm"}, {1, 0});
  const auto prompts = study.add_records("massive", records);
  const std::int64_t configuration = study.start("a");
  study.answer(configuration, prompts[0], records[0], answer_of({0.1, 0.9}));
  study.answer(configuration, prompts[1], records[1], answer_of({0.1, 0.9}));
  study.store().flush();
  const std::string counted =
      "SELECT n_answered, n_correct FROM v_accuracy WHERE arm = 'a' AND subset = 'massive'";
  CHECK(text(study.db(), counted) == "2|1");
  CHECK(text(study.db(), "SELECT arm, n_answered, n_correct, counted FROM v_exploratory") ==
        "a|2|1|1");

  study.begin();
  CHECK_FALSE(study.store().has_prediction(configuration, prompts[0], 0));
  CHECK(text(study.db(), counted) == "0|0");
  study.answer(configuration, prompts[0], records[0], answer_of({0.9, 0.1}));
  study.store().flush();
  CHECK(text(study.db(), counted) == "1|0");
  CHECK(text(study.db(), "SELECT arm, n_answered, n_correct, counted FROM v_exploratory") ==
        "a|2|1|0");
}

TEST_CASE("failures keep what came back, as text", "[store]") {
  SmallStudy study;
  study.begin();
  const auto records = small_records("boolq", QuestionType::noul, {"true", "false"}, {0});
  const auto prompts = study.add_records("boolq", records);
  const std::int64_t configuration = study.start("a");
  Failure failure;
  failure.error_class = "http_error";
  failure.message = "502 \xff";
  failure.http_status = 502;
  failure.body = std::string(499, 'x') + "\xc3\xbc and more";
  study.fail(configuration, prompts[0], records[0], 1, false, failure);
  failure.body.clear();
  failure.http_status = 0;
  study.fail(configuration, prompts[0], records[0], 2, true, failure);
  study.store().flush();
  CHECK(text(study.db(),
             "SELECT attempt, final, class, http_status, message, body_sha256, body_head, at "
             "FROM failure") ==
        "1|0|http_error|502|502 \xef\xbf\xbd|" +
            sha256_hex(std::string(499, 'x') + "\xc3\xbc and more") + "|" + std::string(499, 'x') +
            "|2023-11-14T22:13:20Z\n"
            "2|1|http_error|NULL|502 \xef\xbf\xbd|NULL|NULL|2023-11-14T22:13:20Z");
  CHECK(text(study.db(), "SELECT kind, detail FROM v_event WHERE kind IN ('retry', 'failure')") ==
        "retry|boolq boolq-1: http_error: 502 \xef\xbf\xbd\nfailure|boolq boolq-1: http_error: 502 "
        "\xef\xbf\xbd");
}

TEST_CASE("stages, events and findings are rows", "[store]") {
  SmallStudy study;
  study.begin();
  const std::int64_t verify = study.store().begin_stage({}, "verify");
  const std::int64_t boot = study.store().begin_stage("a", "boot");
  study.clock().sleep(std::chrono::milliseconds(2500));
  study.store().end_stage(boot, "ok", "READY after 2.5 s");
  study.store().end_stage(verify, "failed");
  study.store().event({}, "warning", "a byte order mark");
  study.store().finding("a", {"exact read", true, "all labels", "18 of 18"});
  CHECK(text(study.db(), "SELECT arm, stage, seconds, outcome, detail FROM v_stage") ==
        "NULL|verify|2.5|failed|NULL\na|boot|2.5|ok|READY after 2.5 s");
  CHECK(text(study.db(), "SELECT arm, kind, detail FROM v_event") ==
        "NULL|verify|failed\na|boot|ok: READY after 2.5 s\nNULL|warning|a byte order mark");
  CHECK(text(study.db(), "SELECT arm, capability, ok, verdict, evidence FROM v_finding") ==
        "a|exact read|1|all labels|18 of 18");
  CHECK_THROWS_AS(study.store().end_stage(verify, "ok"), std::logic_error);
  CHECK_THROWS_AS(study.store().event("nobody", "k", "d"), std::logic_error);
}

TEST_CASE("an arm with answers stays started", "[store]") {
  SmallStudy study;
  fill(study);
  study.store().arm_status("a", "not run", "terms not accepted");
  study.store().arm_status("c", "failed", "exit code 1");
  CHECK(text(study.db(), "SELECT name, status, reason FROM arm ORDER BY position") ==
        "a|started|NULL\nb|started|NULL\nc|failed|exit code 1");
  CHECK(text(study.db(), "SELECT kind, detail FROM event WHERE arm_id = 1") ==
        "not run|terms not accepted");
}
