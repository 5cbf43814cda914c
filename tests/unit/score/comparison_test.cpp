#include "score/comparison.h"

#include "catch.h"

using namespace preval;

namespace {

AccuracyScore ours(std::size_t correct, std::size_t n) {
  AccuracyScore score;
  score.n_registered = score.n_answered = n;
  score.n_correct = correct;
  score.accuracy = share(correct, n);
  return score;
}

struct Row {
  const char* subset;
  const char* type;
  std::size_t n;
  double published;
  std::size_t correct;  // of the study's E2B arm
};

// Published accuracies of Jev 1.13.0, and the counts of the E2B arm of the study.
constexpr Row kSuite[] = {{"aegis2", "noul", 250, 0.804, 187},
                          {"boolq", "noul", 300, 0.897, 194},
                          {"civil_comments", "noul", 300, 0.81, 271},
                          {"helpsteer2", "score", 249, 0.341, 96},
                          {"massive-de-DE", "choice", 350, 0.869, 269},
                          {"massive-en-US", "choice", 350, 0.874, 288},
                          {"multinli", "choice", 299, 0.829, 211},
                          {"paws", "noul", 250, 0.892, 190},
                          {"pubmedqa", "choice", 250, 0.772, 123},
                          {"squad2", "noul", 299, 0.829, 224},
                          {"summeval-consistency", "score", 144, 0.812, 113},
                          {"summeval-relevance", "score", 240, 0.35, 75},
                          {"vitaminc-dev", "choice", 599, 0.801, 418}};

PublishedScore pooled(std::string_view type) {
  PooledPublished pool{std::string(type)};
  for (const Row& row : kSuite) {
    if (type == "all" || type == row.type) {
      pool.add({row.subset, "", row.n, row.published, 0.1}, ours(row.correct, row.n), "");
    }
  }
  return pool.pooled().value();
}

}  // namespace

TEST_CASE("pooled published figures equal the study's, to the last bit", "[score]") {
  struct Golden {
    const char* scope;
    std::size_t n;
    double published, accuracy, difference, low, high;
  };
  const Golden golden[] = {{"all", 3880, 0.7734536082474227, 0.6853092783505155,
                            0.08814432989690724, 0.06847199297249608, 0.1078166668213184},
                           {"noul", 1399, 0.8463187991422445, 0.7619728377412437,
                            0.08434596140100081, 0.05510296198628245, 0.11358896081571918},
                           {"choice", 1848, 0.8284632034632035, 0.7083333333333334,
                            0.12012987012987009, 0.09320653976614263, 0.14705320049359755},
                           {"score", 633, 0.4518167456556082, 0.4486571879936809,
                            0.003159557661927326, -0.05165139995232605, 0.057970515276180704}};
  for (const Golden& each : golden) {
    INFO(each.scope);
    const PublishedScore score = pooled(each.scope);
    CHECK(score.comparable);
    CHECK(score.n == each.n);
    CHECK(score.published_accuracy == each.published);
    CHECK(score.accuracy == each.accuracy);
    REQUIRE(score.difference.has_value());
    CHECK(score.difference->value == each.difference);
    CHECK(score.difference->interval.low == each.low);
    CHECK(score.difference->interval.high == each.high);
  }
}

TEST_CASE("subsets that are not comparable stay out of pooled figures, and are counted",
          "[score]") {
  PooledPublished pool("all");
  CHECK_FALSE(pool.pooled().has_value());
  pool.add({"a", "", 10, 0.5, {}}, ours(5, 10), "different records");
  pool.add({"b", "", 10, 0.5, {}}, ours(0, 10), "subset missing");
  PublishedScore score = pool.pooled().value();
  CHECK_FALSE(score.comparable);
  CHECK(score.why_not == "different records");
  CHECK(score.n_subsets == 0);
  CHECK(score.of_subsets == 2);
  CHECK_FALSE(score.accuracy.has_value());
  pool.add({"c", "", 10, 0.75, {}}, ours(5, 10), "");
  score = pool.pooled().value();
  CHECK(score.comparable);
  CHECK(score.why_not.empty());
  CHECK(score.n_subsets == 1);
  CHECK(score.of_subsets == 3);
  CHECK(score.published_accuracy == 0.8);  // 7.5 rounds to the even 8
  CHECK(score.accuracy == 0.5);
}

TEST_CASE("agreement is over the records that both answered", "[score]") {
  const auto same = [](const Agreement& agreement) {
    return std::pair(agreement.same, agreement.n);
  };
  CHECK(same(compare_answers({}, {})) == std::pair<std::size_t, std::size_t>(0, 0));
  CHECK(same(compare_answers({{1, 2, 3}, {0, 1, 2}}, {{1, 2, 3}, {0, 1, 0}})) ==
        std::pair<std::size_t, std::size_t>(2, 3));
  CHECK(same(compare_answers({{1, 3, 4}, {0, 1, 2}}, {{2, 3, 1}, {0, 1, 1}})) ==
        std::pair<std::size_t, std::size_t>(1, 2));
}

TEST_CASE("why a subset is not compared", "[score]") {
  const PublishedSubset published{"s", "abc", 10, 0.5, {}};
  ScoredSubset subset;
  subset.registered_sha256 = "def";
  subset.status = "missing";
  ScoredArm arm;
  CHECK(why_not_comparable(published, arm, subset, 0, 10) == "different records");
  subset.registered_sha256 = "abc";
  CHECK(why_not_comparable(published, arm, subset, 0, 10) == "subset missing");
  subset.verified = true;
  CHECK(why_not_comparable(published, arm, subset, 0, 10) == "arm not run");
  arm.started = true;
  CHECK(why_not_comparable(published, arm, subset, 0, 10) == "no answer");
  CHECK(why_not_comparable(published, arm, subset, 9, 1) == "not all records were asked");
  CHECK(why_not_comparable(published, arm, subset, 1, 0).empty());
}
