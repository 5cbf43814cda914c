#pragma once
// Base64 (RFC 4648, section 4) through OpenSSL.
#include <optional>
#include <string>
#include <string_view>

namespace preval {

/// With padding.
std::string base64(std::string_view bytes);

/// The bytes of padded base64, or nothing when it is none.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace preval
