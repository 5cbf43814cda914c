#pragma once
// A file system made of strings, for tests of everything that reads files through the seam.
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "base/file.h"

namespace preval::test {

class MemoryFiles : public Files {
 public:
  std::map<std::string, std::string> content;
  std::set<std::string> unreadable;

  bool exists(const std::filesystem::path& path) override {
    return content.contains(path.generic_string());
  }
  std::uintmax_t size(const std::filesystem::path& path) override { return read(path).size(); }
  std::string read(const std::filesystem::path& path) override {
    const std::string name = path.generic_string();
    if (unreadable.contains(name)) throw Error(ErrorKind::io, name + ": Permission denied");
    if (!exists(path)) throw Error(ErrorKind::usage, name + ": No such file or directory");
    return content[name];
  }
  void stream(const std::filesystem::path& path,
              const std::function<void(std::string_view)>& sink) override {
    sink(read(path));
  }
  void replace(const std::filesystem::path& path, std::string_view text) override {
    content[path.generic_string()] = text;
  }
  void append(const std::filesystem::path& path, std::string_view text) override {
    content[path.generic_string()] += text;
  }
  std::shared_ptr<const void> hold(const std::filesystem::path&) override { return nullptr; }
};

}  // namespace preval::test
