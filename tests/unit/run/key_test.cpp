#include "run/key.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "../base/temporary_folder.h"
#include "../base/thrown.h"
#include "backend/redact.h"
#include "catch.h"
#include "run/server.h"

using namespace preval;
using namespace preval::test;

namespace {

/// An environment variable for the life of the object.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
};

std::string key_file(const TemporaryFolder& folder, const std::string& text, mode_t mode) {
  const std::string path = (folder.path() / "key").string();
  std::ofstream(path, std::ios::binary) << text;
  chmod(path.c_str(), mode);
  return path;
}

}  // namespace

TEST_CASE("a key comes from its variable, or from the file that the variable with _FILE names") {
  const TemporaryFolder folder;
  CHECK(bearer_key("").empty());
  {
    const Variable key("PREVAL_TEST_KEY", "sk-long-1");
    CHECK(bearer_key("PREVAL_TEST_KEY") == "sk-long-1");
  }
  for (const mode_t mode : {0600, 0400}) {
    const Variable file("PREVAL_TEST_KEY_FILE", key_file(folder, "sk-long-2\n", mode));
    CHECK(bearer_key("PREVAL_TEST_KEY") == "sk-long-2");
    std::filesystem::remove(folder.path() / "key");
  }
  const Variable file("PREVAL_TEST_KEY_FILE", key_file(folder, "sk-long-3\r\n", 0600));
  CHECK(bearer_key("PREVAL_TEST_KEY") == "sk-long-3");
}

TEST_CASE("no key, or two, or one that others can read") {
  const TemporaryFolder folder;
  const Error none = thrown([] { bearer_key("PREVAL_TEST_KEY"); });
  CHECK(none.kind() == ErrorKind::backend);
  CHECK(contains(none.what(), "the key variable PREVAL_TEST_KEY is not set"));
  CHECK(contains(none.hint(), "PREVAL_TEST_KEY_FILE"));

  const auto refused = [&](const std::string& path) {
    const Variable file("PREVAL_TEST_KEY_FILE", path);
    const Error error = thrown([] { bearer_key("PREVAL_TEST_KEY"); });
    CHECK(error.kind() == ErrorKind::usage);
    CHECK_FALSE(contains(error.what(), "sk-secret"));
    return std::string(error.what());
  };
  for (const mode_t mode : {0640, 0604, 0660, 0700, 0666}) {
    CHECK(contains(refused(key_file(folder, "sk-secret", mode)), "others may read it"));
  }
  CHECK(contains(refused(key_file(folder, "\n", 0600)), "is empty"));
  CHECK(contains(refused(key_file(folder, std::string(20000, 'x'), 0600)), "too long"));
  CHECK(contains(refused((folder.path() / "none").string()), "No such file"));
  CHECK(contains(refused(folder.path().string()), "is no file"));
  const Variable key("PREVAL_TEST_KEY", "sk-secret");
  CHECK(contains(refused("/x"), "PREVAL_TEST_KEY and PREVAL_TEST_KEY_FILE are both set"));
}

TEST_CASE("a key that could not be kept out of what is written, or not be sent, is refused") {
  const TemporaryFolder folder;
  // Wherever it comes from, and without saying what it is.
  const auto refused = [&](const std::string& text, const std::string& why) {
    INFO(text.size());
    for (const bool by_file : {false, true}) {
      const Variable variable(by_file ? "PREVAL_TEST_KEY_FILE" : "PREVAL_TEST_KEY",
                              by_file ? key_file(folder, text, 0600) : text);
      const Error error = thrown([] { bearer_key("PREVAL_TEST_KEY"); });
      CHECK(error.kind() == ErrorKind::usage);
      CHECK(
          contains(error.what(), by_file ? "(PREVAL_TEST_KEY_FILE)" : "variable PREVAL_TEST_KEY:"));
      CHECK(contains(error.what(), why));
      if (text.size() > 1) CHECK_FALSE(contains(error.what(), text));  // one letter is in any text
      CHECK(contains(error.hint(), "leave key_env out"));
    }
  };
  for (const std::size_t length : {1U, 4U, 7U}) {
    refused(std::string(length, 'Q'), "too short to be kept out of what is written");
  }
  for (const std::string inside : {" ", "\t", "\n", "\r", "\x01", "\x7F", "\xC3\xA9", "\xFF"}) {
    refused("sk-abcdef" + inside + "ghijkl", "cannot stand in a header");
    refused(inside + "sk-abcdefghijkl", "cannot stand in a header");
  }
  const Variable variable("PREVAL_TEST_KEY", "12345678");
  const std::string shortest = bearer_key("PREVAL_TEST_KEY");
  CHECK(without_key("a 12345678 b", shortest) == fmt::format("a {} b", kRedacted));
}

TEST_CASE("no program that preval starts sees the key variables of a plan") {
  Plan plan;
  plan.backends.resize(3);
  plan.backends[0].key_env = "PREVAL_TEST_KEY";
  plan.backends[2].key_env = "PREVAL_OTHER";
  const std::vector<std::string> names = key_variables(plan);
  CHECK(names == std::vector<std::string>{"PREVAL_TEST_KEY", "PREVAL_TEST_KEY_FILE", "PREVAL_OTHER",
                                          "PREVAL_OTHER_FILE"});
  const Variable key("PREVAL_TEST_KEY", "sk-secret"), file("PREVAL_TEST_KEY_FILE", "/x"),
      kept("PREVAL_TEST_KEYS", "kept");
  const std::vector<std::string> command{
      "sh", "-c", "echo $PREVAL_TEST_KEY$PREVAL_TEST_KEY_FILE$PREVAL_TEST_KEYS"};
  CHECK(first_line_of(command) == "sk-secret/xkept");
  CHECK(first_line_of(command, names) == "kept");

  const TemporaryFolder folder;
  Server server({"sh", "-c", "env; sleep 0.1"}, folder.path() / "log", names);
  while (server.running()) {
  }
  CHECK(contains(server.last_lines(1000), "PREVAL_TEST_KEYS=kept"));
  CHECK_FALSE(contains(server.last_lines(1000), "sk-secret"));
}
