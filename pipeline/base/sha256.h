#pragma once
// SHA-256 through OpenSSL's EVP interface, which uses the processor's SHA instructions.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"

namespace preval {

/// An incremental SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  Sha256& update(std::string_view bytes);
  /// The digest as 64 lower-case hexadecimal digits; the object is then ready for a new message.
  std::string hex();

 private:
  void* context_;  // EVP_MD_CTX, kept out of the header
};

/// Digest of a byte string, 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

/// Digest of a file, read in blocks: memory does not grow with the file. `stop` is asked before
/// every block, since a file of weights takes many seconds: once it says so, this throws
/// interrupted.
std::string sha256_file(Files& files, const std::filesystem::path& path,
                        const std::function<bool()>& stop = {});

}  // namespace preval
