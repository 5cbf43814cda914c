#include "base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <stdexcept>

#include "base/error.h"

namespace preval {
namespace {

// OpenSSL fails here only without memory or without its default provider.
void require(bool done) {
  if (!done) throw std::runtime_error("OpenSSL cannot compute SHA-256");
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  auto* context = static_cast<EVP_MD_CTX*>(context_);
  if (context == nullptr || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1) {
    EVP_MD_CTX_free(context);
    require(false);
  }
}

Sha256::~Sha256() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }

Sha256& Sha256::update(std::string_view bytes) {
  require(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), bytes.data(), bytes.size()) == 1);
  return *this;
}

std::string Sha256::hex() {
  auto* context = static_cast<EVP_MD_CTX*>(context_);
  std::array<unsigned char, 32> digest{};
  require(EVP_DigestFinal_ex(context, digest.data(), nullptr) == 1);
  // A null type keeps the algorithm that is already there.
  require(EVP_DigestInit_ex(context, nullptr, nullptr) == 1);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) { return Sha256().update(bytes).hex(); }

std::string sha256_file(Files& files, const std::filesystem::path& path,
                        const std::function<bool()>& stop) {
  Sha256 hash;
  files.stream(path, [&](std::string_view block) {
    if (stop && stop()) {
      throw Error(ErrorKind::interrupted,
                  fmt::format("stopped by the user while {} was checked", path.string()),
                  "nothing is lost: the same command begins again");
    }
    hash.update(block);
  });
  return hash.hex();
}

}  // namespace preval
