#include "plan/plan.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "catch.h"
#include "example_plan.h"
#include "expect_error.h"
#include "plan/reader.h"

using namespace preval;
using namespace preval::test;

TEST_CASE("a plan becomes typed, field by field") {
  const Plan plan = parse_plan(example_plan(), "plan.json");
  CHECK(plan.name == "example");
  CHECK(plan.authors == std::vector<std::string>{"A", "B"});
  REQUIRE(plan.hypotheses.size() == 4);
  CHECK(plan.hypotheses[0].at_least == 0.9);
  CHECK(plan.hypotheses[0].arms == std::vector<std::string>{"a", "b"});
  CHECK(plan.hypotheses[1].subsets == std::vector<std::string>{"boolq"});
  CHECK_FALSE(plan.hypotheses[1].margin.has_value());
  CHECK(plan.hypotheses[2].direction == "greater");
  CHECK(plan.hypotheses[3].at_most == 0.5);

  REQUIRE(plan.datasets.size() == 2);
  CHECK(plan.datasets[0].variants == std::vector<std::string>{"none", "reversed"});
  CHECK(plan.datasets[0].smoke.records == 5);
  CHECK(plan.datasets[0].smoke.concurrency == 2);
  CHECK(plan.datasets[0].latency.concurrency == 1);
  CHECK(plan.datasets[0].subsets[1].type == QuestionType::choice);
  CHECK(plan.datasets[1].scoring == ScoringProfile::own);
  CHECK(plan.datasets[1].variants == std::vector<std::string>{"none"});
  CHECK(plan.datasets[1].smoke.records == 0);

  CHECK(plan.prompt.reasoning);
  CHECK_FALSE(plan.prompt.state_ascii);
  CHECK(plan.checkpoint("small").bytes == 123);
  CHECK(plan.checkpoint("small").chat_template == Template::none);
  CHECK(plan.checkpoint("small").terms_id == "t");
  CHECK(plan.checkpoint("hosted").chat_template == Template::chat);

  const BackendSpec& exact = plan.backend("exact");
  CHECK(exact.read == ReadMode::exact);
  CHECK(exact.raw_probs == 32);
  CHECK(exact.server->command.size() == 5);
  CHECK(exact.timeouts.first_byte_s == 2.5);
  CHECK(exact.usd_per_hour == 2.97);
  CHECK(exact.threads == 3);
  const BackendSpec& top = plan.backend("top32");
  CHECK(top.k == 32);
  CHECK(top.url == "http://host:1");
  CHECK(top.attempts == 4);
  CHECK(plan.backend("made-up").simulation.seed == 7);

  CHECK(plan.arm("a").boot_limit_s == 90);
  CHECK(plan.arm("b").boot_limit_s == 1500);
  CHECK(plan.repeats == 2);
  CHECK(plan.calibration.split_seed == 9);
  CHECK(plan.margins.at("accuracy") == 0.03);
  CHECK(plan.budget_usd == 1.5);
  CHECK(plan.published->file == "published.json");
  CHECK_THROWS_AS(plan.arm("zzz"), std::out_of_range);
}

TEST_CASE("optional parts may be left out or null") {
  Json json = example_plan();
  for (const char* key : {"description", "repeats", "calibration", "margins", "budget"})
    json.erase(key);
  json["hypotheses"] = Json::array();
  json["published"] = nullptr;
  json["checkpoints"][0]["files"][1].erase("bytes");
  const Plan plan = parse_plan(json, "plan.json");
  CHECK(plan.repeats == 1);
  CHECK(plan.calibration.split_seed == 20260923);
  CHECK_FALSE(plan.budget_usd.has_value());
  CHECK_FALSE(plan.published.has_value());
  CHECK(plan.checkpoint("small").bytes == 0);
}

namespace {

struct BadPlan {
  const char* patch;  // RFC 6902
  const char* message;
};

const BadPlan kBadPlans[] = {
    // format
    {R"([{"op":"replace","path":"/preval_plan","value":2}])",
     "plan.json: /preval_plan: plan format 2 is not known"},
    {R"([{"op":"remove","path":"/preval_plan"}])",
     "/preval_plan: required key \"preval_plan\" is missing"},
    // keys
    {R"([{"op":"add","path":"/repeat","value":2},{"op":"remove","path":"/repeats"}])",
     "/repeat: unknown key \"repeat\": did you mean"},
    {R"([{"op":"add","path":"/backends/0/kv_cahce","value":"f16"},{"op":"remove","path":"/backends/0/kv_cache"}])",
     "/backends/0/kv_cahce: unknown key \"kv_cahce\": did you mean"},
    {R"([{"op":"move","from":"/arms/1/checkpoint","path":"/arms/1/chekpoint"}])",
     "/arms/1/chekpoint: unknown key"},
    {R"([{"op":"add","path":"/datasets/0/subsets/1/x~1y","value":1}])",
     "/datasets/0/subsets/1/x~1y: unknown key \"x/y\""},
    {R"([{"op":"remove","path":"/prompt"}])", "/prompt: required key \"prompt\" is missing"},
    {R"([{"op":"remove","path":"/checkpoints/0/license"}])",
     "/checkpoints/0/license: required key"},
    // types
    {R"([{"op":"replace","path":"/name","value":3}])", "/name: expected a string, found a number"},
    {R"([{"op":"replace","path":"/authors","value":"A"}])",
     "/authors: expected an array, found a string"},
    {R"([{"op":"replace","path":"/authors","value":["A",1]}])",
     "/authors: element 1 is not a string"},
    {R"([{"op":"replace","path":"/authors","value":[]}])", "/authors: needs at least 1 element"},
    {R"([{"op":"replace","path":"/arms","value":[]}])", "/arms: needs at least 1 element"},
    {R"([{"op":"replace","path":"/arms/0","value":"a"}])",
     "/arms/0: expected an object, found a string"},
    {R"([{"op":"replace","path":"/prompt","value":[]}])",
     "/prompt: expected an object, found an array"},
    {R"([{"op":"replace","path":"/arms/0/confirmatory","value":"yes"}])",
     "/arms/0/confirmatory: expected true or false, found a string"},
    {R"([{"op":"replace","path":"/repeats","value":1.5}])",
     "/repeats: expected a whole number, found 1.5"},
    {R"([{"op":"replace","path":"/repeats","value":true}])",
     "/repeats: expected a whole number, found true or false"},
    {R"([{"op":"replace","path":"/budget/usd","value":"1"}])",
     "/budget/usd: expected a number, found a string"},
    {R"([{"op":"replace","path":"/authors","value":["A","a\u0000b"]}])",
     "/authors: element 1 holds a zero character"},
    // values
    {R"([{"op":"replace","path":"/name","value":"a b"}])", "/name: \"a b\" cannot be a name"},
    {R"([{"op":"replace","path":"/arms/0/id","value":"../x"}])",
     "/arms/0/id: \"../x\" cannot be a name"},
    {R"([{"op":"replace","path":"/version","value":""}])", "/version: must not be empty"},
    {R"([{"op":"replace","path":"/prompt/sha256","value":"ABC"}])",
     "/prompt/sha256: \"ABC\" is not a SHA-256"},
    {R"([{"op":"replace","path":"/prompt/file","value":"/etc/p.json"}])",
     "/prompt/file: \"/etc/p.json\" is not a relative path"},
    {R"([{"op":"replace","path":"/repeats","value":0}])", "/repeats: must be from 1 to 1000, is 0"},
    {R"([{"op":"add","path":"/backends/0/raw_probs","value":3000000000}])",
     "/backends/0/raw_probs: must be from 1 to 16777216"},
    {R"([{"op":"replace","path":"/backends/1/k","value":0}])",
     "/backends/1/k: must be from 1 to 16777216, is 0"},
    {R"([{"op":"replace","path":"/backends/0/slots","value":-1}])",
     "/backends/0/slots: must be from 1 to 4096, is -1"},
    {R"([{"op":"replace","path":"/backends/0/concurrency","value":0}])",
     "/backends/0/concurrency: must be from 1 to 4096, is 0"},
    {R"([{"op":"replace","path":"/backends/0/timeouts/total_s","value":0}])",
     "/backends/0/timeouts/total_s: must be above 0 and at most 86400, is 0"},
    {R"([{"op":"replace","path":"/hypotheses/0/at_least","value":1.1}])",
     "/hypotheses/0/at_least: must be from 0 to 1, is 1.1"},
    {R"([{"op":"replace","path":"/calibration/split_seed","value":18014398509481984}])",
     "/calibration/split_seed: must be at most"},
    {R"([{"op":"replace","path":"/datasets/0/subsets/0/families","value":4}])",
     "/datasets/0/subsets/0/families: more families than records"},
    {R"([{"op":"replace","path":"/datasets/0/scoring","value":"siute"}])",
     "/datasets/0/scoring: unknown value \"siute\": did you mean"},
    {R"([{"op":"replace","path":"/datasets/0/subsets/0/type","value":"bool"}])",
     "/datasets/0/subsets/0/type: unknown value \"bool\""},
    {R"([{"op":"replace","path":"/datasets/0/variants","value":["none","reverse"]}])",
     "/datasets/0/variants: unknown value \"reverse\": did you mean"},
    {R"([{"op":"replace","path":"/datasets/0/variants","value":["none","none"]}])",
     "/datasets/0/variants: \"none\" twice"},
    {R"([{"op":"replace","path":"/datasets/0/variants","value":["reversed"]}])",
     "/datasets/0/variants: \"none\" must be among them"},
    {R"([{"op":"replace","path":"/backends/0/kind","value":"lamacpp"}])",
     "/backends/0/kind: unknown value \"lamacpp\": did you mean"},
    {R"([{"op":"replace","path":"/backends/1/read","value":"topk"}])",
     "/backends/1/read: unknown value \"topk\""},
    {R"([{"op":"add","path":"/margins/accurracy","value":0.1}])",
     "/margins/accurracy: unknown key \"accurracy\""},
    {R"([{"op":"replace","path":"/checkpoints/0/files/0/name","value":"../small.gguf"}])",
     "/checkpoints/0/files/0/name: must not hold"},
    {R"([{"op":"replace","path":"/checkpoints/0/files/1/name","value":"small.gguf"}])",
     "/checkpoints/0/files/1/name: file \"small.gguf\" twice"},
    // backends
    {R"([{"op":"remove","path":"/backends/1/k"}])", "/backends/1/k: top-k reads need k"},
    {R"([{"op":"add","path":"/backends/0/k","value":5}])", "/backends/0/k: exact reads have no k"},
    {R"([{"op":"remove","path":"/backends/1/url"}])",
     "/backends/1/server: a backend needs \"server\""},
    {R"([{"op":"add","path":"/backends/0/url","value":"http://x"}])",
     "/backends/0/url: a backend is either started"},
    {R"([{"op":"replace","path":"/backends/1/url","value":"host:1"}])",
     "/backends/1/url: must begin with http://"},
    {R"([{"op":"replace","path":"/backends/1/url","value":"http://me:pw@host:1/v"}])",
     "/backends/1/url: holds a user name or password"},
    {R"([{"op":"add","path":"/backends/2/url","value":"http://x"}])",
     "/backends/2/url: a simulated backend has no server"},
    {R"([{"op":"add","path":"/backends/1/simulation","value":{}}])",
     "/backends/1/simulation: belongs to backends of kind simulated"},
    {R"([{"op":"replace","path":"/backends/0/server/command","value":["serve"]}])",
     "/backends/0/server/command: {port} is missing"},
    {R"([{"op":"replace","path":"/backends/0/server/command","value":["{port}","{solts}"]}])",
     "/backends/0/server/command: unknown placeholder {solts}: did you mean"},
    {R"([{"op":"replace","path":"/backends/0/server/command","value":["{port}","{x"]}])",
     "/backends/0/server/command: a single '{' in"},
    {R"([{"op":"replace","path":"/backends/0/server/command","value":["{port}","}"]}])",
     "/backends/0/server/command: a single '}' in"},
    // references
    {R"([{"op":"replace","path":"/arms/1/id","value":"a"}])",
     "/arms/1/id: \"a\" is already the id of /arms/0"},
    {R"([{"op":"replace","path":"/backends/1/id","value":"exact"}])",
     "/backends/1/id: \"exact\" is already the id"},
    {R"([{"op":"replace","path":"/hypotheses/1/id","value":"H1"}])",
     "/hypotheses/1/id: \"H1\" is already the id"},
    {R"([{"op":"replace","path":"/datasets/1/subsets/0/id","value":"boolq"}])",
     "/datasets/1/subsets/0/id: \"boolq\" is already the id of /datasets/0/subsets/0"},
    {R"([{"op":"replace","path":"/arms/0/checkpoint","value":"smal"}])",
     "/arms/0/checkpoint: there is no checkpoint \"smal\": did you mean"},
    {R"([{"op":"replace","path":"/arms/0/backend","value":"nobody"}])",
     "/arms/0/backend: there is no backend \"nobody\""},
    {R"([{"op":"replace","path":"/arms/1/backend","value":"exact"}])",
     "/arms/1: \"b\" is the same checkpoint on the same backend as \"a\""},
    {R"([{"op":"replace","path":"/arms/0/checkpoint","value":"hosted"}])",
     "/arms/0/checkpoint: backend \"exact\" wants a {checkpoint} file"},
    {R"([{"op":"replace","path":"/hypotheses/0/arms/1","value":"d"}])",
     "/hypotheses/0/arms/1: there is no arm \"d\""},
    {R"([{"op":"replace","path":"/hypotheses/0/arms/1","value":"c"}])",
     "/hypotheses/0/arms/1: a confirmatory hypothesis cannot rest on the exploratory arm \"c\""},
    {R"([{"op":"replace","path":"/hypotheses/0/arms/1","value":"a"}])",
     "/hypotheses/0/arms: \"a\" is compared with itself"},
    {R"([{"op":"replace","path":"/hypotheses/0/dataset","value":"siute"}])",
     "/hypotheses/0/dataset: there is no dataset \"siute\": did you mean"},
    {R"([{"op":"replace","path":"/hypotheses/1/subsets/0","value":"stars"}])",
     "/hypotheses/1/subsets/0: there is no subset of dataset \"suite\" called \"stars\""},
    // hypotheses, by kind
    {R"([{"op":"remove","path":"/hypotheses/0/at_least"}])",
     "/hypotheses/0/at_least: a bound on agreement needs \"at_least\""},
    {R"([{"op":"move","from":"/hypotheses/3/at_most","path":"/hypotheses/3/at_least"}])",
     "/hypotheses/3/at_least: a bound on brier is claimed with \"at_most\""},
    {R"([{"op":"replace","path":"/hypotheses/0/arms","value":["a"]}])",
     "/hypotheses/0/arms: a bound on agreement is about 2 arm(s), found 1"},
    {R"([{"op":"replace","path":"/hypotheses/3/arms","value":["a","b"]}])",
     "/hypotheses/3/arms: a bound on brier is about 1 arm(s)"},
    {R"([{"op":"replace","path":"/hypotheses/1/arms","value":["a","b","c"]}])",
     "/hypotheses/1/arms: at most two arms"},
    {R"([{"op":"replace","path":"/hypotheses/1/metric","value":"agreement"}])",
     "/hypotheses/1/kind: agreement has no equivalence"},
    {R"([{"op":"add","path":"/hypotheses/1/direction","value":"less"}])",
     "/hypotheses/1/direction: belongs to hypotheses of kind difference"},
    {R"([{"op":"add","path":"/hypotheses/2/margin","value":0.1}])",
     "/hypotheses/2/margin: belongs to hypotheses of kind equivalence"},
    {R"([{"op":"add","path":"/hypotheses/2/at_least","value":0.1}])",
     "/hypotheses/2/at_least: belongs to hypotheses of kind bound"},
    {R"([{"op":"add","path":"/hypotheses/0/direction","value":"less"}])",
     "/hypotheses/0/direction: belongs to other kinds"},
    {R"([{"op":"remove","path":"/hypotheses/2/direction"}])",
     "/hypotheses/2/direction: a difference needs its direction"},
    {R"([{"op":"remove","path":"/margins"}])",
     "/hypotheses/1/margin: an equivalence needs a margin"},
    {R"([{"op":"remove","path":"/published"}])",
     "/hypotheses/2/arms: one arm alone is compared with published figures"},
    {R"([{"op":"replace","path":"/hypotheses/2/metric","value":"nll"}])",
     "/hypotheses/2/metric: nll is not among published figures"},
};

}  // namespace

TEST_CASE("bad plans are refused with file, pointer and reason") {
  for (const BadPlan& bad : kBadPlans) {
    const Json json = example_plan().patch(Json::parse(bad.patch));
    const std::string text = error_of(ErrorKind::usage, [&] { parse_plan(json, "plan.json"); });
    check_contains(text, bad.message);
    CHECK(text.starts_with("plan.json: /"));
  }
}

TEST_CASE("a plan that is no object says so") {
  check_contains(error_of(ErrorKind::usage, [] { parse_plan(Json::array(), "plan.json"); }),
                 "plan.json: expected an object, found an array");
}

TEST_CASE("unknown keys come with those that are known") {
  Json json = example_plan();
  json["budget"]["minutes"] = 3;
  check_contains(error_of(ErrorKind::usage, [&] { parse_plan(json, "plan.json"); }),
                 "known keys here: usd, hours");
}

TEST_CASE("answer settings hold what can change an answer") {
  const Plan plan = parse_plan(example_plan(), "plan.json");
  CHECK(
      canonical_json(answer_settings(plan, plan.arm("a"))) ==
      R"({"backend":{"command":["{root}/serve","--port","{port}","-m","{checkpoint}"],"concurrency":4,)"
      R"("context":4096,"kind":"llamacpp","kv_cache":"f16","raw_probs":32,"read":"exact","slots":2,"threads":3},)"
      R"("checkpoint":{"files":[")" +
          kDigest + R"(",")" + kDigest +
          R"("],"revision":"r1","template":"none","weights_dtype":"Q4_1"},)"
          R"("prompt":{"reasoning":true,"sha256":")" +
          kDigest + R"(","state":"utf-8"}})");
}

TEST_CASE("answer settings change with what can change an answer, and with nothing else") {
  const auto settings = [](const char* patch) {
    const Plan plan = parse_plan(example_plan().patch(Json::parse(patch)), "plan.json");
    return canonical_sha256(answer_settings(plan, plan.arms[0]));
  };
  const std::string before = settings("[]");
  for (const char* patch : {
           R"([{"op":"replace","path":"/checkpoints/0/revision","value":"r9"}])",
           R"([{"op":"replace","path":"/backends/0/kv_cache","value":"q8_0"}])",
           R"([{"op":"replace","path":"/backends/0/concurrency","value":1}])",
           R"([{"op":"add","path":"/backends/0/model","value":"m"}])",
           R"([{"op":"replace","path":"/prompt/state","value":"ascii"}])",
           R"([{"op":"replace","path":"/arms/0/backend","value":"made-up"}])",
       }) {
    INFO(patch);
    CHECK(settings(patch) != before);
  }
  for (const char* patch : {
           R"([{"op":"replace","path":"/arms/0/boot_limit_s","value":1}])",
           R"([{"op":"replace","path":"/backends/0/attempts","value":1}])",
           R"([{"op":"remove","path":"/backends/0/price"}])",
           R"([{"op":"replace","path":"/checkpoints/0/name","value":"Other"}])",
           R"([{"op":"replace","path":"/repeats","value":5}])",
           R"([{"op":"replace","path":"/hypotheses","value":[]}])",
       }) {
    INFO(patch);
    CHECK(settings(patch) == before);
  }
}

namespace {

/// JSON pointers of all numbers below `json`.
void numbers_below(const Json& json, const std::string& pointer, std::vector<std::string>& found) {
  if (json.is_number()) found.push_back(pointer);
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    numbers_below(value, pointer + "/" + pointer_token(key), found);
  }
}

}  // namespace

TEST_CASE("no number of a plan may be so large that a duration or a count made of it overflows") {
  // What stays a fraction or an amount of money, and is compared and never counted.
  const std::set<std::string> amounts{"/backends/0/price/usd_per_hour",
                                      "/backends/0/price/usd_per_million_input_tokens",
                                      "/hypotheses/3/at_most", "/margins/accuracy", "/budget/usd"};
  std::vector<std::string> pointers;
  numbers_below(example_plan(), "", pointers);
  CHECK(pointers.size() > 40);
  for (const std::string& pointer : pointers) {
    INFO(pointer);
    Json json = example_plan();
    json[Json::json_pointer(pointer)] = 1e300;
    if (amounts.contains(pointer)) {
      CHECK_NOTHROW(parse_plan(json, "plan.json"));
      continue;
    }
    const std::string text = error_of(ErrorKind::usage, [&] { parse_plan(json, "plan.json"); });
    check_contains(text, "plan.json: " + pointer + ": ");
  }
}

TEST_CASE("waits are above nothing and at most a day, and what is refused says so") {
  for (const char* pointer : {"/backends/0/timeouts/connect_s", "/backends/0/timeouts/first_byte_s",
                              "/backends/0/timeouts/total_s", "/arms/0/boot_limit_s"}) {
    INFO(pointer);
    for (const double seconds : {0.001, 0.5, 86400.0}) {
      Json json = example_plan();
      json[Json::json_pointer(pointer)] = seconds;
      CHECK_NOTHROW(parse_plan(json, "plan.json"));
    }
    for (const double seconds : {-1.0, 0.0, 86400.5, 1e12, 1e300}) {
      Json json = example_plan();
      json[Json::json_pointer(pointer)] = seconds;
      check_contains(error_of(ErrorKind::usage, [&] { parse_plan(json, "plan.json"); }),
                     fmt::format("{}: must be above 0 and at most 86400, is {}", pointer, seconds));
    }
  }
  Json json = example_plan();
  for (int i = 0; i < 9; ++i) {
    json["checkpoints"][0]["files"].push_back({{"name", fmt::format("part-{}", i)},
                                               {"sha256", kDigest},
                                               {"bytes", std::int64_t{1} << 50}});
  }
  check_contains(error_of(ErrorKind::usage, [&] { parse_plan(json, "plan.json"); }),
                 "/checkpoints/0/files/9/bytes: all files together");
}
