#include "base/file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "catch.h"
#include "temporary_folder.h"
#include "thrown.h"

namespace preval {

namespace fs = std::filesystem;
using test::contains;
using test::thrown;

namespace {

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// Makes writes beyond a size fail as a full disk would, while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int);
};

}  // namespace

TEST_CASE("what is written is read back byte for byte") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  const fs::path path = folder.path() / "a.txt";
  for (const std::string& content :
       {std::string(), std::string("a\r\nb\n"), std::string("\0\xFF", 2),
        std::string((std::size_t{1} << 20) + 1, 'x')}) {
    files.replace(path, content);
    CHECK(files.read(path) == content);
    std::string streamed;
    files.stream(path, [&](std::string_view block) {
      CHECK(block.size() <= std::size_t{1} << 20);
      streamed += block;
    });
    CHECK(streamed == content);
  }
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("files that grow while they have no size are read to their end") {
  SystemFiles files;
  CHECK(contains(files.read("/proc/self/status"), "Name:"));
}

TEST_CASE("existence") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  CHECK(files.exists(folder.path()));
  CHECK_FALSE(files.exists(folder.path() / "none"));
  files.replace(folder.path() / "file", "x");
  CHECK(files.exists(folder.path() / "file"));
  CHECK_FALSE(files.exists(folder.path() / "file" / "below"));
}

TEST_CASE("appending adds at the end and creates what is not there") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  const fs::path path = folder.path() / "ledger.jsonl";
  files.append(path, "{\"a\":1}\n");
  files.append(path, "{\"b\":2}\n");
  CHECK(files.read(path) == "{\"a\":1}\n{\"b\":2}\n");
}

TEST_CASE("a missing input is a usage error that names path and reason") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  const fs::path path = folder.path() / "plan.json";
  const auto never = [](std::string_view) { FAIL("no block"); };
  for (const Error& error :
       {thrown([&] { files.read(path); }), thrown([&] { files.stream(path, never); })}) {
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(error.what() == "cannot read " + path.string() + ": No such file or directory");
    CHECK(contains(error.hint(), "looked for at /"));
  }
}

TEST_CASE("a folder is no input") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  const Error error = thrown([&] { files.read(folder.path()); });
  CHECK(error.kind() == ErrorKind::usage);
  CHECK(error.what() == "cannot read " + folder.path().string() + ": it is a folder");
}

TEST_CASE("writing below a file or into a missing folder fails and leaves nothing") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  files.replace(folder.path() / "file", "old");
  const fs::path below = folder.path() / "file" / "report.html";
  const Error through = thrown([&] { files.replace(below, "x"); });
  CHECK(through.kind() == ErrorKind::io);
  CHECK(through.what() == "cannot write " + below.string() + ": Not a directory");
  CHECK(contains(through.hint(), "folder"));
  const Error missing = thrown([&] { files.append(folder.path() / "none" / "x", "x"); });
  CHECK(missing.kind() == ErrorKind::io);
  CHECK(contains(missing.what(), "cannot append to"));
  CHECK(entries(folder.path()) == 1);
  CHECK(files.read(folder.path() / "file") == "old");
}

TEST_CASE("a write that fails half way leaves the old file and no temporary one") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  const fs::path path = folder.path() / "ledger.jsonl";
  files.replace(path, "old\n");
  std::optional<Error> replaced;
  std::optional<Error> appended;
  {
    const FileSizeLimit limit(4096);
    replaced = thrown([&] { files.replace(path, std::string(5000, 'x')); });
    appended = thrown([&] { files.append(path, std::string(5000, 'x')); });
  }
  CHECK(replaced->kind() == ErrorKind::io);
  CHECK(replaced->what() == "cannot write " + path.string() + ": File too large");
  CHECK(replaced->hint() == "the file is as it was before");
  CHECK(appended->what() == "cannot append to " + path.string() + ": File too large");
  CHECK(appended->hint() == "the file is as it was before");
  CHECK(files.read(path) == "old\n");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a name of the greatest length can be replaced") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  const fs::path path = folder.path() / std::string(255, 'n');
  files.replace(path, "x");
  CHECK(files.read(path) == "x");
}

TEST_CASE("devices and folders are never replaced") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  for (const fs::path& path : {fs::path("/dev/null"), folder.path()}) {
    const Error error = thrown([&] { files.replace(path, "x"); });
    CHECK(error.kind() == ErrorKind::usage);
    CHECK(error.what() == "cannot write " + path.string() + ": it is not a regular file");
    CHECK(thrown([&] { files.append(path, "x"); }).what() == std::string(error.what()));
  }
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("replacing keeps a symbolic link and the permissions") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  const fs::path real = folder.path() / "real";
  const fs::path link = folder.path() / "link";
  files.replace(real, "old");
  fs::permissions(real, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real", link);
  files.replace(link, "new");
  CHECK(fs::is_symlink(link));
  CHECK(files.read(real) == "new");
  CHECK(fs::status(real).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a new file gets the permissions of the umask") {
  const test::TemporaryFolder folder;
  SystemFiles files;
  const mode_t before = ::umask(027);
  files.replace(folder.path() / "new", "x");
  ::umask(before);
  struct stat about {};
  REQUIRE(::stat((folder.path() / "new").c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0640);
}

}  // namespace preval
