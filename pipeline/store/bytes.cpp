#include "store/bytes.h"

#include <stdexcept>

#include "base/text.h"

namespace preval {

namespace {

int digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  throw std::logic_error("a SHA-256 is 64 lower-case hexadecimal digits");
}

}  // namespace

std::string bytes_of_hex(std::string_view hex) {
  if (hex.size() != 64) throw std::logic_error("a SHA-256 is 64 lower-case hexadecimal digits");
  std::string bytes(32, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(digit_value(hex[2 * i]) * 16 + digit_value(hex[2 * i + 1]));
  }
  return bytes;
}

std::string hex_of_bytes(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    hex += digits[value >> 4];
    hex += digits[value & 15];
  }
  return hex;
}

std::string head_of(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return made_valid(text);
  std::size_t cut = limit;
  while (cut > 0 && limit - cut < 3 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80)
    --cut;
  return made_valid(text.substr(0, cut));
}

}  // namespace preval
