// verify, lock and audit as a user calls them: what they print and how they end.
#include <sstream>
#include <thread>

#include "base/error.h"
#include "catch.h"
#include "cli/command.h"
#include "plan/example_plan.h"
#include "plan/expect_error.h"
#include "run/study.h"

using namespace preval;
using namespace preval::test;

namespace {

struct Shell {
  MemoryFiles files;
  ManualClock clock;
  std::ostringstream out, err;
  Json plan = example_study(files);

  Shell() {
    files.content["study/prompts/p.json"] =
        R"x({"name":"p","opening":"o","question":"{id}: {instructions}",
            "alternative":"{label}: {name} ({description})","alternative_bare":"{label}: {name}",
            "verdict":"{label}: {description}","verdict_bare":"{label}","closing":"{id}: {label_list}"})x";
    files.content["study/published.json"] =
        R"({"preval_published":1,"model":"m","source":"s","subsets":{}})";
    plan["prompt"]["sha256"] = sha256_hex(files.content["study/prompts/p.json"]);
    plan["published"]["sha256"] = sha256_hex(files.content["study/published.json"]);
    save();
  }
  void save() { files.content["study/plan.json"] = plan.dump(); }

  int run(const std::string& arguments) {
    out.str("");
    err.str("");
    Context context{files, clock, out, err};
    CLI::App app;
    add_verify(app, context);
    add_lock(app, context);
    add_audit(app, context);
    add_deviate(app, context);
    app.parse(arguments);
    return context.exit_code;
  }
  Json printed() const { return parse_json(out.str(), "stdout"); }
};

}  // namespace

TEST_CASE("verify prints one line per subset") {
  Shell shell;
  CHECK(shell.run("verify study/plan.json") == 0);
  CHECK(shell.out.str() == "ok        boolq    3 records, 2 families, sha256 " +
                               sha256_hex(kBoolq).substr(0, 12) +
                               "\n"
                               "ok        massive  2 records, 2 families, sha256 " +
                               sha256_hex(kMassive).substr(0, 12) +
                               "\n"
                               "ok        stars    1 records, 1 families, sha256 " +
                               sha256_hex(kStars).substr(0, 12) +
                               "\n"
                               "3 ok, 0 missing, 0 mismatch\n");
  CHECK(shell.err.str().empty());
}

TEST_CASE("verify ends with 1 when files are missing and 3 when one differs") {
  Shell shell;
  shell.files.content.erase("data/massive/all.jsonl");
  CHECK(shell.run("verify study/plan.json") == 1);
  check_contains(shell.out.str(), "missing   massive  no file data/massive/all.jsonl\n");
  shell.files.content["data/boolq/all.jsonl"] += kStars;
  CHECK(shell.run("verify study/plan.json") == 3);
  check_contains(shell.out.str(), "mismatch  boolq    registered sha256 " +
                                      sha256_hex(kBoolq).substr(0, 12) + ", found ");
  check_contains(shell.out.str(), "1 ok, 1 missing, 1 mismatch\n");
}

TEST_CASE("verify --json has the agreed keys") {
  Shell shell;
  shell.files.content.erase("data/massive/all.jsonl");
  shell.files.content["data/boolq/all.jsonl"] = "\xEF\xBB\xBF" + kBoolq;
  CHECK(shell.run("verify study/plan.json --json") == 3);
  check_contains(shell.err.str(), "warning: data/boolq/all.jsonl");
  const Json json = shell.printed();
  CHECK(json["plan"] == "example");
  CHECK(json["ok"] == 1);
  CHECK(json["missing"] == 1);
  CHECK(json["mismatch"] == 1);
  REQUIRE(json["subsets"].size() == 3);
  const Json& boolq = json["subsets"][0];
  CHECK(boolq["subset"] == "boolq");
  CHECK(boolq["status"] == "mismatch");
  CHECK(boolq["registered_sha256"] == sha256_hex(kBoolq));
  CHECK(boolq["found_sha256"] == sha256_hex("\xEF\xBB\xBF" + kBoolq));
  CHECK(boolq["registered_records"] == 3);
  CHECK(boolq["found_records"] == 3);
  CHECK(boolq["registered_families"] == 2);
  CHECK(boolq["found_families"] == 2);
  CHECK(boolq["problem"] == "only a byte order mark differs");
  CHECK(json["subsets"][1]["status"] == "missing");
  CHECK(json["subsets"][1]["found_sha256"].is_null());
  CHECK(json["subsets"][2]["problem"].is_null());
}

TEST_CASE("verify --data looks elsewhere") {
  Shell shell;
  CHECK(shell.run("verify study/plan.json --data none") == 1);
  check_contains(shell.out.str(), "no file none/boolq/all.jsonl");
}

TEST_CASE("lock writes once, and says so") {
  Shell shell;
  CHECK(shell.run("lock study/plan.json") == 0);
  CHECK(shell.out.str() == "study/plan.lock.json\n");
  CHECK(shell.err.str() == "locked example as sha256 " + canonical_sha256(shell.plan) + "\n");
  const std::string before = shell.files.content["study/plan.lock.json"];
  CHECK(shell.run("lock study/plan.json") == 0);
  check_contains(shell.err.str(),
                 "example is locked already, since 2023-11-14T22:13:20Z, and unchanged");
  CHECK(shell.files.content["study/plan.lock.json"] == before);
  shell.plan["repeats"] = 5;
  shell.save();
  check_contains(error_of(ErrorKind::drift, [&] { shell.run("lock study/plan.json"); }),
                 "/repeats: registered 2, found 5");
}

TEST_CASE("lock refuses files that nobody could use") {
  {
    Shell shell;
    shell.files.content["study/prompts/p.json"] = "{}";
    shell.plan["prompt"]["sha256"] = sha256_hex("{}");
    shell.save();
    check_contains(error_of(ErrorKind::usage, [&] { shell.run("lock study/plan.json"); }),
                   "study/prompts/p.json: /name: required key");
  }
  {
    Shell shell;
    shell.files.content["study/published.json"] = "{}";
    check_contains(error_of(ErrorKind::usage, [&] { shell.run("lock study/plan.json"); }),
                   "study/published.json: /preval_published");
  }
  {
    Shell shell;
    shell.plan["datasets"][0]["subsets"][0]["records"] = 4;
    shell.save();
    check_contains(error_of(ErrorKind::usage, [&] { shell.run("lock study/plan.json"); }),
                   "/datasets/0/subsets/0/records: registered 4, found 3");
  }
  {
    Shell shell;
    shell.files.content.erase("study/prompts/p.json");
    check_contains(error_of(ErrorKind::drift, [&] { shell.run("lock study/plan.json"); }),
                   "prompts/p.json: registered");
    CHECK_FALSE(shell.files.exists("study/plan.lock.json"));
  }
}

TEST_CASE("audit ends with 3 when something drifted, and explains it") {
  Shell shell;
  CHECK(shell.run("lock study/plan.json") == 0);
  CHECK(shell.run("audit study/plan.json") == 0);
  CHECK(shell.out.str() == "7 checked, 0 drifted, 3 not checked\n");

  shell.files.content["data/massive/all.jsonl"] = kStars;
  CHECK(shell.run("audit study/plan.json") == 3);
  CHECK(shell.out.str() ==
        "drift  data  data/massive/all.jsonl\n7 checked, 1 drifted, 3 not checked\n");
  check_contains(shell.err.str(), "--explain");

  CHECK(shell.run("audit study/plan.json --explain") == 3);
  check_contains(shell.out.str(), "  registered  " + sha256_hex(kMassive) + "\n");
  check_contains(shell.out.str(), "  found       " + sha256_hex(kStars));
  check_contains(shell.out.str(), "  first row   line 1\n");
  check_contains(shell.err.str(), "not checked: file small.gguf of checkpoint small: not there");

  CHECK(shell.run("audit study/plan.json --json") == 3);
  const Json json = shell.printed();
  CHECK(json["checked"] == 7);
  REQUIRE(json["findings"].size() == 1);
  CHECK(json["findings"][0]["what"] == "data");
  CHECK(json["findings"][0]["registered"] == sha256_hex(kMassive));
  CHECK(json["findings"][0]["first_row"] == "line 1");
  CHECK(json["unchecked"].size() == 3);
}

TEST_CASE("deviations that are registered at the same time are all kept") {
  Study study;
  study.lock();
  const std::string plan = (study.folder() / "prereg/plan.json").string();
  const std::vector<std::string> fields{"/description", "/arms/0/boot_limit_s",
                                        "/arms/1/boot_limit_s", "/repeats"};
  const std::vector<std::string> from{"null", "5", "5", "null"}, to{"\"d\"", "6", "7", "2"};
  std::vector<std::thread> threads;
  std::vector<int> codes(fields.size(), -1);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    threads.emplace_back([&, i] {
      std::ostringstream out, err;
      SystemFiles files;
      ManualClock clock;
      Context context{files, clock, out, err};
      CLI::App app;
      add_deviate(app, context);
      app.parse(std::vector<std::string>{"why", "--why", to[i], "--to", from[i], "--from",
                                         fields[i], "--field", plan, "deviate"});
      codes[i] = context.exit_code;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(codes == std::vector<int>{0, 0, 0, 0});
  CHECK(study.open().deviations.size() == 4);
}

TEST_CASE("deviate takes JSON values, and what belongs together in one call") {
  Shell shell;
  CHECK(shell.run("lock study/plan.json") == 0);
  CHECK(shell.run("deviate study/plan.json --field /arms/0/boot_limit_s --from 90 --to 1500 --why "
                  "'it compiles'") == 0);
  CHECK(shell.out.str() == "study/plan.deviations.jsonl\n");
  CHECK(shell.err.str() == "deviation 1: /arms/0/boot_limit_s from 90 to 1500\n");
  CHECK(shell.run("deviate study/plan.json --field /backends/0/read --from '\"exact\"' --to "
                  "'\"top-k\"' --field /backends/0/k --from null --to 32 --field "
                  "/backends/0/raw_probs --from 32 --to null --why w") == 0);
  check_contains(shell.err.str(), "deviation 2: /backends/0/read from \"exact\" to \"top-k\"\n");
  check_contains(shell.err.str(), "deviation 4: /backends/0/raw_probs from 32 to null\n");
  check_contains(error_of(ErrorKind::usage,
                          [&] {
                            shell.run(
                                "deviate study/plan.json --field /backends/0/kind --from "
                                "llamacpp --to vllm --why w");
                          }),
                 "--from");
  check_contains(error_of(ErrorKind::usage,
                          [&] {
                            shell.run(
                                "deviate study/plan.json --field /repeats --field /version "
                                "--from 2 --to 3 --why w");
                          }),
                 "2 fields, 1 values --from");
  CHECK(shell.run("audit study/plan.json") == 0);
}

TEST_CASE("a deviation that contradicts the manifest is not written") {
  Shell shell;
  CHECK(shell.run("lock study/plan.json") == 0);
  const Json subset =
      Json::parse(shell.files.content["study/plan.json"])["datasets"][0]["subsets"][0];
  const int records = subset["records"].get<int>();
  check_contains(error_of(ErrorKind::usage,
                          [&] {
                            shell.run(fmt::format(
                                "deviate study/plan.json --field /datasets/0/subsets/0/records "
                                "--from {} --to {} --why w",
                                records, records + 1));
                          }),
                 fmt::format("/datasets/0/subsets/0/records would be {}, its manifest says {}",
                             records + 1, records));
  CHECK_FALSE(shell.files.content.contains("study/plan.deviations.jsonl"));
}

TEST_CASE("each of these commands teaches in its help") {
  Shell shell;
  Context context{shell.files, shell.clock, shell.out, shell.err};
  CLI::App app;
  add_verify(app, context);
  add_lock(app, context);
  add_audit(app, context);
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    const std::string help = command->help();
    INFO(help);
    const std::string call = "\n  preval " + command->get_name() + " ";
    std::size_t examples = 0;
    for (std::size_t at = help.find(call); at != std::string::npos; at = help.find(call, at + 1))
      ++examples;
    CHECK(examples == 3);
    check_contains(help, "Exit codes: 0 ");
  }
}
