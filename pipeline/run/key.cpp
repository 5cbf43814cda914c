#include "run/key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "backend/redact.h"
#include "base/error.h"

namespace preval {

namespace {

constexpr char kFileEnding[] = "_FILE";
constexpr mode_t kAllowed = 0600;
constexpr std::size_t kLongestKey = 16 * 1024;

std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::string() : value;
}

/// A key is taken out of everything that is written (backend/redact.h), and sent in a header: one
/// that is too short for the first, or holds what cannot stand in the second, is refused. What it
/// is is not said.
std::string usable(std::string key, const std::string& origin) {
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorKind::usage, fmt::format("{}: {}", origin, why),
                 "for a server that asks for no key, leave key_env out of the plan");
  };
  if (key.size() < kShortestSecret) {
    throw refuse(
        fmt::format("its key of {} characters is too short to be kept out of what is "
                    "written, at least {} are needed",
                    key.size(), kShortestSecret));
  }
  const bool visible =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127; });
  if (!visible) {
    throw refuse(
        "its key holds a space, a control character or one that is not ASCII, and cannot "
        "stand in a header");
  }
  return key;
}

/// The checks are made on the open file, so that it cannot be another one when it is read.
std::string key_of_file(const std::string& path, const std::string& variable) {
  const auto refuse = [&](const std::string& why, const std::string& hint = {}) {
    return Error(ErrorKind::usage, fmt::format("key file {} ({}): {}", path, variable, why), hint);
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) throw refuse(std::strerror(errno));
  struct stat facts {};
  const bool known = fstat(file, &facts) == 0;
  std::array<char, kLongestKey + 1> block;
  const ssize_t length =
      known && S_ISREG(facts.st_mode) ? read(file, block.data(), block.size()) : -1;
  close(file);
  if (length < 0) throw refuse("is no file that can be read");
  if (facts.st_uid != geteuid()) throw refuse("belongs to somebody else");
  if ((facts.st_mode & 07777 & ~kAllowed) != 0) {
    throw refuse(fmt::format("has mode {:04o}: others may read it", facts.st_mode & 07777),
                 "chmod 600 " + path);
  }
  if (static_cast<std::size_t>(length) > kLongestKey) throw refuse("is too long for a key");
  std::string key(block.data(), static_cast<std::size_t>(length));
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  if (key.empty()) throw refuse("is empty");
  return key;
}

}  // namespace

std::string bearer_key(const std::string& variable) {
  if (variable.empty()) return {};
  const std::string file_variable = variable + kFileEnding;
  const std::string key = environment(variable), path = environment(file_variable);
  if (!key.empty() && !path.empty()) {
    throw Error(ErrorKind::usage, fmt::format("{} and {} are both set", variable, file_variable),
                "one key is enough: unset the other");
  }
  if (!path.empty()) {
    return usable(key_of_file(path, file_variable),
                  fmt::format("key file {} ({})", path, file_variable));
  }
  if (key.empty()) {
    throw Error(
        ErrorKind::backend, fmt::format("the key variable {} is not set", variable),
        fmt::format("set it, or {} to the path of a file of mode 0600; the key is never written "
                    "anywhere",
                    file_variable));
  }
  return usable(key, fmt::format("the key variable {}", variable));
}

std::string key_not_given(const std::string& variable) {
  const bool given = variable.empty() || !environment(variable).empty() ||
                     !environment(variable + kFileEnding).empty();
  return given ? std::string() : fmt::format("key not given: {} is not set", variable);
}

std::vector<std::string> key_variables(const Plan& plan) {
  std::vector<std::string> names;
  for (const BackendSpec& backend : plan.backends) {
    if (backend.key_env.empty()) continue;
    names.push_back(backend.key_env);
    names.push_back(backend.key_env + kFileEnding);
  }
  return names;
}

}  // namespace preval
