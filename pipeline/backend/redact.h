#pragma once
// Servers repeat what they were sent: a key that was refused comes back in the error body. Whatever
// is received goes into stores, logs, reports and transcripts, so the key is taken out before
// anybody sees the reply, cut texts and digests included.
#include <string>
#include <string_view>

#include "backend/transport.h"

namespace preval {

/// What stands where a key was.
inline constexpr std::string_view kRedacted = "[key removed]";
/// Shorter ones may well be words of a reply, and are left in: no such key is ever sent, because
/// run/key.h refuses it.
inline constexpr std::size_t kShortestSecret = 8;

/// `text` without the key: as it is, and as JSON strings and addresses may write it, character by
/// character.
std::string without_key(std::string text, std::string_view key);

/// Takes the key out of a reply's body, headers and message.
void redact(HttpReply& reply, std::string_view key);

}  // namespace preval
