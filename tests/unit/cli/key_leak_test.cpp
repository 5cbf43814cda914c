// A key is planted, and the server throws it back in every way it can. It must be nowhere: not in
// the store, the logs, the reports, the transcript, on the terminal, nor in the environment or the
// arguments of what preval starts.
#include <sys/stat.h>

#include <cstdlib>
#include <sstream>

#include "../run/study.h"
#include "catch.h"
#include "cli/study.h"
#include "server/model.h"

using namespace preval;
using namespace preval::test;

namespace {

constexpr char kKey[] = "sk-planted-5d1f0a/77\"e9";
/// What is left of it when texts are cut or escaped in the middle.
const std::vector<std::string> kTraces{"sk-planted", "5d1f0a"};

std::string tokens_of(const std::string& text) {
  test_server::Tokenizer tokenizer;
  return fmt::format("{},", fmt::join(tokenizer.tokens_of(text), ","));
}

/// Files under a folder that hold a trace of the key, by name.
std::vector<std::string> traces_in(const std::filesystem::path& folder,
                                   const std::string& but_not) {
  SystemFiles files;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().filename() == but_not) continue;
    const std::string text = files.read(entry.path());
    for (const std::string& trace : kTraces) {
      if (contains(text, trace)) found.push_back(entry.path().filename().string());
    }
  }
  return found;
}

}  // namespace

TEST_CASE("a planted key is found nowhere after a run", "[cli]") {
  Study study;
  study.write("key", std::string(kKey) + "\n");
  chmod((study.folder() / "key").c_str(), 0600);
  const std::string long_words(280,
                               'x');  // messages are cut at 300 bytes: in the middle of the key
  const Json script{
      {"kind", "llamacpp"},
      {"rules",
       {{{"path", "/props"}, {"nth", {1}}, {"do", {{"status", 503}, {"body", "not yet, {key}"}}}},
        {{"containing", tokens_of("text 1")},
         {"do", {{"status", 400}, {"body", {{"error", {{"message", long_words + " {key}"}}}}}}}},
        {{"containing", tokens_of("text 2")},
         {"do",
          {{"status", 502}, {"content_type", "text/html"}, {"body", "<title>{key}</title>{key}"}}}},
        {{"containing", tokens_of("text 3")},
         {"do",
          {{"body", "{\"completion_probabilities\":\"{key}\",\"{key}\":{key}"},
           {"headers", {{"retry-after", "{key}"}}}}}}}}};
  study.write("script.json", script.dump());
  Json backend = Study::served("exact", "llamacpp", "");
  backend.erase("url");
  backend["attempts"] = 2;
  backend["key_env"] = "PREVAL_TEST_KEY";
  backend["server"] = {
      {"command",
       {"sh", "-c",
        fmt::format("env | grep -e PREVAL -e PWD; tr '\\0' ' ' </proc/$PPID/cmdline; exec {} "
                    "--kind llamacpp --port {{port}} "
                    "--script {{root}}/script.json",
                    PREVAL_TEST_SERVER)}},
      {"version_command", {"sh", "-c", "echo engine 1 $PREVAL_TEST_KEY $PREVAL_TEST_KEY_FILE"}}};
  study.only(backend);
  study.lock();

  std::ostringstream out, err;
  SystemClock clock;  // a real server takes real time to boot
  Context context{study.files(), clock, out, err};
  context.db = study.db_path();
  StudyOptions options;
  options.plan = (study.folder() / "prereg/plan.json").string();
  options.logs = (study.folder() / "logs").string();
  options.record = (study.folder() / "recorded").string();
  const bool by_file = GENERATE(true, false);
  if (by_file) {
    setenv("PREVAL_TEST_KEY_FILE", (study.folder() / "key").c_str(), 1);
  } else {
    setenv("PREVAL_TEST_KEY", kKey, 1);
  }
  run_study(context, options, std::nullopt);
  unsetenv("PREVAL_TEST_KEY");
  unsetenv("PREVAL_TEST_KEY_FILE");
  INFO(err.str());

  // The run went as far as it could, and kept what the server said.
  CHECK(context.exit_code == 4);
  CHECK(study.value("SELECT count(*) FROM prediction") == "2");
  CHECK(study.value("SELECT count(*) FROM failure WHERE stage = 'read' AND body_head LIKE "
                    "'%[key removed]%'") == "8");
  CHECK(study.value("SELECT json_extract(identity, '$.engine') FROM configuration") == "engine 1");
  CHECK(contains(study.read("recorded/a.transcript.jsonl"), "[key removed]"));
  CHECK(contains(study.read("logs/a.boot-1.log"), "PWD="));

  CHECK(traces_in(study.folder(), "key") == std::vector<std::string>{});
  for (const std::string& trace : kTraces) {
    CHECK_FALSE(contains(out.str(), trace));
    CHECK_FALSE(contains(err.str(), trace));
  }
}

TEST_CASE("D10: a run that got nothing at all is scored and reported without dividing by it",
          "[cli]") {
  Study study;
  study.only(Study::served("exact", "llamacpp", "http://127.0.0.1:1"));
  study.lock();
  std::ostringstream out, err;
  Context context{study.files(), *study.clock, out, err};
  context.db = study.db_path();
  StudyOptions options;
  options.plan = (study.folder() / "prereg/plan.json").string();
  options.logs = (study.folder() / "logs").string();
  run_study(context, options, std::nullopt);
  CHECK(context.exit_code == 5);
  CHECK(study.value("SELECT count(*) FROM prediction") == "0");
  for (const std::string& text : {out.str(), study.read("report.md"), study.read("report.json")}) {
    for (const char* wrong : {" nan", ":nan", "NaN", " inf", "-inf", ":inf"}) {
      INFO(wrong << " in " << text);
      CHECK_FALSE(contains(text, wrong));
    }
  }
}
