#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"

namespace preval {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = std::size_t{1} << 20;

std::string system_words(int code) { return std::generic_category().message(code); }

[[noreturn]] void fail(const std::string& action, const fs::path& path, int code,
                       std::string hint = {}) {
  throw Error(ErrorKind::io,
              fmt::format("cannot {} {}: {}", action, path.string(), system_words(code)),
              std::move(hint));
}

/// An open file that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool open() const { return number_ >= 0; }
  int number() const { return number_; }
  /// Closes now and returns errno or 0: some file systems report a failed write only here.
  int close() { return ::close(std::exchange(number_, -1)) == 0 ? 0 : errno; }

 private:
  int number_;
};

Descriptor open_input(const fs::path& path) {
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (number >= 0) return Descriptor(number);
  const int code = errno;
  if (code == ENOENT || code == ENOTDIR) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot read {}: {}", path.string(), system_words(code)),
                fmt::format("looked for at {}", fs::absolute(path).lexically_normal().string()));
  }
  fail("read", path, code);
}

std::size_t read_block(const Descriptor& file, char* buffer, std::size_t size,
                       const fs::path& path) {
  while (true) {
    const ssize_t got = ::read(file.number(), buffer, size);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EISDIR) {
      throw Error(ErrorKind::usage, fmt::format("cannot read {}: it is a folder", path.string()),
                  "name a file");
    }
    if (errno != EINTR) fail("read", path, errno);
  }
}

/// Writes all of it; errno of the first failure, or 0.
int write_all(const Descriptor& file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t put = ::write(file.number(), content.data(), content.size());
    if (put >= 0) {
      content.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int sync(const Descriptor& file) { return ::fsync(file.number()) == 0 ? 0 : errno; }

/// Makes a new or renamed entry of the folder survive a power cut.
void sync_folder(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.open()) fail("open the folder", folder, errno);
  // Some network file systems cannot sync a folder and say EINVAL; their rename is durable itself.
  if (const int code = sync(file); code != 0 && code != EINVAL) {
    fail("sync the folder", folder, code);
  }
}

/// Where a write to `path` lands: the file behind a symbolic link, so that the link survives.
/// Devices and pipes are refused, since a rename would put a plain file in their place.
fs::path write_target(const fs::path& path) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (!fs::exists(status)) return path;
  if (!fs::is_regular_file(status)) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot write {}: it is not a regular file", path.string()),
                "name a file, or leave the option out to write to standard output");
  }
  return fs::is_symlink(path, problem) ? fs::canonical(path) : path;
}

/// Creates a file that did not exist, beside `target`. open() and not mkstemp(), because the new
/// file shall get the permissions that the user's umask gives to any other file.
Descriptor create_beside(const fs::path& target, fs::path& temporary) {
  for (int attempt = 0;; ++attempt) {
    temporary = target.parent_path() / fmt::format(".preval-tmp-{}-{}", ::getpid(), attempt);
    const int number =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_t{0666});
    if (number >= 0) return Descriptor(number);
    if (errno != EEXIST) {
      fail("write", target, errno, "check that its folder exists and can be written");
    }
  }
}

}  // namespace

bool SystemFiles::exists(const fs::path& path) {
  std::error_code problem;
  const bool found = fs::exists(path, problem);
  if (problem) fail("look at", path, problem.value());
  return found;
}

std::uintmax_t SystemFiles::size(const fs::path& path) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (problem) fail("look at", path, problem.value());
  if (!fs::is_regular_file(status)) {
    throw Error(ErrorKind::io, fmt::format("{} is not a regular file", path.string()),
                "name a file");
  }
  const std::uintmax_t size = fs::file_size(path, problem);
  if (problem) fail("look at", path, problem.value());
  return size;
}

std::string SystemFiles::read(const fs::path& path) {
  const Descriptor file = open_input(path);
  struct stat about {};
  if (::fstat(file.number(), &about) != 0) fail("read", path, errno);
  std::string content;
  // One byte more than the size shows the end of an ordinary file without growing the buffer.
  content.resize(S_ISREG(about.st_mode) ? static_cast<std::size_t>(about.st_size) + 1 : kBlock);
  std::size_t filled = 0;
  while (true) {
    if (filled == content.size()) content.resize(content.size() * 2);
    const std::size_t got =
        read_block(file, content.data() + filled, content.size() - filled, path);
    if (got == 0) break;
    filled += got;
  }
  content.resize(filled);
  return content;
}

void SystemFiles::stream(const fs::path& path, const std::function<void(std::string_view)>& sink) {
  const Descriptor file = open_input(path);
  std::vector<char> buffer(kBlock);
  while (const std::size_t got = read_block(file, buffer.data(), buffer.size(), path)) {
    sink(std::string_view(buffer.data(), got));
  }
}

void SystemFiles::replace(const fs::path& path, std::string_view content) {
  const fs::path target = write_target(path);
  fs::path temporary;
  Descriptor file = create_beside(target, temporary);
  int code = 0;
  struct stat old {};
  if (::stat(target.c_str(), &old) == 0 && ::fchmod(file.number(), old.st_mode & 07777) != 0) {
    code = errno;
  }
  if (code == 0) code = write_all(file, content);
  if (code == 0) code = sync(file);
  const int closed = file.close();
  if (code == 0) code = closed;
  if (code == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) code = errno;
  if (code != 0) {
    ::unlink(temporary.c_str());
    fail("write", path, code, "the file is as it was before");
  }
  sync_folder(target);
}

std::shared_ptr<const void> SystemFiles::hold(const fs::path& path) {
  auto file = std::make_shared<Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file->open()) return nullptr;
  while (flock(file->number(), LOCK_EX) != 0) {
    if (errno != EINTR) fail("lock", path, errno, "does this file system have locks?");
  }
  return file;
}

void SystemFiles::append(const fs::path& path, std::string_view content) {
  const fs::path target = write_target(path);
  Descriptor file(::open(target.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, mode_t{0666}));
  if (!file.open()) {
    fail("append to", path, errno, "check that its folder exists and can be written");
  }
  struct stat before {};
  if (::fstat(file.number(), &before) != 0) fail("append to", path, errno);
  int code = write_all(file, content);
  if (code == 0) code = sync(file);
  if (code != 0) {
    // Half a ledger line would break the chain for good.
    const bool restored = ::ftruncate(file.number(), before.st_size) == 0;
    fail("append to", path, code,
         restored ? "the file is as it was before" : "its last line may be torn: look at it");
  }
  if (const int closed = file.close(); closed != 0) fail("append to", path, closed);
  if (before.st_size == 0) sync_folder(target);
}

}  // namespace preval
