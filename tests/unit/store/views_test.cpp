#include <fmt/format.h>

#include "base/text.h"
#include "catch.h"
#include "small_study.h"

using namespace preval;
using namespace preval::test;

namespace {

std::string columns_of(Db& db, const std::string& view) {
  Stmt query(db, "SELECT name FROM pragma_table_info(?)");
  query.bind(1, view);
  std::vector<std::string> names;
  while (query.step()) names.push_back(query.text(0));
  return join(names, ", ");
}

}  // namespace

TEST_CASE("the views that others rely on begin with the columns of the contract", "[store]") {
  SmallStudy study;
  const std::vector<std::pair<std::string, std::string>> contract = {
      {"v_prediction",
       "arm, subset, record_id, variant, repeat, predicted, target, correct, label_mass, "
       "labels_returned, "
       "n_labels, tied, read, latency_ms"},
      {"v_label",
       "arm, subset, record_id, variant, repeat, position, key, logprob, probability, source"},
      {"v_accuracy", "arm, subset, n_registered, n_answered, n_correct, accuracy, low, high"},
      {"v_agreement", "arm_a, arm_b, subset, n, same, share, low"},
      {"v_calibration",
       "arm, subset, bins, spacing, edges, ece, floor_mean, floor_95, brier, nll, ece_after_50"},
      {"v_bounds",
       "arm, subset, n, n_incomplete, n_tied_at_bound, confidence, confidence_at_bound, "
       "confidence_at_nothing, confidence_low, confidence_high, ece"},
      {"v_published_vs_ours",
       "arm, subset, published_accuracy, accuracy, difference, low, high, published_ece, ece"}};
  for (const auto& [view, columns] : contract) {
    INFO(view);
    CHECK(columns_of(study.db(), view).starts_with(columns));
  }
}

TEST_CASE("every column of every view has a meaning, and every meaning a column", "[store]") {
  SmallStudy study;
  CHECK(rows_of(study.db(),
                "SELECT v.name, c.name FROM sqlite_master v, pragma_table_info(v.name) c WHERE "
                "v.type = 'view' "
                "AND NOT EXISTS (SELECT 1 FROM dictionary d WHERE d.view = v.name AND d.column = "
                "c.name)") == "");
  CHECK(
      rows_of(
          study.db(),
          "SELECT view, column FROM dictionary d WHERE column <> '*' AND NOT EXISTS (SELECT 1 FROM "
          "pragma_table_info(d.view) c WHERE c.name = d.column)") == "");
  CHECK(rows_of(study.db(),
                "SELECT name FROM sqlite_master WHERE type = 'view' AND name NOT IN (SELECT view "
                "FROM dictionary WHERE column = '*')") == "");
}

TEST_CASE("every view can be read from an empty store", "[store]") {
  SmallStudy study;
  Stmt views(study.db(), "SELECT name FROM sqlite_master WHERE type = 'view'");
  while (views.step()) {
    INFO(views.text(0));
    CHECK(rows_of(study.db(), "SELECT * FROM " + views.text(0)) == "");
  }
}

TEST_CASE("accuracy counts the unanswered as wrong and names what was not run", "[store]") {
  SmallStudy study;
  fill(study);
  CHECK(rows_of(study.db(),
                "SELECT arm, subset, n_registered, n_answered, n_correct, round(accuracy, 4), "
                "low, round(answered_only, 4), state FROM v_accuracy") ==
        "a|boolq|3|3|2|0.6667|-|0.6667|complete\n"
        "a|massive|2|2|1|0.5|-|0.5|complete\n"
        "b|boolq|3|2|1|0.3333|-|0.5|incomplete\n"
        "b|massive|2|2|2|1.0|-|1.0|complete\n"
        "c|boolq|3|0|0|-|-|-|not run: terms not accepted\n"
        "c|massive|2|0|0|-|-|-|not run: terms not accepted");
  study.check("boolq", SubsetStatus::mismatch, "other bytes");
  CHECK(rows_of(study.db(),
                "SELECT arm, n_answered, accuracy, state FROM v_accuracy WHERE subset = 'boolq'") ==
        "a|0|-|subset mismatch\nb|0|-|subset mismatch\nc|0|-|not run: terms not accepted");
}

TEST_CASE("an interval is shown only while it belongs to the counts", "[store]") {
  SmallStudy study;
  fill(study);
  study.db().exec(
      "INSERT INTO score_accuracy (arm_id, dataset, scope, scope_kind, n_subsets, of_subsets, "
      "n_registered, "
      "n_answered, n_correct, accuracy, low, high, n_tied, n_one_label) VALUES "
      "(1, 'suite', 'boolq', 'subset', 1, 1, 3, 3, 2, 0.67, 0.2, 0.9, 0, 0), "
      "(1, 'suite', 'massive', 'subset', 1, 1, 2, 1, 1, 0.5, 0.1, 0.8, 0, 0)");
  CHECK(rows_of(study.db(), "SELECT subset, low, high FROM v_accuracy WHERE arm = 'a'") ==
        "boolq|0.2|0.9\nmassive|-|-");
}

TEST_CASE("only the first answer to the prompt as written is the headline", "[store]") {
  SmallStudy study;
  fill(study);
  const auto massive = small_records("massive", QuestionType::choice, {"play", "alarm"}, {1, 0});
  study.answer(1, 4, massive[0], answer_of({0.1, 0.9}), 1);
  const Prompt reversed = prompt_of(massive[0], true);
  const std::int64_t prompt =
      study.store().put_prompt(4, "reversed", PromptForm::messages, reversed.sha256);
  study.store().put_prediction(1, {prompt, 0}, {&massive[0], &reversed, "reversed", 0},
                               answer_of({0.9, 0.1}));
  study.store().flush();
  CHECK(rows_of(study.db(),
                "SELECT n_answered, n_correct FROM v_accuracy WHERE arm = 'a' AND subset = "
                "'massive'") == "2|1");
  CHECK(rows_of(study.db(),
                "SELECT variant, repeat, predicted, target, correct FROM v_prediction WHERE arm = "
                "'a' AND record_id = 'massive-1' ORDER BY variant, repeat") ==
        "none|0|play|alarm|0\nnone|1|alarm|alarm|1\nreversed|0|alarm|alarm|1");
  CHECK(rows_of(study.db(),
                "SELECT position, key, probability, option, is_target FROM v_label WHERE arm = 'a' "
                "AND record_id = 'massive-1' AND variant = 'reversed'") ==
        "0|alarm|0.9|1|1\n1|play|0.1|0|0");
  CHECK(
      rows_of(
          study.db(),
          "SELECT arm, subset, variant, repeat, n_answered FROM v_completeness WHERE arm = 'a'") ==
      "a|boolq|none|0|3\na|massive|none|0|2\na|massive|none|1|1\na|massive|reversed|0|1");
  // By option, not by place: 0.8 for "play" at first, 0.1 both later times.
  CHECK(rows_of(study.db(),
                "SELECT arm, subset, variant, repeat, n, same, share, round(largest_step, 9) FROM "
                "v_stability") == "a|massive|none|1|1|0|0.0|0.7\na|massive|reversed|0|1|0|0.0|0.7");
}

TEST_CASE("predictions and labels come with names", "[store]") {
  SmallStudy study;
  fill(study);
  CHECK(rows_of(study.db(),
                "SELECT arm, subset, record_id, predicted, target, correct, label_mass, "
                "labels_returned, n_labels, tied, read, latency_ms, confidence, type FROM "
                "v_prediction WHERE arm = 'b' AND subset = 'boolq' ORDER BY record_id") ==
        "b|boolq|boolq-1|true|true|1|0.9|2|2|0|top-k|5.0|0.7|noul\n"
        "b|boolq|boolq-2|true|false|0|0.9|2|2|0|top-k|5.0|0.6|noul");
  CHECK(rows_of(study.db(),
                "SELECT position, key, probability, source, is_target FROM v_label WHERE arm = 'a' "
                "AND record_id = 'boolq-2'") == "0|true|0.25|exact|0\n1|false|0.75|exact|1");
}

TEST_CASE("disagreements, failures, completeness and latency can be looked at", "[store]") {
  SmallStudy study;
  fill(study);
  CHECK(rows_of(study.db(),
                "SELECT arm_a, arm_b, record_id, predicted_a, predicted_b, target, correct_a, "
                "correct_b, same_checkpoint FROM v_disagreement ORDER BY record_id") ==
        "a|b|boolq-2|false|true|false|1|0|1\na|b|massive-1|play|alarm|alarm|0|1|1");
  CHECK(
      rows_of(study.db(), "SELECT arm, subset, record_id, attempt, final, class FROM v_failure") ==
      "b|boolq|boolq-3|4|1|timeout");
  CHECK(
      rows_of(study.db(),
              "SELECT arm, subset, n_answered, n_failed, n_not_asked, state FROM v_completeness") ==
      "a|boolq|3|0|0|complete\na|massive|2|0|0|complete\nb|boolq|2|1|0|incomplete\nb|massive|2|0|0|"
      "complete\n"
      "c|boolq|0|0|-|not run: terms not accepted\nc|massive|0|0|-|not run: terms not accepted");
  CHECK(rows_of(study.db(),
                "SELECT arm, subset, n, mean_ms, median_ms, p90_ms, max_ms FROM v_latency") ==
        "a|boolq|3|5.0|5.0|5.0|5.0\na|massive|2|5.0|5.0|5.0|5.0\nb|boolq|2|5.0|5.0|5.0|5.0\n"
        "b|massive|2|5.0|5.0|5.0|5.0");
}

TEST_CASE("latency quantiles are those of the study", "[store]") {
  SmallStudy study(small_plan(Json::array({small_subset("boolq", "noul", 20)}),
                              Json::array({small_arm("a", "one", "exact")})));
  study.begin();
  const auto records =
      small_records("boolq", QuestionType::noul, {"true", "false"}, std::vector<int>(20, 0));
  const auto prompts = study.add_records("boolq", records);
  const std::int64_t configuration = study.start("a");
  for (std::size_t i = 0; i < records.size(); ++i) {
    Answer answer = answer_of({0.9, 0.1});
    answer.latency_ms = static_cast<double>(20 - i);
    study.answer(configuration, prompts[i], records[i], answer);
  }
  study.store().flush();
  CHECK(rows_of(study.db(), "SELECT mean_ms, median_ms, p90_ms, p99_ms, min_ms FROM v_latency") ==
        "10.5|10.5|18.0|19.0|1.0");
}

TEST_CASE("answers that no longer count are kept, set aside and shown as drift", "[store]") {
  SmallStudy study;
  fill(study);
  // Registered is not answered: until the newer server has given an answer, the old ones count.
  const std::int64_t newer =
      study.store().put_configuration("a", {{"arm", "a"}}, {{"engine", "newer"}});
  CHECK(rows_of(study.db(), "SELECT n_answered FROM v_accuracy WHERE arm = 'a'") == "3\n2");
  study.store().make_current(newer);
  CHECK(rows_of(study.db(), "SELECT n_answered FROM v_accuracy WHERE arm = 'a'") == "0\n0");
  CHECK(rows_of(study.db(), "SELECT kind, name, predictions FROM v_drift") == "configuration|a|5");

  study.store().put_prompt(1, "none", PromptForm::messages, sha256_hex("another wording"));
  study.store().flush();
  CHECK(rows_of(study.db(), "SELECT kind, name, predictions FROM v_drift WHERE kind = 'prompt'") ==
        "prompt|boolq|2");
  CHECK(rows_of(study.db(),
                "SELECT n_answered, n_correct FROM v_accuracy WHERE arm = 'b' AND subset = "
                "'boolq'") == "1|0");

  auto massive = small_records("massive", QuestionType::choice, {"play", "alarm"}, {1, 0});
  massive[1].sha256 = sha256_hex("another line");
  study.store().put_records("suite", "massive", massive);
  CHECK(rows_of(study.db(), "SELECT kind, name, predictions FROM v_drift WHERE kind = 'record'") ==
        "record|massive|2");
}
