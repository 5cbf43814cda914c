// The real binary against text files: tests/cli/*.txt hold commands, their output and their exit
// code. PREVAL_REWRITE=1 writes what really came out into the files, for a person to read in the
// diff.
//
//   $ COMMAND    run by sh in a folder of the file's own; `+ ` goes on with it
//   ? N          exit code          > LINE   standard output          ! LINE   standard error
//   anything else is talk and stays
//
// In output <tmp> is the folder, <src> the source tree.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "skip.h"

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

class Session {
 public:
  explicit Session(const fs::path& binary) : binary_(binary) {
    std::string pattern = (fs::temp_directory_path() / "preval-cli-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    fs::create_directory(folder_ / "work");
  }
  ~Session() { fs::remove_all(folder_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The lines that a golden file holds for this command.
  std::string run(const std::string& command) {
    std::ofstream(folder_ / "command.sh")
        << "cd '" << (folder_ / "work").string() << "'\n"
        << "export HOME=\"$PWD\" NO_COLOR=1 LC_ALL=C SRC='" << PREVAL_SOURCE_DIR << "'\n"
        << "export PATH='" << binary_.parent_path().string() << "':$PATH\n"
        << command << '\n';
    const std::string call = "sh '" + (folder_ / "command.sh").string() + "' </dev/null >'" +
                             (folder_ / "out").string() + "' 2>'" + (folder_ / "err").string() +
                             "'";
    const int status = std::system(call.c_str());  // NOLINT(cert-env33-c): the tests' own commands
    std::string text = "? " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128) + "\n";
    text += prefixed(folder_ / "out", "> ");
    text += prefixed(folder_ / "err", "! ");
    return text;
  }

 private:
  std::string prefixed(const fs::path& file, const std::string& prefix) const {
    std::string text = replace_all(read_file(file), (folder_ / "work").string(), "<tmp>");
    text = replace_all(text, PREVAL_SOURCE_DIR, "<src>");
    std::istringstream lines(text);
    std::string result;
    for (std::string line; std::getline(lines, line);) {
      while (!line.empty() && line.back() == ' ') line.pop_back();
      result += (line.empty() ? prefix.substr(0, 1) : prefix + line) + "\n";
    }
    return result;
  }

  fs::path binary_, folder_;
};

/// The file as it would be written if every command printed what it prints now.
std::string replayed(const fs::path& golden, const fs::path& binary) {
  Session session(binary);
  std::istringstream lines(read_file(golden));
  std::string result, command;
  const auto finish = [&] {
    if (!command.empty()) result += session.run(command);
    command.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    const char mark = line.empty() ? '\0' : line.front();
    if (mark == '>' || mark == '!' || mark == '?') continue;
    if (mark == '+' && !command.empty()) {
      command += "\n" + line.substr(std::min<std::size_t>(2, line.size()));
      result += line + "\n";
      continue;
    }
    finish();
    result += line + "\n";
    if (mark == '$') command = line.substr(2);
  }
  finish();
  return result;
}

}  // namespace

TEST_CASE("the command line prints what its golden files say") {
  const char* named = std::getenv("PREVAL_BINARY");
  if (named == nullptr) return preval::test::skip_test("PREVAL_BINARY is not set");
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(PREVAL_SOURCE_DIR) / "tests/cli")) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  REQUIRE_FALSE(files.empty());
  for (const fs::path& file : files) {
    DYNAMIC_SECTION(file.filename().string()) {
      const std::string now = replayed(file, fs::absolute(named));
      if (std::getenv("PREVAL_REWRITE") != nullptr) std::ofstream(file, std::ios::binary) << now;
      CHECK(now == read_file(file));
    }
  }
}
