#pragma once
// The file seam: reading whole files and line files, and writing so that a reader sees the old file
// or the new one and never half of either.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace preval {

/// What the pipeline needs of a file system. Errors are `Error` of kind io that name the path, the
/// reason in the system's words, and (for a missing input) kind usage.
class Files {
 public:
  virtual ~Files() = default;
  virtual bool exists(const std::filesystem::path& path) = 0;
  /// Bytes of a regular file. Anything else (a folder, a device, a pipe) is an error.
  virtual std::uintmax_t size(const std::filesystem::path& path) = 0;
  /// The whole file, byte for byte.
  virtual std::string read(const std::filesystem::path& path) = 0;
  /// Calls `sink` with consecutive blocks of the file (at most 1 MiB each), first to last.
  virtual void stream(const std::filesystem::path& path,
                      const std::function<void(std::string_view)>& sink) = 0;
  /// Writes a temporary file beside `path`, syncs it and renames it over `path`.
  virtual void replace(const std::filesystem::path& path, std::string_view content) = 0;
  /// Appends and syncs, for ledgers.
  virtual void append(const std::filesystem::path& path, std::string_view content) = 0;
  /// Waits until nobody else holds this file, and holds it for as long as the result lives. Reading
  /// and writing go on for those who do not ask. Nothing for a file that cannot be opened.
  virtual std::shared_ptr<const void> hold(const std::filesystem::path& path) = 0;
};

/// The machine's own file system.
class SystemFiles final : public Files {
 public:
  bool exists(const std::filesystem::path& path) override;
  std::uintmax_t size(const std::filesystem::path& path) override;
  std::string read(const std::filesystem::path& path) override;
  void stream(const std::filesystem::path& path,
              const std::function<void(std::string_view)>& sink) override;
  void replace(const std::filesystem::path& path, std::string_view content) override;
  void append(const std::filesystem::path& path, std::string_view content) override;
  std::shared_ptr<const void> hold(const std::filesystem::path& path) override;
};

}  // namespace preval
