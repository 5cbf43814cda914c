#pragma once
// Bytes on their way into the store: digests as blobs, and text from servers that may be anything.
#include <string>
#include <string_view>

namespace preval {

/// 32 bytes from 64 lower-case hexadecimal digits. Throws std::logic_error for anything else.
std::string bytes_of_hex(std::string_view hex);

/// The other way round; empty for no bytes.
std::string hex_of_bytes(std::string_view bytes);

/// At most the first `limit` bytes as valid UTF-8. A character that the cut goes through is left
/// out.
std::string head_of(std::string_view text, std::size_t limit);

}  // namespace preval
