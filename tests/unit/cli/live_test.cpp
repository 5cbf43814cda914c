// End to end on the real thing: `preval run` boots the llama.cpp server with SmolLM2 and reads
// twenty records in both modes. Skipped, and counted as skipped, where the packages cannot be had.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "catch.h"
#include "skip.h"
#include "store/store.h"

using namespace preval;
namespace fs = std::filesystem;

namespace {

const fs::path kSource = PREVAL_SOURCE_DIR;

/// Ten subsets, all three question types, and MASSIVE's 18 labels.
const std::vector<std::string> kSubsets{
    "vitaminc-dev", "massive-en-US",      "massive-de-DE",        "boolq",    "squad2",
    "paws",         "summeval-relevance", "summeval-consistency", "multinli", "pubmedqa"};

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "preval-live-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

int preval_run(const fs::path& binary, const fs::path& db, const fs::path& logs,
               const std::string& more, const fs::path& log) {
  std::string command =
      "cd '" + kSource.string() + "' && '" + fs::absolute(binary).string() + "' --db '" +
      db.string() +
      "' run prereg/quickstart.json --arm smollm2-exact --arm smollm2-top32 --logs '" +
      logs.string() + "' " + more;
  for (const std::string& subset : kSubsets) command += " --subset " + subset;
  command += " >'" + log.string() + "' 2>&1 </dev/null";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c)
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::int64_t count(Db& db, const std::string& sql) {
  Stmt query(db, sql);
  REQUIRE(query.step());
  return query.integer(0);
}

std::vector<std::string> labels(Db& db) {
  Stmt query(
      db,
      "SELECT arm, subset, record_id, position, key, logprob, probability FROM v_label ORDER "
      "BY arm, subset, record_id, position");
  std::vector<std::string> rows;
  while (query.step()) {
    // The bytes of the doubles, so that equal means equal to the last bit.
    const double logprob = query.real(5), probability = query.real(6);
    rows.push_back(query.text(0) + query.text(1) + query.text(2) + query.text(4) +
                   std::string(reinterpret_cast<const char*>(&logprob), sizeof logprob) +
                   std::string(reinterpret_cast<const char*>(&probability), sizeof probability));
  }
  return rows;
}

}  // namespace

TEST_CASE("twenty records in both modes, read from the real server by the real binary", "[live]") {
  const char* binary = std::getenv("PREVAL_BINARY");
  if (binary == nullptr) return test::skip_test("PREVAL_BINARY is not set");
  if (!fs::exists(kSource / ".local/checkpoints/SmolLM2-135M-Instruct.Q4_1.gguf")) {
    return test::skip_test(
        "no SmolLM2 checkpoint under .local/: scripts/setup.sh engine fetches it");
  }
  const Folder folder;
  const fs::path log = folder / "run.log";
  const int first = preval_run(binary, folder / "first.db", folder / "logs", "--limit 2", log);
  INFO(text_of(log));
  REQUIRE(first == 0);
  {
    Db db = open_store(folder / "first.db", Db::Mode::read_only);
    for (const std::string arm : {"smollm2-exact", "smollm2-top32"}) {
      CHECK(count(db, "SELECT count(*) FROM v_prediction WHERE arm = '" + arm + "'") == 20);
    }
    CHECK(count(db, "SELECT count(*) FROM failure") == 0);
    // An exact read has every label; a top-k read has floors for the labels outside.
    CHECK(count(db,
                "SELECT count(*) FROM v_prediction WHERE arm = 'smollm2-exact' AND "
                "labels_returned <> n_labels") == 0);
    CHECK(count(db,
                "SELECT count(*) FROM v_label WHERE arm = 'smollm2-exact' AND source <> 'exact'") ==
          0);
    CHECK(
        count(db, "SELECT count(*) FROM v_label WHERE arm = 'smollm2-top32' AND source = 'floor'") >
        0);
    CHECK(count(db,
                "SELECT count(*) FROM (SELECT sum(probability) AS s FROM v_label GROUP BY arm, "
                "subset, record_id) WHERE abs(s - 1) > 1e-12") == 0);
  }

  // The same command again asks nothing and boots nothing.
  const fs::path again = folder / "again.log";
  REQUIRE(preval_run(binary, folder / "first.db", folder / "logs", "--limit 2", again) == 0);
  const std::string said = text_of(again);
  CHECK(said.find("everything is stored already") != std::string::npos);
  CHECK(said.find("READY") == std::string::npos);

  // A second run from nothing gives the same bits.
  REQUIRE(preval_run(binary, folder / "second.db", folder / "logs", "--limit 2",
                     folder / "two.log") == 0);
  Db one = open_store(folder / "first.db", Db::Mode::read_only);
  Db two = open_store(folder / "second.db", Db::Mode::read_only);
  CHECK(labels(one) == labels(two));
}
