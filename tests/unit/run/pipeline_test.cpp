// The whole run on simulated arms: gate, verify, reads, resume, and what each ending comes to.
#include "run/pipeline.h"

#include "base/error.h"
#include "catch.h"
#include "run/study.h"

using namespace preval;
using namespace preval::test;

TEST_CASE("a plan that is not locked is refused, unless the run is exploratory") {
  Study study;
  const Error error = thrown([&] { study.run(); });
  CHECK(error.kind() == ErrorKind::usage);
  CHECK(contains(error.what(), "is not locked"));
  CHECK(contains(error.hint(), "preval lock"));

  RunOptions options;
  options.exploratory = true;
  CHECK(study.run(options).exit_code() == 0);
  CHECK(study.value("SELECT count(*) FROM prediction WHERE exploratory = 1") == "16");
  CHECK(study.value("SELECT count(*) FROM prediction WHERE exploratory = 0") == "0");
}

TEST_CASE("a plan that changed since it was locked is drift that names the field") {
  Study study;
  study.lock();
  study.plan()["repeats"] = 3;
  study.save();
  const Error error = thrown([&] { study.run(); });
  CHECK(error.kind() == ErrorKind::drift);
  CHECK(contains(error.what(), "/repeats"));
}

TEST_CASE("a prompt file that changed is drift, even in an exploratory run") {
  Study study;
  study.lock();
  study.write("prereg/prompt.json", study.read("prereg/prompt.json") + " ");
  RunOptions options;
  options.exploratory = true;
  CHECK(thrown([&] { study.run(); }).kind() == ErrorKind::drift);
  CHECK(thrown([&] { study.run(options); }).kind() == ErrorKind::drift);
}

TEST_CASE("a complete run answers every record on every arm, and a second one asks nothing") {
  Study study;
  study.lock();
  const RunResult first = study.run();
  CHECK(first.exit_code() == 0);
  CHECK(first.outcome() == "complete");
  CHECK(study.value("SELECT count(*) FROM prediction") == "16");
  CHECK(study.value("SELECT count(*) FROM label") == "32");
  CHECK(study.value("SELECT count(*) FROM arm WHERE status = 'started'") == "2");
  CHECK(study.value("SELECT outcome || exit_code FROM run") == "complete0");
  CHECK(study.listener.subsets == 4);

  study.listener.stages.clear();
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT count(*) FROM prediction") == "16");
  CHECK(study.value("SELECT count(*) FROM run") == "2");
  CHECK(contains(study.listener.stages.back(), "everything is stored already"));
}

TEST_CASE("repeats are reads of their own") {
  Study study;
  study.plan()["repeats"] = 5;
  study.save();
  study.lock();
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT count(*) FROM prediction") == "80");
  CHECK(study.value("SELECT count(DISTINCT repeat) FROM prediction") == "5");
}

TEST_CASE("a missing subset is skipped and named, a changed one dropped and named") {
  Study study;
  study.lock();
  const std::string whole = study.read("data/two/all.jsonl");
  std::string changed = whole;
  changed[changed.find("text 3")] = 'T';
  study.write("data/two/all.jsonl", changed);
  const RunResult dropped = study.run();
  CHECK(dropped.exit_code() == 3);
  CHECK(dropped.dropped_subsets == std::vector<std::string>{"two"});
  CHECK(study.value("SELECT count(*) FROM prediction") == "8");
  CHECK(study.value("SELECT status FROM subset WHERE name = 'two'") == "mismatch");

  std::filesystem::remove_all(study.db_path().parent_path() / "data/two");
  const RunResult missing = study.run();
  CHECK(missing.exit_code() == 4);
  CHECK(missing.missing_subsets == std::vector<std::string>{"two"});

  study.write("data/two/all.jsonl", whole);
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT count(*) FROM prediction") == "16");
}

TEST_CASE("selection and limit narrow what is asked, and a later run does the rest") {
  Study study;
  study.lock();
  RunOptions options;
  options.arms = {"b"};
  options.subsets = {"one"};
  options.limit = 2;
  CHECK(study.run(options).exit_code() == 0);
  CHECK(study.value("SELECT count(*) FROM prediction") == "2");
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT count(*) FROM prediction") == "16");

  options.arms = {"c"};
  CHECK(contains(thrown([&] { study.run(options); }).what(), "no arm 'c'"));
  options.arms.clear();
  options.subsets = {"ones"};
  CHECK(contains(thrown([&] { study.run(options); }).what(), "did you mean one?"));
}

TEST_CASE("asked to stop, a run keeps what it has and goes on where it was") {
  Study study;
  study.lock();
  study.listener.on_progress = [&](const Progress& progress) {
    if (progress.done == 3) study.interrupt.asked = 1;
  };
  const RunResult stopped = study.run();
  CHECK(stopped.interrupted);
  CHECK(stopped.exit_code() == 130);
  CHECK(study.value("SELECT count(*) FROM prediction") == "3");
  CHECK(study.value("SELECT outcome FROM run") == "interrupted");

  study.interrupt.asked = 0;
  study.listener.on_progress = {};
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT count(*) FROM prediction") == "16");
}

TEST_CASE("of the arms of one fallback group the first that serves is run") {
  Study study;
  for (auto& arm : study.plan()["arms"]) arm["fallback_group"] = "26b";
  study.save();
  study.lock();
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT status || ': ' || reason FROM arm WHERE name = 'b'") ==
        "not run: a serves for 26b");
}

TEST_CASE("arms that only tried before another of their group served are no missing arms") {
  Study study;
  study.plan()["backends"][0] = {
      {"id", "exact"},     {"kind", "llamacpp"},
      {"read", "exact"},   {"server", {{"command", {"/no/such/server", "{port}"}}}},
      {"kv_cache", "f16"}, {"context", 64},
      {"slots", 1}};
  for (auto& arm : study.plan()["arms"]) arm["fallback_group"] = "26b";
  study.save();
  study.lock();
  RunOptions options;
  options.logs = study.db_path().parent_path();
  const RunResult result = study.run(options);
  CHECK(result.unserved_arms.empty());
  CHECK(result.missing_reads == 0);
  CHECK(result.exit_code() == 0);
  CHECK(study.value("SELECT status FROM arm WHERE name = 'a'") == "failed");
  CHECK(study.value("SELECT status FROM arm WHERE name = 'b'") == "started");
}

TEST_CASE("bytes in a server's last words that are no UTF-8 do not reach store or report") {
  Study study;
  SystemClock clock;  // a process needs real time to end
  study.clock = &clock;
  study.plan()["backends"][0] = {
      {"id", "exact"},
      {"kind", "llamacpp"},
      {"read", "exact"},
      {"server",
       {{"command", {"sh", "-c", R"(printf 'load\303\033[31m\n'; exit 1)", "x", "{port}"}}}},
      {"kv_cache", "f16"},
      {"context", 64},
      {"slots", 1}};
  study.save();
  study.lock();
  RunOptions options;
  options.logs = study.db_path().parent_path();
  CHECK(study.run(options).exit_code() == 5);
  const std::string reason = study.value("SELECT reason FROM arm WHERE name = 'a'");
  INFO(reason);
  CHECK(contains(reason, "its last lines:\nload\uFFFD\uFFFD[31m"));
}

TEST_CASE(
    "terms that are not accepted are a recorded outcome; so is an exploratory arm that fails") {
  Study study;
  study.plan()["backends"][1] = {
      {"id", "other"},     {"kind", "llamacpp"},
      {"read", "exact"},   {"server", {{"command", {"/no/such/server", "{port}"}}}},
      {"kv_cache", "f16"}, {"context", 64},
      {"slots", 1}};
  study.plan()["checkpoints"].push_back({{"id", "gated"},
                                         {"name", "Gated"},
                                         {"revision", "1"},
                                         {"weights_dtype", "none"},
                                         {"license", "terms"},
                                         {"template", "chat"},
                                         {"files", Json::array()},
                                         {"terms", {{"id", "t"}, {"url", "http://example.org"}}}});
  study.plan()["arms"][1]["checkpoint"] = "gated";
  study.plan()["arms"][1]["confirmatory"] = false;
  study.save();
  study.lock();
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT status || ': ' || reason FROM arm WHERE name = 'b'") ==
        "not run: terms not accepted");

  RunOptions options;
  options.accepted_terms = {"t"};
  options.logs = study.db_path().parent_path();
  CHECK(study.run(options).exit_code() == 0);
  CHECK(study.value("SELECT status FROM arm WHERE name = 'b'") == "failed");

  study.plan()["arms"][1]["confirmatory"] = true;
  study.save();
  std::filesystem::remove(study.db_path().parent_path() / "prereg/plan.lock.json");
  std::filesystem::remove(study.db_path());
  study.lock();
  const RunResult result = study.run(options);
  CHECK(result.exit_code() == 5);
  CHECK(result.unserved_arms == std::vector<std::string>{"b"});
}

TEST_CASE("the first exit code that applies is taken") {
  RunResult result;
  CHECK(result.exit_code() == 0);
  result.missing_reads = 1;
  CHECK(result.exit_code() == 4);
  result.unserved_arms = {"a"};
  CHECK(result.exit_code() == 5);
  result.dropped_subsets = {"s"};
  CHECK(result.exit_code() == 3);
  result.interrupted = true;
  CHECK(result.exit_code() == 130);
}

TEST_CASE("a dry run says what is registered, stored and left to ask") {
  Study study;
  study.lock();
  RunOptions options;
  const auto before = dry_run(study.files(), study.open(), options, nullptr);
  REQUIRE(before.size() == 2);
  CHECK(before[0].registered == 8);
  CHECK(before[0].stored == 0);
  options.limit = 1;
  options.arms = {"a"};
  study.run(options);
  Db db = open_store(study.db_path(), Db::Mode::read_only);
  options = {};
  const auto after = dry_run(study.files(), study.open(), options, &db);
  CHECK(after[0].stored == 2);
  CHECK(after[1].stored == 0);
  // What is stored is counted within what was selected.
  options.subsets = {"two"};
  CHECK(dry_run(study.files(), study.open(), options, &db)[0].stored == 1);
  options.limit = 1;
  const auto narrow = dry_run(study.files(), study.open(), options, &db);
  CHECK(narrow[0].registered == 1);
  CHECK(narrow[0].stored == 1);
  options.exploratory = true;
  const auto exploratory = dry_run(study.files(), study.open(), options, &db);
  CHECK_FALSE(exploratory[0].confirmatory);
  CHECK(exploratory[0].stored == 0);
}

TEST_CASE("a dry run counts what is registered, whether it is here or not") {
  Study study;
  study.lock();
  std::filesystem::remove(study.folder() / "data/two/all.jsonl");
  RunOptions options;
  const ArmPlan arm = dry_run(study.files(), study.open(), options, nullptr)[0];
  CHECK(arm.registered == 8);
  CHECK(arm.left_out == 4);
  CHECK(arm.to_ask() == 4);
  options.limit = 1;
  CHECK(dry_run(study.files(), study.open(), options, nullptr)[0].left_out == 1);
}

TEST_CASE("questions too wide for reads by token are asked of native arms only, and nobody waits") {
  // The first one is wide: it would be a smoke read, and what preflight asks.
  const std::vector<int> widths =
      GENERATE(std::vector<int>{30, 3, 27, 26}, std::vector<int>{27, 255});
  const auto wide = static_cast<int>(
      std::count_if(widths.begin(), widths.end(), [](int width) { return width > 26; }));
  const auto all = static_cast<int>(widths.size());
  Study study;
  study.put_records("two", "choice", Study::choices("two", widths), all, all);
  study.plan()["datasets"][0]["variants"] = {"none", "reversed"};
  study.plan()["repeats"] = 2;
  study.plan()["backends"][1]["read"] = "native";
  study.save();
  study.lock();

  // By token: 4 of subset one, and what is narrow, in two variants. Everything twice.
  const std::int64_t by_token = 2 * (4 + 2 * (all - wide)), native = 2 * (4 + 2 * all);
  std::vector<ArmPlan> planned = dry_run(study.files(), study.open(), {}, nullptr);
  CHECK(planned[0].registered == native);
  CHECK(planned[0].to_ask() == by_token);
  CHECK(planned[1].registered == native);

  const RunResult result = study.run();
  INFO(fmt::format("{}", fmt::join(study.listener.notices, "\n")));
  CHECK(result.exit_code() == 0);
  CHECK(result.missing_reads == 0);
  CHECK(result.dropped_subsets.empty());
  const auto answers = [&](const std::string& arm) {
    return study.value("SELECT count(*) FROM v_prediction WHERE arm = '" + arm + "'");
  };
  CHECK(answers("a") == std::to_string(by_token));
  CHECK(answers("b") == std::to_string(native));
  const std::string told = fmt::format(
      "subset two: {} questions have up to {} options, reads by token take at most 26 (the first: "
      "record "
      "two-0, question decision): not read by "
      "this arm",
      wide, *std::max_element(widths.begin(), widths.end()));
  CHECK(study.listener.notices == std::vector<std::string>{"arm a: " + told});
  CHECK(study.value("SELECT arm || ' ' || kind || ' ' || detail FROM v_event WHERE kind = "
                    "'warning'") == "a warning " + told);

  // What was left out is neither missing nor a failure, and the accuracy counts it as wrong.
  const auto cell = [&](const std::string& arm, const std::string& columns) {
    return study.value("SELECT " + columns +
                       " FROM v_completeness WHERE subset = 'two' AND variant = "
                       "'none' AND repeat = 0 AND arm = '" +
                       arm + "'");
  };
  const std::string counts =
      "n_answered || ' ' || n_failed || ' ' || n_not_asked || ' ' || n_unreadable";
  CHECK(cell("a", counts) == fmt::format("{} 0 0 {}", all - wide, wide));
  CHECK(cell("b", counts) == fmt::format("{} 0 0 0", all));
  CHECK(cell("b", "state") == "complete");
  const std::string accuracy = study.value(
      "SELECT coalesce(accuracy = n_correct * 1.0 / n_registered, 'none') || ' ' || state "
      "FROM v_accuracy WHERE arm = 'a' AND subset = 'two'");
  if (wide == all) {
    CHECK(cell("a", "state") ==
          "not readable: 2 of 2 questions have up to 255 options, reads by token take at most 26");
    CHECK(accuracy == "none " + cell("a", "state"));
  } else {
    CHECK(cell("a", "state") ==
          "complete but for what is not readable: 2 of 4 questions have up to 30 options, reads by "
          "token take at most 26");
    CHECK(accuracy == "1 " + cell("a", "state"));
  }

  // Nothing is left for another run, which says the same.
  planned = [&] {
    Db db = open_store(study.db_path(), Db::Mode::read_only);
    return dry_run(study.files(), study.open(), {}, &db);
  }();
  CHECK(planned[0].stored == by_token);
  study.listener.notices.clear();
  CHECK(study.run().exit_code() == 0);
  CHECK(answers("a") == std::to_string(by_token));
  CHECK(study.listener.notices.size() == 1);
}

TEST_CASE("asked to stop while the data is verified, a run ends at once and can be begun again") {
  Study study;
  study.lock();
  study.interrupt.asked = 1;
  const Error error = thrown([&] { study.run(); });
  CHECK(error.kind() == ErrorKind::interrupted);
  CHECK(contains(error.hint(), "the same command"));
  CHECK(study.value("SELECT outcome || ' ' || exit_code FROM run") == "interrupted 130");
  CHECK(study.value("SELECT outcome FROM stage WHERE name = 'verify'") == "interrupted");
  CHECK(study.value("SELECT count(*) FROM prediction") == "0");
  study.interrupt.asked = 0;
  CHECK(study.run().exit_code() == 0);
  CHECK(study.value("SELECT count(*) FROM prediction") == "16");
}

TEST_CASE("a checkpoint that is not the registered one is drift, and no folder of it is told") {
  Study study;
  study.write("models/model.gguf", "other weights");
  study.plan()["checkpoints"][0]["files"] = {
      {{"name", "model.gguf"}, {"sha256", sha256_hex("weights")}}};
  Json backend = Study::served("exact", "llamacpp", "");
  backend.erase("url");
  backend["server"] = {{"command", {"sh", "-c", "exit 1", "{port}"}}};
  study.only(backend);
  study.lock();
  RunOptions options;
  options.checkpoints = study.folder() / "models";
  CHECK(study.run(options).exit_code() == 3);
  CHECK(study.value("SELECT kind || ' ' || name || ': ' || detail FROM v_drift") ==
        fmt::format("arm a: checkpoint file model.gguf: registered sha256 {}, found {}",
                    sha256_hex("weights"), sha256_hex("other weights")));
  // What stopped it next is no drift.
  study.write("models/model.gguf", "weights");
  CHECK(study.run(options).exit_code() == 5);
  CHECK(study.value("SELECT count(*) FROM v_drift") == "0");
}

TEST_CASE("asked to stop while a checkpoint is checked, an arm ends at once") {
  Study study;
  const std::string weights(3 * 1024 * 1024, 'w');
  study.write("models/model.gguf", weights);
  study.plan()["checkpoints"][0]["files"] = {
      {{"name", "model.gguf"}, {"sha256", sha256_hex(weights)}}};
  Json backend = Study::served("exact", "llamacpp", "");
  backend.erase("url");
  backend["server"] = {{"command", {"sh", "-c", "exit 1", "{port}"}}};
  study.only(backend);
  study.lock();
  // Heard between two blocks of the file: what comes later, the server, is not started.
  study.listener.on_stage = [&](std::string_view stage) {
    if (stage == "checkpoint") study.interrupt.asked = 1;
  };
  RunOptions options;
  options.checkpoints = study.folder() / "models";
  const RunResult result = study.run(options);
  CHECK(result.exit_code() == 130);
  CHECK(study.value("SELECT outcome FROM stage WHERE name = 'checkpoint'") == "interrupted");
  CHECK(study.value("SELECT count(*) FROM stage WHERE name = 'boot'") == "0");
}
