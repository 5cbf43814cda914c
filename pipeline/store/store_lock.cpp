#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "store/store.h"

namespace preval {

namespace {

std::string error_text(int code) { return std::generic_category().message(code); }

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

/// An exclusive lock on the whole file, without waiting.
bool try_lock(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return fcntl(fd, F_SETLK, &whole) == 0;
}

std::string read_all(int fd) {
  std::array<char, 512> buffer{};
  const ssize_t count = pread(fd, buffer.data(), buffer.size(), 0);
  std::string text(buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// Whether the open file is still the one of that name: a holder that ends removes it.
bool is_still_at(int fd, const std::filesystem::path& path) {
  struct stat open {};
  struct stat named {};
  return fstat(fd, &open) == 0 && stat(path.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

/// One lock per store, by whatever name and link it is opened.
std::filesystem::path lock_file_of(const std::filesystem::path& store) {
  std::error_code unknown;
  const std::filesystem::path real = std::filesystem::weakly_canonical(store, unknown);
  return (unknown ? store : real).string() + ".lock";
}

}  // namespace

StoreLock::StoreLock(const std::filesystem::path& store) : path_(lock_file_of(store)) {
  struct stat file {};
  if (stat(store.c_str(), &file) == 0 && S_ISREG(file.st_mode) && file.st_nlink > 1) {
    throw Error(ErrorKind::usage,
                fmt::format("{} has {} names (hard links): two runs could write it at once",
                            store.string(), file.st_nlink),
                "keep one of the names, or make a copy");
  }
  for (;;) {
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd_ < 0) {
      const bool no_folder = errno == ENOENT || errno == ENOTDIR;
      throw Error(no_folder ? ErrorKind::usage : ErrorKind::io,
                  fmt::format("{}: {}", path_.string(), error_text(errno)),
                  errno == ELOOP
                      ? "it is a link, and preval writes through none: remove it"
                      : fmt::format("the folder of {} must exist and be writable", store.string()));
    }
    if (!try_lock(fd_)) {
      const int reason = errno;
      const std::string holder = read_all(fd_);
      close(fd_);
      if (reason != EACCES && reason != EAGAIN) {
        throw Error(ErrorKind::io, fmt::format("{}: {}", path_.string(), error_text(reason)),
                    "does this file system have locks?");
      }
      throw Error(ErrorKind::usage,
                  fmt::format("{} is being written by another preval ({})", store.string(),
                              holder.empty() ? "starting just now" : holder),
                  "wait for it, stop it, or use another store with --db");
    }
    if (is_still_at(fd_, path_)) break;
    close(fd_);
  }
  const std::string holder = fmt::format("pid {} on {}\n", getpid(), host_name());
  if (ftruncate(fd_, 0) != 0 ||
      pwrite(fd_, holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size())) {
    const int reason = errno;
    unlink(path_.c_str());
    close(fd_);
    throw Error(ErrorKind::io, fmt::format("{}: {}", path_.string(), error_text(reason)),
                "is the disk full?");
  }
}

std::string StoreLock::holder(const std::filesystem::path& store) {
  const int fd = open(lock_file_of(store).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return {};
  struct flock whole {};
  whole.l_type = F_RDLCK;
  whole.l_whence = SEEK_SET;
  const bool held = fcntl(fd, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
  const std::string holder = held ? read_all(fd) : std::string();
  close(fd);
  return held && holder.empty() ? "starting just now" : holder;
}

StoreLock::~StoreLock() {
  // Removed while still held, so that nobody locks a file that is about to lose its name.
  unlink(path_.c_str());
  close(fd_);
}

}  // namespace preval
