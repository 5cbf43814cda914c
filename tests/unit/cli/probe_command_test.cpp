// probe as a user calls it: how it ends, and where the plan's key goes.
#include <cstdlib>
#include <sstream>

#include "../base/thrown.h"
#include "../run/study.h"
#include "base/error.h"
#include "catch.h"
#include "cli/command.h"
#include "server/protocols.h"

using namespace preval;
using namespace preval::test;
using test_server::TestServer;

namespace {

constexpr char kKey[] = "key-of-the-hosted-server";

struct Shell {
  Study study;
  std::ostringstream out, err;

  int run(const std::vector<std::string>& arguments) {
    out.str("");
    err.str("");
    SystemClock clock;
    Context context{study.files(), clock, out, err};
    CLI::App app;
    add_probe(app, context);
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    reversed.emplace_back("probe");
    app.parse(reversed);
    return context.exit_code;
  }
  std::string plan() const { return (study.folder() / "prereg/plan.json").string(); }
};

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("probe says what a server can do, and ends with 1 when that is nothing", "[cli]") {
  Shell shell;
  TestServer good(Json{{"kind", "llamacpp"}});
  CHECK(shell.run({good.url(), "--kind", "llamacpp"}) == 0);
  CHECK(contains(shell.out.str(), "can read: exact, top-k\n"));

  TestServer poor({{"kind", "openai-chat"},
                   {"rules", {{{"method", "POST"}, {"do", {{"spoil", "no_logprobs"}}}}}}});
  CHECK(shell.run({poor.url(), "--kind", "openai-chat", "--model", "test-model"}) == 1);
  CHECK(contains(shell.out.str(), "can read: nothing that can be read\n"));
}

TEST_CASE("probe says what to do about a server that cannot be asked", "[cli]") {
  Shell shell;
  TestServer loading({{"kind", "llamacpp"}, {"rules", {{{"do", {{"envelope", "loading"}}}}}}});
  CHECK(shell.run({loading.url(), "--kind", "llamacpp"}) == 5);
  CHECK(contains(shell.err.str(), "hint: it may still be loading its model"));
  TestServer locked({{"kind", "llamacpp"}, {"rules", {{{"do", {{"envelope", "string-401"}}}}}}});
  CHECK(shell.run({locked.url(), "--kind", "llamacpp"}) == 5);
  CHECK(contains(shell.err.str(), "hint: --key-env VAR names"));
  CHECK(shell.run({"http://127.0.0.1:1", "--kind", "llamacpp"}) == 5);
  CHECK(contains(shell.err.str(), "hint: is it running"));
}

TEST_CASE("the plan's key goes to the server that the plan names, and nowhere else unasked",
          "[cli]") {
  Shell shell;
  const Variable key("PREVAL_TEST_PROBE_KEY", kKey);
  const Json locked{{"kind", "llamacpp"}, {"key", kKey}};
  TestServer named(locked), other(locked);
  Json backend = Study::served("exact", "llamacpp", named.url());
  backend["key_env"] = "PREVAL_TEST_PROBE_KEY";
  shell.study.only(backend);
  const auto probe = [&](const TestServer& server, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{server.url(), "--kind", "llamacpp", "--plan", shell.plan()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return shell.run(arguments);
  };
  CHECK(probe(named) == 0);

  const Error refused = thrown([&] { probe(other); });
  CHECK(refused.kind() == ErrorKind::usage);
  CHECK(contains(refused.what(), fmt::format("the key in PREVAL_TEST_PROBE_KEY belongs to {}, not "
                                             "to {}",
                                             named.url(), other.url())));
  CHECK(contains(refused.hint(), "--key-env PREVAL_TEST_PROBE_KEY sends it there all the same"));
  CHECK(other.connections() == 0);

  CHECK(probe(other, {"--key-env", "PREVAL_TEST_PROBE_KEY"}) == 0);
  CHECK(probe(other, {"--key-env", ""}) == 5);  // none is sent, and it wants one
  CHECK(contains(shell.err.str(), "HTTP 401"));
}

TEST_CASE("probe judges by the arm it is told, which has to be of the kind it is told", "[cli]") {
  Shell shell;
  TestServer server(Json{{"kind", "llamacpp"}});
  shell.study.only(Study::served("exact", "llamacpp", server.url()));
  CHECK(shell.run({server.url(), "--kind", "llamacpp", "--plan", shell.plan(), "--arm", "a"}) == 0);
  const Error refused = thrown([&] {
    shell.run({server.url(), "--kind", "vllm", "--plan", shell.plan(), "--arm", "a"});
  });
  CHECK(contains(refused.what(), "arm a is on a backend of kind llamacpp, --kind says vllm"));
  CHECK(refused.kind() == ErrorKind::usage);
}
