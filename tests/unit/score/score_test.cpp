#include "score/score.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "../base/thrown.h"
#include "../store/small_study.h"
#include "base/error.h"
#include "base/python_random.h"
#include "catch.h"
#include "report/model.h"
#include "report/rendering.h"
#include "stats/sums.h"

using namespace preval;
using namespace preval::test;

namespace {

double number(Db& db, const std::string& sql) {
  Stmt query(db, sql);
  REQUIRE(query.step());
  REQUIRE_FALSE(query.is_null(0));
  return query.real(0);
}

void score(SmallStudy& study) {
  study.store().flush();
  recompute_scores(study.db(), study.clock(), "0.1.0");
}

Json study_vectors() {
  std::ifstream file(PREVAL_SOURCE_DIR "/tests/data/study-vectors.json");
  std::ostringstream text;
  text << file.rdbuf();
  return Json::parse(text.str());
}

struct Synthetic {
  std::vector<std::vector<double>> p;
  std::vector<int> gold;
};

/// The vectors' own recipe, word for word.
Synthetic synthetic144() {
  Synthetic made;
  PythonRandom random(7);
  for (int i = 0; i < 144; ++i) {
    std::vector<double> w;
    for (int k = 0; k < 5; ++k) w.push_back(std::pow(random.uniform(), 3) + 1e-9);
    const double sum = python_sum(w);
    for (double& each : w) each /= sum;
    made.p.push_back(w);
    made.gold.push_back(static_cast<int>(random.below(5)));
  }
  return made;
}

SmallStudy one_subset(int records, const std::string& scoring = "suite",
                      Json calibration = Json()) {
  Json plan = small_plan(Json::array({small_subset("summeval", "score", records)}),
                         Json::array({small_arm("a", "one", "exact")}));
  plan["datasets"][0]["scoring"] = scoring;
  if (!calibration.is_null()) plan["calibration"] = calibration;
  return SmallStudy(plan);
}

void fill_synthetic(SmallStudy& study, std::size_t count = 144) {
  const Synthetic made = synthetic144();
  study.begin();
  const auto records =
      small_records("summeval", QuestionType::score, {"0", "1", "2", "3", "4"},
                    {made.gold.begin(), made.gold.begin() + static_cast<std::ptrdiff_t>(count)});
  const auto prompts = study.add_records("summeval", records);
  const std::int64_t configuration = study.start("a");
  // Answered in another order than that of the file: scores must not notice.
  for (std::size_t i = count; i-- > 0;) {
    study.answer(configuration, prompts[i], records[i], answer_of(made.p[i]));
  }
  score(study);
}

Json published(const std::string& subset, int n, double accuracy, const std::string& sha256,
               double ece) {
  return {
      {"preval_published", 1},
      {"model", "jev"},
      {"source", "s"},
      {"subsets",
       {{subset, {{"n", n}, {"accuracy", accuracy}, {"ece", ece}, {"dataset_sha256", sha256}}}}}};
}

}  // namespace

TEST_CASE("stored answers score as the study's golden vectors, to the last bit", "[score]") {
  SmallStudy study = one_subset(144);
  fill_synthetic(study);
  const Json golden = study_vectors().at("synthetic144");
  Db& db = study.db();
  CHECK(number(db, "SELECT accuracy FROM v_accuracy") == golden.at("acc").get<double>());
  CHECK(number(db, "SELECT ece FROM v_calibration") == golden.at("ece10").get<double>());
  CHECK(number(db, "SELECT brier FROM v_calibration") == golden.at("brier").get<double>());
  CHECK(number(db, "SELECT nll FROM v_calibration") == golden.at("nll").get<double>());
  CHECK(number(db, "SELECT ece_after_50 FROM v_calibration") ==
        golden.at("ece_fit50").get<double>());
  CHECK(rows_of(db,
                "SELECT bins, spacing, edges, n, nll_clip, labels, splits, temperature_low, "
                "temperature_high, at_edge FROM v_calibration") ==
        "10|equal width|left-closed|144|1.0e-15|50|20|7.9869|7.9869|20");
  CHECK(rows_of(db, "SELECT sum(n), count(*), sum(n * accuracy) FROM v_calibration_bins") ==
        "144|10|36.0");
  CHECK(rows_of(db,
                "SELECT ece = (SELECT ece FROM score_calibration), n_subsets, of_subsets, "
                "label_mass FROM "
                "score_median") == "1|1|1|0.9");
}

TEST_CASE("A12: label masses are reported per item and as quantiles", "[score]") {
  SmallStudy study = one_subset(5);
  study.begin();
  const auto records =
      small_records("summeval", QuestionType::score, {"0", "1", "2", "3", "4"}, {0, 1, 2, 3, 4});
  const auto prompts = study.add_records("summeval", records);
  const std::int64_t configuration = study.start("a");
  const std::vector<double> masses{0.4, 3.7e-7, 0.5, 0.2, 0.3};
  for (std::size_t i = 0; i < 5; ++i) {
    study.answer(configuration, prompts[i], records[i],
                 answer_of({0.4, 0.3, 0.1, 0.1, 0.1}, masses[i]));
  }
  score(study);
  CHECK(rows_of(study.db(), "SELECT n, least, p05, p25, median, p75, largest FROM v_label_mass") ==
        "5|3.7e-07|3.7e-07|0.2|0.3|0.4|0.5");
  CHECK(number(study.db(), "SELECT min(label_mass) FROM v_prediction") == 3.7e-7);
  CHECK(contains(render(build_report(study.db()), ReportFormat::markdown, {}), "0.300 (summeval)"));
}

TEST_CASE("E12: errors count as wrong in the headline, answered only stands beside it", "[score]") {
  // 100 items, 10 errors, 80 right.
  SmallStudy study(small_plan(Json::array({small_subset("boolq", "noul", 100)}),
                              Json::array({small_arm("a", "one", "exact")})));
  study.begin();
  const auto records =
      small_records("boolq", QuestionType::noul, {"true", "false"}, std::vector<int>(100, 0));
  const auto prompts = study.add_records("boolq", records);
  const std::int64_t configuration = study.start("a");
  Failure failure;
  failure.error_class = "timeout";
  for (std::size_t i = 0; i < 100; ++i) {
    if (i >= 90) {
      study.fail(configuration, prompts[i], records[i], 4, true, failure);
    } else {
      study.answer(
          configuration, prompts[i], records[i],
          answer_of(i < 80 ? std::vector<double>{0.9, 0.1} : std::vector<double>{0.2, 0.8}));
    }
  }
  score(study);
  CHECK(rows_of(study.db(), "SELECT n_registered, n_answered, n_correct FROM v_accuracy") ==
        "100|90|80");
  CHECK(number(study.db(), "SELECT accuracy FROM v_accuracy") == 0.8);
  CHECK(number(study.db(), "SELECT answered_only FROM v_accuracy") == 80.0 / 90);
  CHECK(rows_of(study.db(), "SELECT n_failed, n_not_asked FROM v_completeness") == "10|0");
}

TEST_CASE("tasks have fifteen right-closed bins and their own clip and order", "[score]") {
  SmallStudy study = one_subset(144, "tasks");
  fill_synthetic(study);
  CHECK(rows_of(study.db(), "SELECT bins, edges, nll_clip FROM v_calibration") ==
        "15|right-closed|1.0e-12");
  // Ids sort as strings ("…-10" before "…-2"); sums of other order may differ in the last bits
  // only.
  CHECK(number(study.db(), "SELECT ece FROM v_calibration") ==
        Approx(study_vectors().at("synthetic144").at("ece15").get<double>()).epsilon(1e-14));
  CHECK(rows_of(study.db(), "SELECT count(*) FROM score_median") == "0");
}

TEST_CASE("the figure after 50 labels needs 50 labels in half of the records", "[score]") {
  SmallStudy few = one_subset(99);
  fill_synthetic(few, 99);
  CHECK(
      rows_of(few.db(), "SELECT n, ece IS NULL, ece_after_50, splits, labels FROM v_calibration") ==
      "99|0|-|-|50");
  CHECK(rows_of(few.db(), "SELECT ece IS NULL, ece_after_50 FROM score_median") == "0|-");
  SmallStudy enough = one_subset(100);
  fill_synthetic(enough, 100);
  CHECK(rows_of(enough.db(), "SELECT n, ece_after_50 IS NULL, splits FROM v_calibration") ==
        "100|0|20");
  SmallStudy planned = one_subset(99, "own", {{"suite_bins", 5}, {"labels", 10}, {"splits", 3}});
  fill_synthetic(planned, 99);
  CHECK(rows_of(planned.db(),
                "SELECT bins, labels, splits, ece_after_50 IS NULL FROM v_calibration") ==
        "5|10|3|0");
}

TEST_CASE("the hand-counted study", "[score]") {
  SmallStudy study;
  fill(study);
  score(study);
  Db& db = study.db();
  CHECK(
      rows_of(db,
              "SELECT a.name, scope, scope_kind, n_subsets, of_subsets, n_registered, n_answered, "
              "n_correct, round(accuracy, 4), round(baseline, 4) FROM score_accuracy JOIN arm a ON "
              "a.id = "
              "arm_id ORDER BY arm_id, scope_kind DESC, scope") ==
      "a|boolq|subset|1|1|3|3|2|0.6667|0.6667\n"
      "a|massive|subset|1|1|2|2|1|0.5|0.5\n"
      "a|all|pooled|2|2|5|5|3|0.6|0.6\n"
      "a|choice|pooled|1|1|2|2|1|0.5|0.5\n"
      "a|noul|pooled|1|1|3|3|2|0.6667|0.6667\n"
      "a|macro|macro|2|2|5|5|3|0.5833|0.5833\n"
      "b|boolq|subset|1|1|3|2|1|0.3333|0.6667\n"
      "b|massive|subset|1|1|2|2|2|1.0|0.5\n"
      "b|all|pooled|2|2|5|4|3|0.6|0.6\n"
      "b|choice|pooled|1|1|2|2|2|1.0|0.5\n"
      "b|noul|pooled|1|1|3|2|1|0.3333|0.6667\n"
      "b|macro|macro|2|2|5|4|3|0.6667|0.5833");
  // Wilson for 2 of 3 and z = 1.959964, by hand: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n).
  CHECK(rows_of(db,
                "SELECT round(low, 6), round(high, 6), method, baseline_key FROM v_accuracy WHERE "
                "arm = 'a' "
                "AND subset = 'boolq'") == "0.20766|0.938508|Wilson, z 1.959964|true");
  // Confidences .9 right, .75 right, .6 wrong: |.9-1|/3 + |.75-1|/3 + |.6-0|/3.
  CHECK(number(db, "SELECT ece FROM v_calibration WHERE arm = 'a' AND subset = 'boolq'") ==
        Approx((0.1 + 0.25 + 0.6) / 3).epsilon(1e-12));
  CHECK(number(db, "SELECT brier FROM v_calibration WHERE arm = 'a' AND subset = 'boolq'") ==
        Approx((0.02 + 0.125 + 0.72) / 3).epsilon(1e-12));
  CHECK(number(db, "SELECT nll FROM v_calibration WHERE arm = 'a' AND subset = 'boolq'") ==
        Approx(-(std::log(0.9) + std::log(0.75) + std::log(0.4)) / 3).epsilon(1e-12));
  CHECK(rows_of(db,
                "SELECT arm_a, arm_b, subset, scope_kind, n, same, share, low, same_checkpoint "
                "FROM v_agreement") ==
        "a|b|boolq|subset|2|1|0.5|-|1\na|b|massive|subset|2|1|0.5|-|1\na|b|all|pooled|4|2|0.5|-|1\n"
        "a|b|choice|pooled|2|1|0.5|-|1\na|b|noul|pooled|2|1|0.5|-|1");
  CHECK(
      rows_of(db,
              "SELECT all_returned, label_mass FROM score_accuracy WHERE scope_kind = 'subset'") ==
      "1.0|0.9\n1.0|0.9\n1.0|0.9\n1.0|0.9");
  CHECK(rows_of(db, "SELECT at, tool_version, predictions FROM scored") ==
        "2023-11-14T22:13:20Z|0.1.0|9");
  const std::string before = rows_of(db, "SELECT * FROM score_accuracy");
  score(study);
  CHECK(rows_of(db, "SELECT * FROM score_accuracy") == before);
}

TEST_CASE("missing subsets are not counted, and pooled rows say so", "[score]") {
  SmallStudy study;
  fill(study);
  study.check("massive", SubsetStatus::mismatch, "other bytes");
  score(study);
  CHECK(rows_of(study.db(),
                "SELECT scope, n_subsets, of_subsets, n_registered, n_correct FROM score_accuracy "
                "WHERE arm_id = 1 ORDER BY scope_kind DESC, scope") ==
        "boolq|1|1|3|2\nall|1|2|3|2\nchoice|0|1|0|0\nnoul|1|1|3|2\nmacro|1|2|3|2");
  CHECK(rows_of(study.db(),
                "SELECT accuracy, low, method FROM score_accuracy WHERE arm_id = 1 AND scope = "
                "'choice'") == "-|-|-");
  CHECK(rows_of(study.db(), "SELECT n_subsets, of_subsets FROM score_median WHERE arm_id = 1") ==
        "1|2");
}

TEST_CASE("subsets that an arm cannot read are not measured on it, and pooled rows say so",
          "[score]") {
  SmallStudy study;
  fill(study);
  // One of the two questions of massive, or both, are now too wide for a letter each.
  const int wide = GENERATE(1, 2);
  std::vector<std::string> keys{"play", "alarm"};
  for (int i = 0; i < 25; ++i) keys.push_back(fmt::format("other-{}", i));
  auto records = small_records("massive", QuestionType::choice, {"play", "alarm"}, {1, 0});
  for (int i = 0; i < wide; ++i) {
    Record& record = records[static_cast<std::size_t>(i)];
    record =
        small_records("massive", QuestionType::choice, keys, {1, 0})[static_cast<std::size_t>(i)];
    record.sha256 = sha256_hex("wide " + record.id);
  }
  study.add_records("massive", records);
  score(study);
  const std::string all = rows_of(
      study.db(),
      "SELECT scope, n_subsets, of_subsets, n_registered, n_answered, accuracy IS NULL "
      "FROM score_accuracy WHERE arm_id = 1 AND scope IN ('massive', 'all') ORDER BY scope");
  const std::string cell = rows_of(study.db(),
                                   "SELECT n_registered, n_answered, accuracy, state FROM "
                                   "v_accuracy WHERE arm = 'a' AND subset = "
                                   "'massive'");
  const std::string completeness =
      rows_of(study.db(),
              "SELECT n_answered, n_not_asked, n_unreadable FROM v_completeness WHERE arm = 'a' "
              "AND subset = 'massive'");
  if (wide == 2) {
    CHECK(all == "all|1|2|3|3|0");
    CHECK(cell ==
          "2|0|-|not readable: 2 of 2 questions have up to 27 options, reads by token take at most "
          "26");
    CHECK(completeness == "0|0|2");
  } else {
    CHECK(all == "all|2|2|5|4|0\nmassive|1|1|2|1|0");
    CHECK(cell ==
          "2|1|0.5|complete but for what is not readable: 1 of 2 questions have up to 27 options, "
          "reads by token take at most 26");
    CHECK(completeness == "1|0|1");
  }
  // An arm that was not run has nothing to say about it.
  CHECK(rows_of(study.db(),
                "SELECT accuracy, state FROM v_accuracy WHERE arm = 'c' AND subset = "
                "'massive'") == "-|not run: terms not accepted");

  const ReportModel report = build_report(study.db());
  const ReportCell& massive = report.groups[0].arms[0].cells[1];
  CHECK(massive.n_unreadable == wide);
  CHECK(massive.n_not_asked() == 0);
  CHECK(massive.accuracy.has_value() == (wide == 1));
  const std::string text = render(report, ReportFormat::markdown, {});
  CHECK(contains(
      text, "arm a, subset massive: " +
                std::string(wide == 2 ? "not readable, no accuracy: 2 of 2"
                                      : "in part not readable, which counts as wrong: 1 of 2")));
  CHECK_FALSE(contains(text, "not all records were asked on a"));
  // registered, answered, given up, not asked, not readable: together what was registered
  CHECK(contains(text, wide == 2 ? "| a | 5 | 3 | 0 | 0 | 2 |" : "| a | 5 | 4 | 0 | 0 | 1 |"));
}

TEST_CASE("reads that returned little are counted", "[score]") {
  SmallStudy study = one_subset(3);
  study.begin();
  const auto records = small_records("summeval", QuestionType::score, {"0", "1", "2"}, {0, 1, 2});
  const auto prompts = study.add_records("summeval", records);
  const std::int64_t configuration = study.start("a");
  for (std::size_t i = 0; i < 3; ++i) {
    Answer answer = answer_of({0.5, 0.25, 0.25}, 0.1 * static_cast<double>(i + 1));
    answer.distribution.labels_returned = static_cast<int>(i) + 1;
    answer.distribution.tied = i == 1;
    study.answer(configuration, prompts[i], records[i], answer);
  }
  score(study);
  CHECK(
      rows_of(study.db(),
              "SELECT n_tied, n_one_label, round(all_returned, 3), label_mass FROM score_accuracy "
              "WHERE scope_kind = 'subset'") == "1|1|0.333|0.2");
  study.db().exec("UPDATE prediction SET labels_returned = NULL WHERE id = 1");
  score(study);
  CHECK(
      rows_of(study.db(),
              "SELECT n_one_label, all_returned FROM score_accuracy WHERE scope_kind = 'subset'") ==
      "0|-");
}

TEST_CASE("absent labels: every score at the bound and at nothing", "[score]") {
  // Worked out with math.exp and math.fsum from the log-probabilities of fill_absent.
  struct Expected {
    const char *scoring, *binning;
    double ece_at_bound, nll_at_nothing;
  };
  for (const Expected& expected :
       {Expected{"suite", "10|left-closed|1.0e-15", 0.15462218729654614, 17.468899661482183},
        Expected{"tasks", "15|right-closed|1.0e-12", 0.3923088185824497, 14.015022021991117}}) {
    INFO(expected.scoring);
    SmallStudy study(absent_plan(expected.scoring));
    fill_absent(study);
    score(study);
    Db& db = study.db();
    CHECK(rows_of(db, "SELECT arm, subset, n, n_incomplete, n_tied_at_bound FROM v_bounds") ==
          "b|massive|4|3|1");
    CHECK(rows_of(db, "SELECT bins, edges, nll_clip FROM v_bounds") == expected.binning);
    const auto is = [&](const std::string& column, double value) {
      INFO(column);
      CHECK(number(db, "SELECT " + column + " FROM v_bounds") == Approx(value).epsilon(1e-14));
    };
    is("confidence", 0.8410610710043906);
    is("confidence_at_bound", 0.5624162904671315);
    is("confidence_at_nothing", 0.8456939181319263);
    is("ece", 0.6498240501453856);
    is("ece_at_bound", expected.ece_at_bound);
    is("ece_at_nothing", 0.6543060818680737);
    is("brier", 1.0926197131024478);
    is("brier_at_bound", 0.5259316913057988);
    is("brier_at_nothing", 1.1061986935522572);
    is("nll", 2.9541821415136527);
    is("nll_at_bound", 0.8747427371673492);
    is("nll_at_nothing", expected.nll_at_nothing);
    for (const std::string figure : {"confidence", "ece", "brier", "nll"}) {
      INFO(figure);
      const std::string ends = figure + "_at_bound, " + figure + "_at_nothing";
      CHECK(rows_of(db, "SELECT " + figure + "_low, " + figure + "_high FROM v_bounds") ==
            rows_of(db, "SELECT min(" + ends + "), max(" + ends + ") FROM v_bounds"));
    }
    CHECK(rows_of(db,
                  "SELECT c.ece = b.ece, c.brier = b.brier, c.nll = b.nll FROM v_calibration c "
                  "JOIN v_bounds b USING (arm, subset)") == "1|1|1");
    const std::string before = rows_of(db, "SELECT * FROM score_bounds");
    score(study);
    CHECK(rows_of(db, "SELECT * FROM score_bounds") == before);
  }
}

TEST_CASE("absent labels: nothing is said where nothing is known", "[score]") {
  // Exact reads, and top-k reads without a bound.
  SmallStudy plain;
  fill(plain);
  score(plain);
  CHECK(rows_of(plain.db(), "SELECT count(*) FROM score_bounds") == "0");
  SmallStudy study(absent_plan());
  fill_absent(study);
  const auto rows_after = [&](const std::string& sql) {
    study.store().flush();
    study.db().exec(sql);
    score(study);
    return rows_of(study.db(), "SELECT n, n_incomplete, n_tied_at_bound FROM score_bounds");
  };
  // A complete answer needs no bound, an incomplete one does.
  CHECK(rows_after("UPDATE prediction SET bound = NULL WHERE id = 3") == "4|3|1");
  CHECK(rows_after("UPDATE prediction SET bound = NULL WHERE id = 1") == "");
  const Error error = thrown([&] { rows_after("UPDATE prediction SET bound = 9e999"); });
  CHECK(error.kind() == ErrorKind::drift);
  CHECK(contains(error.what(), "record massive-1 was changed: a bound that is none"));
}

TEST_CASE("absent labels: complete answers are the same at both ends", "[score]") {
  SmallStudy study(small_plan(Json::array({small_subset("massive", "choice", 2)}),
                              Json::array({small_arm("b", "one", "top")})));
  study.begin();
  const auto records = small_records("massive", QuestionType::choice, {"play", "alarm"}, {0, 1});
  const auto prompts = study.add_records("massive", records);
  const std::int64_t b = study.start("b");
  study.answer(b, prompts[0], records[0], top_answer({{0, -0.3}, {1, -1.7}}, 2));
  study.answer(b, prompts[1], records[1], top_answer({{0, -0.4}, {1, -1.3}, {9, -5.0}}, 2));
  score(study);
  CHECK(rows_of(study.db(),
                "SELECT n, n_incomplete, n_tied_at_bound, confidence_at_bound = confidence, "
                "confidence_at_nothing = confidence, ece_at_bound = ece, ece_at_nothing = ece, "
                "brier_at_bound = brier, brier_at_nothing = brier, nll_at_bound = nll, "
                "nll_at_nothing = nll FROM v_bounds") == "2|0|0|1|1|1|1|1|1|1|1");
}

TEST_CASE("published figures are compared where the records are the same", "[score]") {
  SmallStudy study = one_subset(144);
  const std::string sha256 = study.plan().effective.datasets[0].subsets[0].sha256;
  fill_synthetic(study);
  study.begin({}, published("summeval", 144, 0.812, sha256, 0.079));
  score(study);
  // Ours is 36 of 144. Pooled: round(.812 * 144) = 117 of 144.
  CHECK(rows_of(study.db(),
                "SELECT subset, scope_kind, comparable, n_subsets, of_subsets, published_n, n, "
                "published_accuracy, accuracy, round(difference, 6), published_ece, ece IS NULL "
                "FROM v_published_vs_ours") ==
        "summeval|subset|1|1|1|144|144|0.812|0.25|0.562|0.079|0\n"
        "all|pooled|1|1|1|144|144|0.8125|0.25|0.5625|-|1\n"
        "score|pooled|1|1|1|144|144|0.8125|0.25|0.5625|-|1");
  const double half = 1.959964 * std::sqrt(0.812 * (1 - 0.812) / 144 + 0.25 * 0.75 / 144);
  CHECK(number(study.db(), "SELECT low FROM v_published_vs_ours WHERE scope_kind = 'subset'") ==
        Approx(0.562 - half).epsilon(1e-12));

  study.begin({}, published("summeval", 144, 0.812, std::string(64, 'f'), 0.079));
  score(study);
  CHECK(rows_of(study.db(),
                "SELECT subset, comparable, why_not, published_accuracy, accuracy, difference FROM "
                "v_published_vs_ours") ==
        "summeval|0|different records|0.812|-|-\nall|0|different records|-|-|-\nscore|0|different "
        "records|-|-|-");
  study.begin({}, published("elsewhere", 144, 0.812, sha256, 0.079));
  score(study);
  CHECK(rows_of(study.db(), "SELECT count(*) FROM v_published_vs_ours") == "0");
}

TEST_CASE("why an arm is not compared", "[score]") {
  SmallStudy study;
  const std::string sha256 = study.plan().effective.datasets[0].subsets[0].sha256;
  study.begin({}, published("boolq", 3, 0.667, sha256, 0.1));
  score(study);
  const std::string reasons =
      "SELECT arm, why_not FROM v_published_vs_ours WHERE scope_kind = 'subset'";
  CHECK(rows_of(study.db(), reasons) == "a|subset missing\nb|subset missing\nc|subset missing");
  study.check("boolq", SubsetStatus::ok);
  study.start("a");
  score(study);
  CHECK(rows_of(study.db(), reasons) == "a|no answer\nb|arm not run\nc|arm not run");
}

TEST_CASE("own data and tasks are never compared with published figures", "[score]") {
  for (const std::string scoring : {"own", "tasks"}) {
    SmallStudy study = one_subset(144, scoring);
    const std::string sha256 = study.plan().effective.datasets[0].subsets[0].sha256;
    fill_synthetic(study);
    study.begin({}, published("summeval", 144, 0.812, sha256, 0.079));
    score(study);
    CHECK(rows_of(study.db(), "SELECT count(*) FROM score_published") == "0");
  }
}

TEST_CASE("nothing to score gives defined values", "[score]") {
  SmallStudy study;
  score(study);
  CHECK(rows_of(study.db(), "SELECT count(*) FROM score_accuracy") == "0");
  study.begin();
  study.check("boolq", SubsetStatus::ok);
  study.start("a");
  score(study);
  CHECK(rows_of(study.db(),
                "SELECT scope, n_answered, accuracy, low, answered_only, all_returned FROM "
                "score_accuracy WHERE scope_kind = 'subset'") == "boolq|0|0.0|0.0|-|-");
  CHECK(rows_of(study.db(), "SELECT n, ece, brier, nll, ece_after_50 FROM v_calibration") ==
        "0|-|-|-|-");
  CHECK(rows_of(study.db(), "SELECT count(*) FROM score_bin") == "0");
}

TEST_CASE("answers that no run would have written are drift, not scores", "[score]") {
  const auto broken = [](const std::string& sql) {
    SmallStudy study;
    fill(study);
    study.store().flush();
    study.db().exec(sql);
    return thrown([&] { score(study); });
  };
  Error error = broken("DELETE FROM label WHERE prediction_id = 2 AND position = 1");
  CHECK(error.kind() == ErrorKind::drift);
  CHECK(
      contains(error.what(),
               "the stored answer of arm a to boolq record boolq-2 was changed: a label too few"));
  CHECK(contains(broken("UPDATE label SET probability = -1 WHERE prediction_id = 2").what(),
                 "a probability that is none"));
  CHECK(contains(broken("UPDATE label SET probability = 9e999 WHERE prediction_id = 2").what(),
                 "a probability that is none"));
  CHECK(contains(
      broken("UPDATE label SET option = 7 WHERE prediction_id = 2 AND position = 1").what(),
      "a label of no option"));
  CHECK(contains(broken("UPDATE record SET target = 7 WHERE id = 2").what(),
                 "its target is no option"));
  CHECK(contains(
      broken("UPDATE label SET probability = 0.9 WHERE prediction_id = 2 AND position = 0").what(),
      "a probability is not that of its log-probability"));
  CHECK(contains(
      broken("UPDATE label SET logprob = -0.001 WHERE prediction_id = 2 AND position = 1").what(),
      "a probability is not that of its log-probability"));
  CHECK(contains(broken("UPDATE prediction SET predicted = 1 - predicted WHERE id = 2").what(),
                 "the prediction is not its most probable label"));
  CHECK(contains(broken("UPDATE prediction SET label_mass = 0.123 WHERE id = 2").what(),
                 "the label mass is not the sum of its labels"));
  CHECK(contains(broken("UPDATE subset SET registered_records = 2 WHERE name = 'boolq'").what(),
                 "3 records of boolq are answered by arm a, 2 are registered"));
}
