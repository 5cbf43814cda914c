#include <functional>
#include <set>

#include "../base/thrown.h"
#include "../store/small_study.h"
#include "base/json.h"
#include "base/text.h"
#include "catch.h"
#include "report/model.h"
#include "report/rendering.h"
#include "score/score.h"

using namespace preval;
using namespace preval::test;

namespace {

ReportModel model_of(SmallStudy& study, bool score = true) {
  study.store().flush();
  if (score) recompute_scores(study.db(), study.clock(), "0.1.0");
  return build_report(study.db());
}

std::string terminal(const ReportModel& model, int width = 100) {
  RenderOptions options;
  options.width = width;
  return render(model, ReportFormat::table, options);
}

std::string markdown(const ReportModel& model) { return render(model, ReportFormat::markdown, {}); }

/// The part of a text from one line's beginning up to another's.
std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t begin = text.find(from);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = text.find(to, begin);
  REQUIRE(end != std::string::npos);
  return text.substr(begin, end - begin);
}

void check_says(const std::string& text, const std::string& part) {
  INFO("text: " << text);
  INFO("expected in it: " << part);
  CHECK(contains(text, part));
}

}  // namespace

TEST_CASE("accuracy in the terminal: baseline, interval, bar and what was not run", "[report]") {
  SmallStudy study;
  fill(study);
  const std::string text = terminal(model_of(study));
  CHECK(
      between(text, "\nSmall suite\n", "Accuracy is over") ==
      "\n"
      "Small suite\n"
      "  arm  answered  accuracy    95 % interval  baseline  mean of subsets\n"
      "  a         5/5    60.0 %  23.1 – 88.2 % †    60.0 %           58.3 %  "
      "██████████████│░░░░░░\n"
      "  b         4/5    60.0 %  23.1 – 88.2 % †    60.0 %           66.7 %  "
      "██████████████│░░░░░░\n"
      "  c               not run                                              terms not accepted\n"
      "- a and b: on 2 of 2 subsets, and over all records together, the interval contains the "
      "majority\n"
      "  baseline or lies below it: this is no evidence of skill.\n"
      "\n"
      "a: Model One Q4_1 on exact, exact read\n"
      "  subset             answered  accuracy    95 % interval  baseline\n"
      "  boolq                   3/3    66.7 %  20.8 – 93.9 % †    66.7 %  "
      "████████████████│░░░░░░\n"
      "  massive                 2/2    50.0 %   9.5 – 90.5 % †    50.0 %  ████████████│░░░░░░░░░\n"
      "  "
      "──────────────────────────────────────────────────────────────────────────────────────────\n"
      "  all 2 subsets           5/5    60.0 %  23.1 – 88.2 % †    60.0 %  ██████████████│░░░░░░\n"
      "  yes/no, 1 subset        3/3    66.7 %  20.8 – 93.9 % †    66.7 %  "
      "████████████████│░░░░░░\n"
      "  choice, 1 subset        2/2    50.0 %   9.5 – 90.5 % †    50.0 %  ████████████│░░░░░░░░░\n"
      "  mean of 2 subsets       5/5    58.3 %               –     58.3 %  █████████████│\n"
      "\n"
      "b: Model One Q4_1 on top, top-k read\n"
      "  subset             answered  accuracy     95 % interval  baseline  of answered\n"
      "  boolq                   2/3    33.3 %    6.1 – 79.2 % †    66.7 %       50.0 %  "
      "██████░░░░░░│░\n"
      "  massive                 2/2   100.0 %  34.2 – 100.0 % †    50.0 %      100.0 %  "
      "█████████│████████\n"
      "  "
      "────────────────────────────────────────────────────────────────────────────────────────────"
      "──────\n"
      "  all 2 subsets           4/5    60.0 %   23.1 – 88.2 % †    60.0 %       75.0 %  "
      "██████████│░░░░░\n"
      "  yes/no, 1 subset        2/3    33.3 %    6.1 – 79.2 % †    66.7 %       50.0 %  "
      "██████░░░░░░│░\n"
      "  choice, 1 subset        2/2   100.0 %  34.2 – 100.0 % †    50.0 %      100.0 %  "
      "█████████│████████\n"
      "  mean of 2 subsets       4/5    66.7 %                –     58.3 %            –  "
      "██████████│█\n");
}

TEST_CASE("calibration, agreement, coverage and completeness in the terminal", "[report]") {
  SmallStudy study;
  fill(study);
  const std::string text = terminal(model_of(study));
  CHECK(between(text, "Agreement between arms\n", "\nShare of") ==
        "Agreement between arms\n"
        "  arms        all  choice  yes/no  same answers\n"
        "  a and b  50.0 %  50.0 %  50.0 %           2/4  one checkpoint\n"
        "\n"
        "  subset   a and b\n"
        "  boolq        1/2\n"
        "  massive      1/2");
  CHECK(between(text, "Calibration\n", "\nb\n") ==
        "Calibration\n"
        "\n"
        "a\n"
        "  subset               answers  ECE, 10 bins  after 50 labels  Brier    NLL\n"
        "  boolq                      3         0.317                –  0.288  0.436\n"
        "  massive                    2         0.650                –  0.890  1.151\n"
        "  ─────────────────────────────────────────────────────────────────────────\n"
        "  median of 2 subsets                  0.650                –  0.890  1.151\n"
        "- ECE after 50 labels needs at least 100 answered records, half of them to fit on and "
        "half to\n"
        "  judge on: not computed for boolq and massive.\n"
        "  confidence   answers  mean confidence    right\n"
        "  0.00 – 0.10        0                –        –\n"
        "  0.10 – 0.20        0                –        –\n"
        "  0.20 – 0.30        0                –        –\n"
        "  0.30 – 0.40        0                –        –\n"
        "  0.40 – 0.50        0                –        –\n"
        "  0.50 – 0.60        1           50.0 %  100.0 %  ████████████│███████████\n"
        "  0.60 – 0.70        1           60.0 %    0.0 %                │\n"
        "  0.70 – 0.80        1           75.0 %  100.0 %  ██████████████████│█████\n"
        "  0.80 – 0.90        1           80.0 %    0.0 %                     │\n"
        "  0.90 – 1.00        1           90.0 %  100.0 %  █████████████████████│██\n");
  CHECK(
      between(text, "What the reads returned\n", "\nA read") ==
      "What the reads returned\n"
      "  arm  read   answers  all labels returned  one label only  ties  least median label mass\n"
      "  a    exact        5              100.0 %               0     0  0.900 (boolq)\n"
      "  b    top-k        4              100.0 %               0     0  0.900 (boolq)");
  CHECK(between(text, "Completeness\n", "\nWhat these") ==
        "Completeness\n"
        "  arm  registered  answered  given up  not asked\n"
        "  a             5         5         0          0\n"
        "  b             5         4         1          0\n"
        "- arm c: not run: terms not accepted\n"
        "- arm b: 1 read was given up; the same command asks again\n"
        "\n"
        "Attempts that gave no answer\n"
        "  arm  failure  attempts  given up\n"
        "  b    timeout         1         1\n");
}

TEST_CASE("hypotheses are printed with what decides them", "[report]") {
  ReportModel model;
  model.plan.emplace();
  const auto add = [&](const char* metric, std::vector<std::string> arms) -> ReportHypothesis& {
    ReportHypothesis& each = model.hypotheses.emplace_back();
    each.id = "H" + std::to_string(model.hypotheses.size());
    each.metric = metric;
    each.arms = std::move(arms);
    each.dataset = "suite";
    return each;
  };
  add("agreement", {"a", "b"}).at_least = 0.9;
  add("ece10", {"a"}).at_most = 0.1;
  add("accuracy", {"a", "b"}).margin = 0.05;
  ReportHypothesis& greater = add("brier", {"a"});
  greater.direction = "less";
  greater.subsets = {"boolq", "paws"};
  const std::string text = terminal(model, 300);
  check_says(text, "[agreement of a and b at least 0.9, on suite]");
  check_says(text, "[ece10 of a at most 0.1, on suite]");
  check_says(text, "[accuracy of a and of b within 0.05, on suite]");
  check_says(text, "[brier of a less than of the published figures, on suite: boolq and paws]");
}

TEST_CASE("a hypothesis that was changed after the registration says by what", "[report]") {
  ReportModel model;
  model.plan.emplace();
  for (const char* id : {"H1", "H2"}) {
    ReportHypothesis& each = model.hypotheses.emplace_back();
    each.id = id;
    each.metric = "accuracy";
    each.arms = {"a"};
    each.dataset = "suite";
    each.at_least = 0.5;
  }
  // The second one's place is 1; /hypotheses/10 is another one.
  const char* fields[] = {"/repeats", "/hypotheses/1/at_least", "/hypotheses/10", "/hypotheses/1"};
  for (int i = 0; i < 4; ++i) {
    model.deviations.push_back({i + 1, fields[i], "0.6", "0.5", "why", "at"});
  }
  const std::string text = terminal(model, 300);
  check_says(text, "[accuracy of a at least 0.5, on suite]");
  check_says(text, "[accuracy of a at least 0.5, on suite; not as registered: deviation 2, 4]");
  const Json json = Json::parse(render(model, ReportFormat::json, {}));
  CHECK(json["hypotheses"][0]["deviations"] == Json::array());
  CHECK(json["hypotheses"][1]["deviations"] == Json::array({2, 4}));
}

TEST_CASE("repeats and reversed options are compared, where any were asked", "[report]") {
  SmallStudy study;
  fill(study);
  CHECK_FALSE(contains(terminal(model_of(study)), "The same question again"));

  const auto boolq = small_records("boolq", QuestionType::noul, {"true", "false"}, {0, 1, 0});
  study.begin();
  const auto prompts = study.add_records("boolq", boolq);
  const std::int64_t a = study.start("a");
  study.answer(a, prompts[0], boolq[0], answer_of({0.875, 0.125}), 1);  // 0.9 at first
  study.answer(a, prompts[1], boolq[1], answer_of({0.75, 0.25}), 1);    // 0.25: another choice
  study.store().end_run("complete", 0);
  const ReportModel model = model_of(study);
  check_says(terminal(model),
             "The same question again\n"
             "  arm  asked again  answers  same choice   share  largest step\n"
             "  a    repeat 1           2            1  50.0 %           0.5\n");
  const Json json = Json::parse(render(model, ReportFormat::json, {}));
  REQUIRE(json["stability"].size() == 1);
  CHECK(json["stability"][0]["subset"] == "boolq");
  CHECK(json["stability"][0]["n"] == 2);
  CHECK(json["stability"][0]["same"] == 1);
  CHECK(json["stability"][0]["largest_step"].get<double>() == 0.5);
}

TEST_CASE("no word on skill where records were never asked", "[report]") {
  SmallStudy study;
  fill(study);
  const ReportModel whole = model_of(study);
  CHECK(whole.groups[0].arms[0].cells[0].accuracy->no_skill());
  study.db().exec("DELETE FROM label WHERE prediction_id = 1; DELETE FROM prediction WHERE id = 1");
  const ReportModel part = model_of(study);
  CHECK(part.groups[0].arms[0].cells[0].accuracy->partly_asked);
  CHECK_FALSE(part.groups[0].arms[0].cells[0].accuracy->no_skill());
  CHECK_FALSE(part.groups[0].arms[0].pooled[0].no_skill());
  const Json json = Json::parse(render(part, ReportFormat::json, {}));
  CHECK(json["arms"][0]["subsets"][0]["no_evidence_of_skill"].is_null());
}

TEST_CASE("every field of the JSON report is documented", "[report]") {
  SystemFiles files;
  const std::string documented = files.read(PREVAL_SOURCE_DIR "/pipeline/report/FORMAT.md");
  ReportModel model;
  std::set<std::string> fields;
  // One of everything: what is empty shows no fields.
  model.plan.emplace();
  model.hypotheses.emplace_back();
  model.deviations.push_back({1, "/repeats", "1", "2", "why", "at"});
  model.drift.emplace_back();
  model.stability.emplace_back();
  model.arms.emplace_back().identity = "{}";
  ReportGroup& group = model.groups.emplace_back();
  group.id = "suite";
  group.subsets.emplace_back();
  ReportGroupArm& arm = group.arms.emplace_back();
  arm.pooled.emplace_back();
  arm.macro.emplace();
  arm.median.emplace();
  ReportCell& cell = arm.cells.emplace_back();
  cell.accuracy.emplace();
  cell.calibration.emplace().bins.emplace_back();
  cell.bounds.emplace();
  group.agreement.emplace_back();
  group.published.emplace_back();
  model.failures.emplace_back();
  model.native.emplace_back();
  model.unconfirmed.emplace_back();
  model.impossible.emplace_back();
  model.runs.emplace_back();
  const std::function<void(const Json&)> gather = [&](const Json& value) {
    if (value.is_object()) {
      for (const auto& [key, inner] : value.items()) {
        if (key != "suite") fields.insert(key);  // the dataset's own name
        gather(inner);
      }
    } else if (value.is_array()) {
      for (const Json& each : value) gather(each);
    }
  };
  gather(Json::parse(render(model, ReportFormat::json, {})));
  CHECK(fields.size() > 100);
  for (const std::string& field : fields) {
    INFO(field);
    CHECK(contains(documented, "`" + field + "`"));
  }
}

TEST_CASE("what absent labels could change, in all formats", "[report]") {
  SmallStudy study(absent_plan());
  fill_absent(study);
  const ReportModel model = model_of(study);
  const std::string text = terminal(model);
  CHECK(between(text, "What absent labels", "\nLacking") ==
        "What absent labels could change: b\n"
        "  subset   lacking  ties     confidence            ECE          Brier             NLL\n"
        "  massive      3/4     1  0.562 – 0.846  0.155 – 0.654  0.526 – 1.106  0.875 – 17.469");
  check_says(text, "which is a convention and no bound.");
  CHECK_FALSE(contains(text, "probabilities are bounds"));
  check_says(markdown(model),
             "### What absent labels could change: b\n\n"
             "| subset | lacking | ties | confidence | ECE | Brier | NLL |\n"
             "|---|---:|---:|---:|---:|---:|---:|\n"
             "| massive | 3/4 | 1 | 0.562 – 0.846 | 0.155 – 0.654 | 0.526 – 1.106 | "
             "0.875 – 17.469 |\n\nLacking: answers");
  const Json json = Json::parse(render(model, ReportFormat::json, {}));
  CHECK(json["arms"][0]["subsets"][0]["absent_labels"].is_null());
  const Json& bounds = json["arms"][1]["subsets"][0]["absent_labels"];
  CHECK(bounds["n"] == 4);
  CHECK(bounds["n_incomplete"] == 3);
  CHECK(bounds["n_tied_at_bound"] == 1);
  CHECK(bounds["nll_clip"] == 1e-15);
  const auto is = [&](const char* figure, const std::vector<double>& values) {
    INFO(figure);
    const std::vector<const char*> keys{"as_scored", "at_bound", "at_nothing", "low", "high"};
    for (std::size_t i = 0; i < keys.size(); ++i)
      CHECK(bounds[figure][keys[i]].get<double>() == Approx(values[i]).epsilon(1e-14));
  };
  is("confidence", {0.8410610710043906, 0.5624162904671315, 0.8456939181319263, 0.5624162904671315,
                    0.8456939181319263});
  is("ece", {0.6498240501453856, 0.15462218729654614, 0.6543060818680737, 0.15462218729654614,
             0.6543060818680737});
  is("brier", {1.0926197131024478, 0.5259316913057988, 1.1061986935522572, 0.5259316913057988,
               1.1061986935522572});
  is("nll", {2.9541821415136527, 0.8747427371673492, 17.468899661482183, 0.8747427371673492,
             17.468899661482183});
}

TEST_CASE("no table of absent labels where none is absent, or none can be", "[report]") {
  SmallStudy study;
  fill(study);
  CHECK_FALSE(contains(terminal(model_of(study)), "absent labels could"));
  SmallStudy complete(absent_plan());
  complete.begin();
  const auto records =
      small_records("massive", QuestionType::choice, {"play", "alarm", "news"}, {0, 2, 1, 0});
  const auto prompts = complete.add_records("massive", records);
  complete.answer(complete.start("b"), prompts[0], records[0],
                  top_answer({{1, -0.1}, {0, -3.0}, {2, -4.0}}, 3));
  const std::string text = terminal(model_of(complete));
  CHECK_FALSE(contains(text, "What absent labels could"));
  check_says(text, "- No answer lacks a label: nothing to bound on b.\n");
}

TEST_CASE("labels with more probability than there is are counted in the open", "[report]") {
  SmallStudy study;
  fill(study);
  CHECK_FALSE(contains(terminal(model_of(study)), "than there is"));
  study.db().exec("UPDATE prediction SET label_mass = 1.009 WHERE id = 1");
  CHECK_FALSE(contains(terminal(model_of(study, false)), "than there is"));
  study.db().exec("UPDATE prediction SET label_mass = 2 WHERE id IN (1, 2)");
  const ReportModel model = model_of(study, false);
  CHECK(
      contains(terminal(model), "- 2 answers of arm a have labels with more probability together"));
  CHECK(model.impossible.at(0).most == 2);
}

TEST_CASE("a narrow terminal loses bars and folds texts, never numbers", "[report]") {
  SmallStudy study;
  fill(study);
  const ReportModel model = model_of(study);
  for (const int width : {40, 60, 80, 100, 200}) {
    std::string_view text;
    const std::string report = terminal(model, width);
    std::size_t lines = 0;
    for (text = report; !text.empty(); text.remove_prefix(text.find('\n') + 1)) {
      const std::string line(text.substr(0, text.find('\n')));
      INFO(width << ": " << line);
      if (width >= 80) CHECK(display_width(line) <= static_cast<std::size_t>(width));
      ++lines;
    }
    CHECK(lines > 60);
    CHECK(contains(report, "20.8 – 93.9 %"));
  }
  CHECK(contains(terminal(model, 80), "███"));
  CHECK(contains(terminal(model, 80), "not run: terms not accepted"));
}

TEST_CASE("colour is only where it is asked for", "[report]") {
  SmallStudy study;
  fill(study);
  const ReportModel model = model_of(study);
  CHECK_FALSE(contains(terminal(model), "\x1b["));
  RenderOptions options;
  options.color = true;
  check_says(render(model, ReportFormat::table, options), "\x1b[1msmall 1.0.0\x1b[0m\n");
  options.color = false;
  options.brief = true;
  const std::string brief = render(model, ReportFormat::table, options);
  check_says(brief, "Completeness");
  CHECK_FALSE(contains(brief, "Calibration"));
  CHECK_FALSE(contains(brief, "Provenance"));
}

TEST_CASE("Markdown has the same words and tables", "[report]") {
  SmallStudy study;
  fill(study);
  const std::string text = markdown(model_of(study));
  CHECK(text.starts_with(
      "# small 1.0.0\n\nd\n\n## Registered hypotheses\n\nThe plan registers no hypotheses.\n"));
  check_says(text,
             "| arm | answered | accuracy | 95 % interval | baseline | mean of subsets |  |\n"
             "|---|---:|---:|---:|---:|---:|---|\n"
             "| a | 5/5 | 60.0 % | 23.1 – 88.2 % † | 60.0 % | 58.3 % | `████████████│░░░░░  ` |\n");
  check_says(text, "| **all 2 subsets** | **5/5** | **60.0 %** |");
  check_says(text, "- arm c: not run: terms not accepted\n");
  check_says(text,
             "the interval contains the majority baseline or lies below it: this is no evidence of "
             "skill.");
  check_says(text,
             "| a | Model One Q4\\_1 r1 | exact (vllm, exact) | test | "
             "confirmatory |");
  check_says(
      text, "| 1 | 2023-11-14T22:13:20Z | 2023-11-14T22:13:20Z | incomplete | 0.1.0 | test host |");
  check_says(text, "To reproduce: preval run PLAN. PLAN is the plan");
  CHECK_FALSE(contains(text, " |\n\n\n"));
}

TEST_CASE("JSON has the fields of the contract", "[report]") {
  SmallStudy study;
  fill(study);
  const Json json = Json::parse(render(model_of(study), ReportFormat::json, {}));
  for (const char* key : {"schema_version", "simulated", "plan", "arms", "agreement", "published",
                          "deviations", "provenance"}) {
    INFO(key);
    CHECK(json.contains(key));
  }
  CHECK(json["schema_version"] == "1.0");
  CHECK(json["simulated"] == false);
  CHECK(json["plan"]["name"] == "small");
  CHECK(json["plan"]["sha256"] == study.plan().sha256);
  CHECK(json["plan"]["locked_at"].is_null());

  REQUIRE(json["arms"].size() == 3);
  const Json& a = json["arms"][0];
  CHECK(a["arm"] == "a");
  CHECK(a["checkpoint"] == "one");
  CHECK(a["backend"] == "exact");
  CHECK(a["read"] == "exact");
  CHECK(a["n_registered"] == 5);
  CHECK(a["n_answered"] == 5);
  CHECK(a["accuracy"]["value"] == 0.6);
  CHECK(a["accuracy"]["low"].get<double>() == Approx(0.230724).epsilon(1e-5));
  CHECK(a["accuracy"]["high"].is_number());
  REQUIRE(a["subsets"].size() == 2);
  const Json& boolq = a["subsets"][0];
  CHECK(boolq["subset"] == "boolq");
  CHECK(boolq["n"] == 3);
  CHECK(boolq["accuracy"].get<double>() == Approx(2.0 / 3));
  CHECK(boolq["ece10"].get<double>() == Approx(0.95 / 3));
  CHECK(boolq["brier"].is_number());
  CHECK(boolq["nll"].is_number());
  CHECK(boolq["label_mass"] == 0.9);
  CHECK(boolq["labels_returned_all"] == 1.0);
  CHECK(boolq["no_evidence_of_skill"] == true);
  CHECK(boolq["bins"].size() == 10);
  CHECK(a["pooled"].size() == 4);
  CHECK(a["medians"]["suite"]["n_subsets"] == 2);

  const Json& c = json["arms"][2];
  CHECK(c["status"] == "not run");
  CHECK(c["reason"] == "terms not accepted");
  CHECK(c["n_registered"] == 5);
  CHECK(c["n_answered"] == 0);
  CHECK(c["accuracy"]["value"].is_null());
  CHECK(c["subsets"][0]["accuracy"].is_null());
  CHECK(c["subsets"][0]["state"] == "not run: terms not accepted");

  CHECK(json["agreement"][0] ==
        Json::parse(R"({"arm_a":"a","arm_b":"b","subset":"boolq","kind":"subset",
      "dataset":"suite","same_checkpoint":true,"n":2,"same":1,"share":0.5,"low":null})"));
  CHECK(json["provenance"]["runs"][0]["machine"] == "test host");
  CHECK(json["provenance"]["arms"][0]["answered_by"] == Json{{"engine", "test"}});
  CHECK(json["provenance"]["failures"][0]["class"] == "timeout");
}

TEST_CASE("published figures: compared, or why not", "[report]") {
  SmallStudy study;
  fill(study);
  const std::string sha256 = study.plan().effective.datasets[0].subsets[0].sha256;
  const auto published = [](const std::string& boolq, const std::string& massive) {
    const auto figure = [](int n, double accuracy, const std::string& digest) {
      return Json{{"n", n}, {"accuracy", accuracy}, {"ece", 0.1}, {"dataset_sha256", digest}};
    };
    return Json{
        {"preval_published", 1},
        {"model", "jev"},
        {"source", "a page"},
        {"subsets", {{"boolq", figure(3, 1.0, boolq)}, {"massive", figure(2, 0.5, massive)}}}};
  };
  study.begin({}, published(sha256, std::string(64, 'f')));
  ReportModel model = model_of(study);
  const std::string text = terminal(model);
  CHECK(between(text, "Published figures\n", "Differences are") ==
        "Published figures\n"
        "jev, from a page. Published figures were taken over, not measured again.\n"
        "\n"
        "a\n"
        "  subset               published    ours  difference   95 % interval  ECE published  ECE "
        "ours\n"
        "  boolq                  100.0 %  66.7 %       +33.3  -20.0 to +86.7          0.100     "
        "0.317\n"
        "  "
        "──────────────────────────────────────────────────────────────────────────────────────────"
        "─\n"
        "  all, 1 of 2 subsets    100.0 %  66.7 %       +33.3  -20.0 to +86.7              –       "
        "  –\n"
        "  yes/no, 1 subset       100.0 %  66.7 %       +33.3  -20.0 to +86.7              –       "
        "  –\n"
        "- different records: not compared: massive\n"
        "\n"
        "b\n"
        "  subset               published    ours  difference    95 % interval  ECE published  ECE "
        "ours\n"
        "  boolq                  100.0 %  33.3 %       +66.7  +13.3 to +120.0          0.100     "
        "0.450\n"
        "  "
        "──────────────────────────────────────────────────────────────────────────────────────────"
        "──\n"
        "  all, 1 of 2 subsets    100.0 %  33.3 %       +66.7  +13.3 to +120.0              –      "
        "   –\n"
        "  yes/no, 1 subset       100.0 %  33.3 %       +66.7  +13.3 to +120.0              –      "
        "   –\n");
  check_says(text, "The comparison is unpaired");
  CHECK(Json::parse(render(model, ReportFormat::json, {}))["published"][0]["difference"]
            .get<double>() == Approx(1.0 / 3));

  study.begin({}, published(std::string(64, 'e'), std::string(64, 'f')));
  const std::string other = terminal(model_of(study));
  check_says(other, "- different records: not compared: boolq and massive\n");
  CHECK_FALSE(contains(other, "unpaired"));
  CHECK_FALSE(contains(other, "ECE published"));
}

TEST_CASE("simulated and exploratory reports say so first", "[report]") {
  SmallStudy study;
  RunInfo info;
  info.simulated = true;
  info.command = "preval rehearse PLAN --seed 7";
  study.begin(info);
  const ReportModel model = model_of(study);
  CHECK(terminal(model).starts_with("small 1.0.0\nSIMULATED: no model answered."));
  check_says(markdown(model), "\n> **SIMULATED: no model answered.");
  CHECK(Json::parse(render(model, ReportFormat::json, {}))["simulated"] == true);
  check_says(terminal(model), "To reproduce: preval rehearse PLAN --seed 7. PLAN is");

  SmallStudy exploratory;
  RunInfo unlocked;
  unlocked.exploratory = true;
  unlocked.command = "preval run PLAN --exploratory";
  exploratory.begin(unlocked);
  const std::string text = terminal(model_of(exploratory));
  check_says(text, "\nEXPLORATORY: these answers are not part of the registered study");
  check_says(text, "preval run PLAN --exploratory");
}

TEST_CASE("missing subsets are named, and pooled rows say how many they rest on", "[report]") {
  SmallStudy study;
  fill(study);
  study.check("massive", SubsetStatus::mismatch, "only line ends differ");
  const std::string text = terminal(model_of(study));
  check_says(text, "  massive                            dropped\n");
  check_says(text, "  all, 1 of 2 subsets ");
  check_says(text,
             "- Small suite: 1 of 2 subsets verified.\n"
             "- subset massive: dropped, not what was registered (only line ends differ)\n");
  check_says(text,
             "None was written down, but not everything is as it was registered:\n"
             "- subset massive: only line ends differ (4 answers)\n");
}

TEST_CASE("nothing is not a number in any rendering", "[report]") {
  const auto check_defined = [](const ReportModel& model) {
    for (const std::string& text :
         {terminal(model), markdown(model), render(model, ReportFormat::json, {})}) {
      INFO(text);
      for (const char* sign : {" ", "+", "-", "|", "`"}) {
        CHECK_FALSE(contains(text, std::string(sign) + "nan"));
        CHECK_FALSE(contains(text, std::string(sign) + "inf"));
      }
      CHECK(text.back() == '\n');
    }
  };
  SmallStudy study;
  check_defined(model_of(study, false));
  CHECK(terminal(model_of(study, false)) ==
        "Empty store\nThis store holds no plan and no answers yet: preval run PLAN fills it.\n");
  study.begin();
  check_defined(model_of(study, false));
  check_says(terminal(model_of(study, false)), "Nothing was scored yet: preval score does it.");
  check_defined(model_of(study));
  check_says(terminal(model_of(study)), "  a               not run\n");
  study.check("boolq", SubsetStatus::ok);
  study.start("a");
  const ReportModel unanswered = model_of(study);
  check_defined(unanswered);
  check_says(terminal(unanswered),
             "  boolq                        0/3     0.0 %   0.0 – 56.1 %          –");
  check_says(terminal(unanswered), "No answers, so no calibration.");
}

TEST_CASE("answers after the last scoring are pointed out", "[report]") {
  SmallStudy study;
  fill(study);
  model_of(study);
  study.begin();
  const auto boolq = small_records("boolq", QuestionType::noul, {"true", "false"}, {0, 1, 0});
  study.answer(2, 3, boolq[2], answer_of({0.9, 0.1}));
  check_says(terminal(model_of(study, false)), "\n1 answer came after the last scoring");
  CHECK_FALSE(contains(terminal(model_of(study)), "after the last scoring"));
}

TEST_CASE("equal stores give equal reports", "[report]") {
  SmallStudy one, two;
  fill(one);
  fill(two);
  two.clock().sleep(std::chrono::hours(5));  // scored later
  CHECK(terminal(model_of(one)) == terminal(model_of(two)));
  CHECK(render(model_of(one), ReportFormat::json, {}) ==
        render(model_of(two), ReportFormat::json, {}));
}

TEST_CASE("bars are drawn in eighths, with shade and mark", "[report]") {
  CHECK(draw_bar({0.5, {}, {}}, 4) == "██  ");
  CHECK(draw_bar({0.53125, {}, {}}, 4) == "██▏ ");
  CHECK(draw_bar({0.25, 0.75, {}}, 4) == "█░░ ");
  CHECK(draw_bar({1, 1, 0.5}, 4) == "██│█");
  CHECK(draw_bar({0, {}, 1}, 4) == "   │");
  CHECK(draw_bar({7, -1, -2}, 4) == "│███");
}
