// query, score and report as a user calls them: what they print, how they end, and what they
// refuse.
#include <fstream>
#include <sstream>

#include "../base/thrown.h"
#include "../store/small_study.h"
#include "base/error.h"
#include "base/text.h"
#include "catch.h"
#include "cli/command.h"
#include "score/score.h"

using namespace preval;
using namespace preval::test;

namespace {

/// The hand-counted study in a store, scored and closed.
struct Shell {
  SystemFiles files;
  ManualClock clock;
  std::ostringstream out, err;
  SmallStudy study;

  Shell() {
    fill(study);
    recompute_scores(study.db(), study.clock(), "0.1.0");
    study.close();
  }
  std::string file(const std::string& name) const {
    return (study.path().parent_path() / name).string();
  }

  int run(const std::vector<std::string>& arguments) {
    out.str("");
    err.str("");
    Context context{files, clock, out, err};
    context.db = study.path();
    CLI::App app;
    add_score(app, context);
    add_report(app, context);
    add_query(app, context);
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
    return context.exit_code;
  }
  std::string query(const std::string& sql, const std::string& format = "table") {
    REQUIRE(run({"query", sql, "--format", format}) == 0);
    return out.str();
  }
  Error refused(const std::vector<std::string>& arguments) {
    return thrown([&] { run(arguments); });
  }
};

}  // namespace

TEST_CASE("query prints rows in the form asked for", "[cli]") {
  Shell shell;
  const std::string sql =
      "SELECT arm, n_answered, accuracy FROM v_accuracy WHERE arm <> 'b' AND subset = 'massive' "
      "ORDER BY arm";
  CHECK(shell.query(sql) ==
        "arm  n_answered  accuracy\n"
        "---  ----------  --------\n"
        "a             2       0.5\n"
        "c             0      NULL\n");
  CHECK(shell.query(sql, "csv") == "arm,n_answered,accuracy\na,2,0.5\nc,0,\n");
  CHECK(shell.query(sql, "jsonl") ==
        "{\"arm\":\"a\",\"n_answered\":2,\"accuracy\":0.5}\n{\"arm\":\"c\",\"n_answered\":0,"
        "\"accuracy\":null}\n");
  CHECK(shell.query(sql, "json") ==
        "[\n  {\"arm\":\"a\",\"n_answered\":2,\"accuracy\":0.5},\n"
        "  {\"arm\":\"c\",\"n_answered\":0,\"accuracy\":null}\n]\n");
  CHECK(shell.query(sql, "md") ==
        "| arm | n_answered | accuracy |\n|---|---|---|\n| a | 2 | 0.5 |\n| c | 0 | NULL |\n");
  REQUIRE(shell.run({"query", sql, "--json"}) == 0);
  CHECK(parse_json(shell.out.str(), "out").size() == 2);
  CHECK(shell.query("SELECT 1 AS x WHERE 0") == "x\n-\n");
  CHECK(shell.query("SELECT 1 AS x WHERE 0", "json") == "[]\n");
}

TEST_CASE("query prints odd values safely", "[cli]") {
  Shell shell;
  const std::string sql =
      "SELECT 'a,\"b\"' || char(10) || 'c|' AS t, x'00ff' AS b, 9e999 AS r, 0.1 AS t";
  CHECK(shell.query(sql, "csv") == "t,b,r,t\n\"a,\"\"b\"\"\nc|\",00ff,Inf,0.1\n");
  CHECK(shell.query(sql, "jsonl") ==
        "{\"t\":\"a,\\\"b\\\"\\nc|\",\"b\":\"00ff\",\"r\":\"Inf\",\"t:2\":0.1}\n");
  CHECK(shell.query(sql, "md") ==
        "| t | b | r | t |\n|---|---|---|---|\n| a,\"b\" c\\| | 00ff | Inf | 0.1 |\n");
  CHECK(contains(shell.query("SELECT char(27) || '[31m' AS t"), "\n [31m\n"));
  CHECK(shell.query("SELECT CAST(x'ff' AS TEXT) AS t", "jsonl") == "{\"t\":\"\xef\xbf\xbd\"}\n");
}

TEST_CASE("query alone lists the views", "[cli]") {
  Shell shell;
  REQUIRE(shell.run({"query"}) == 0);
  CHECK(contains(shell.out.str(), "v_accuracy"));
  CHECK(contains(shell.out.str(), "accuracy per arm and subset"));
  REQUIRE(shell.run({"query", "--format", "jsonl"}) == 0);
  CHECK(contains(shell.out.str(), "{\"view\":\"v_accuracy\",\"meaning\":"));
}

TEST_CASE("query reads SQL from a file", "[cli]") {
  Shell shell;
  std::ofstream(shell.file("q.sql"))
      << "-- one number\nSELECT count(*) AS n FROM v_prediction;\n-- the end\n";
  REQUIRE(shell.run({"query", "@" + shell.file("q.sql"), "--format", "csv"}) == 0);
  CHECK(shell.out.str() == "n\n9\n");
  CHECK(shell.refused({"query", "@" + shell.file("none.sql")}).kind() == ErrorKind::usage);
}

TEST_CASE("query reads only, one statement, and says what SQLite says", "[cli]") {
  Shell shell;
  const auto refused = [&](const std::string& sql) {
    INFO(sql);
    const Error error = shell.refused({"query", sql});
    CHECK(error.kind() == ErrorKind::usage);
    return std::string(error.what());
  };
  CHECK(contains(refused("SELEC 1"), "near \"SELEC\": syntax error"));
  CHECK(contains(refused("SELECT wrong FROM v_accuracy"), "no such column: wrong"));
  for (const char* sql :
       {"DELETE FROM prediction", "UPDATE arm SET name = 'x'",
        "INSERT INTO scored VALUES (1, '', '', 0)", "CREATE TABLE t (i)", "CREATE TEMP TABLE t (i)",
        "DROP VIEW v_accuracy", "ATTACH ':memory:' AS x", "DETACH main", "VACUUM INTO '/dev/null'",
        "PRAGMA user_version = 7", "PRAGMA query_only = OFF", "PRAGMA journal_mode = WAL", "BEGIN",
        "REINDEX", "ANALYZE", "SELECT load_extension('x')"}) {
    const std::string words = refused(sql);
    INFO(words);
    CHECK((contains(words, "not authorized") || contains(words, "authorization denied")));
  }
  CHECK(contains(refused("UPDATE sqlite_master SET sql = ''"), "may not be modified"));
  CHECK(contains(refused("SELECT 1; SELECT 2"), "one statement at a time"));
  CHECK(contains(refused("SELECT 1; DELETE FROM prediction"), "one statement at a time"));
  CHECK(contains(refused("-- nothing"), "there is no statement in it"));
  CHECK(contains(refused(" ; "), "there is no statement in it"));
  // Looking at the schema is reading.
  CHECK(shell.query("PRAGMA user_version", "csv") ==
        "user_version\n" + std::to_string(kSchemaVersion) + "\n");
  CHECK(contains(shell.query("SELECT name FROM pragma_table_info('v_accuracy')"), "accuracy"));
  CHECK(contains(shell.query("EXPLAIN QUERY PLAN SELECT 1"), "SCAN"));
  CHECK(shell.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) "
                    "SELECT sum(i) AS s "
                    "FROM n;",
                    "csv") == "s\n6\n");
  CHECK(shell.query("SELECT count(*) AS n FROM prediction", "csv") == "n\n9\n");
}

TEST_CASE("readers are not blocked by a run", "[cli]") {
  Shell shell;
  shell.study.open();
  Tx writing(shell.study.db());
  shell.study.db().exec("DELETE FROM label");
  CHECK(shell.query("SELECT count(*) AS n FROM v_label", "csv") == "n\n18\n");
  REQUIRE(shell.run({"report", "--json"}) == 0);
}

TEST_CASE("commands on no store, or somebody else's, are usage errors", "[cli]") {
  Shell shell;
  std::filesystem::remove(shell.study.path());
  for (const char* command : {"query", "score", "report"}) {
    const Error error = shell.refused({command});
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(contains(error.what(), "there is no store at"));
  }
  CHECK_FALSE(std::filesystem::exists(shell.study.path().string() + ".lock"));
  std::ofstream(shell.study.path()) << std::string(500, 'x');
  for (const char* command : {"query", "score", "report"}) {
    CHECK(contains(shell.refused({command}).what(), "is no SQLite file"));
  }
}

TEST_CASE("score recomputes and says how much", "[cli]") {
  Shell shell;
  Db(shell.study.path(), Db::Mode::read_write).exec("DELETE FROM score_accuracy");
  CHECK(shell.query("SELECT count(*) AS n FROM score_accuracy", "csv") == "n\n0\n");
  REQUIRE(shell.run({"score"}) == 0);
  CHECK(contains(shell.err.str(), "scored 9 answers in"));
  CHECK(shell.out.str().empty());
  CHECK(shell.query("SELECT count(*) AS n FROM score_accuracy", "csv") == "n\n12\n");
}

TEST_CASE("report prints, writes, and checks a copy", "[cli]") {
  Shell shell;
  REQUIRE(shell.run({"report"}) == 0);
  CHECK(shell.out.str().starts_with("small 1.0.0\n"));
  REQUIRE(shell.run({"report", "--json"}) == 0);
  CHECK(parse_json(shell.out.str(), "out").at("schema_version") == "1.0");

  const std::string path = shell.file("report.md");
  REQUIRE(shell.run({"report", "-o", path}) == 0);
  CHECK(shell.out.str().empty());
  CHECK(contains(shell.err.str(), "wrote " + path));
  CHECK(shell.files.read(path).starts_with("# small 1.0.0\n"));
  CHECK(shell.run({"report", "--check", path}) == 0);
  CHECK(contains(shell.err.str(), "says what"));

  std::string copy = shell.files.read(path);
  copy.replace(copy.find("5/5"), 3, "5/6");
  shell.files.replace(path, copy);
  Error error = shell.refused({"report", "--check", path});
  CHECK(error.kind() == ErrorKind::drift);
  CHECK(contains(error.what(), "differs from the report in line 19\n  file:  | a | 5/6 |"));
  CHECK(contains(error.what(), "\n  store: | a | 5/5 |"));
  CHECK(
      contains(error.hint(), "preval report --db " + shell.study.path().generic_string() + " -o "));

  shell.run({"report", "-o", path});
  copy = shell.files.read(path);
  shell.files.replace(path, copy + "more\n");
  CHECK(contains(shell.refused({"report", "--check", path}).what(),
                 "more\n  store: (the file ends)"));
  shell.files.replace(path, copy.substr(0, copy.size() - 1));
  CHECK(contains(shell.refused({"report", "--check", path}).what(), "only the last line feed"));
  CHECK(shell.refused({"report", "--check", shell.file("none.md")}).kind() == ErrorKind::usage);
}

TEST_CASE("a report does not take the place of its store, or of a plan's lock", "[cli]") {
  Shell shell;
  const std::string store = shell.study.path().string();
  for (const std::string& name : {store, store + "-wal", store + ".lock"}) {
    CHECK(contains(shell.refused({"report", "-o", name}).what(), "cannot be written over it"));
  }
  std::filesystem::create_symlink(store, shell.file("alias.md"));
  CHECK(contains(shell.refused({"report", "-o", shell.file("alias.md")}).what(), "is the store"));
  CHECK(contains(shell.refused({"report", "-o", shell.file("p.lock.json")}).what(),
                 "belongs to a plan"));
  CHECK(contains(shell.refused({"report", "-o", shell.file("r.html")}).what(),
                 "no report format for the ending .html"));
  REQUIRE(shell.run({"report", "-o", shell.file("r.md")}) == 0);
  std::string text = shell.files.read(shell.file("r.md"));
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\r');
  shell.files.replace(shell.file("r.md"), text);
  CHECK(contains(shell.refused({"report", "--check", shell.file("r.md")}).what(),
                 "differs from the report: only line ends"));
}

TEST_CASE("help teaches, and unknown formats are refused", "[cli]") {
  Shell shell;
  CHECK_THROWS_AS(shell.run({"report", "--format", "html"}), CLI::ParseError);
  CHECK_THROWS_AS(shell.run({"query", "SELECT 1", "--format", "xml"}), CLI::ParseError);
  CHECK_THROWS_AS(shell.run({"report", "-o", "a", "--check", "b"}), CLI::ParseError);
  CLI::App app;
  Context context{shell.files, shell.clock, shell.out, shell.err};
  add_score(app, context);
  add_report(app, context);
  add_query(app, context);
  for (const char* command : {"score", "report", "query"}) {
    const std::string help = app.get_subcommand(command)->help();
    CHECK(contains(help, "Examples:\n  preval"));
    CHECK(contains(help, "Exit codes: 0"));
  }
}
