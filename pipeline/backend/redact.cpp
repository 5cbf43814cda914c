#include "backend/redact.h"

#include <array>

namespace preval {

namespace {

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

/// The key inside a JSON string; encoders differ about the slash.
std::string escaped(std::string_view key, bool slashes) {
  std::string text;
  for (const char c : key) {
    if (c == '"' || c == '\\' || (c == '/' && slashes)) text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

std::string without_key(std::string text, std::string_view key) {
  if (key.size() < kShortestSecret) return text;
  replace_all(text, key, kRedacted);
  for (const bool slashes : {false, true}) {
    const std::string form = escaped(key, slashes);
    if (form != key) replace_all(text, form, kRedacted);
  }
  return text;
}

void redact(HttpReply& reply, std::string_view key) {
  if (key.size() < kShortestSecret) return;
  const std::array texts{&reply.body,        &reply.transport_message, &reply.content_type,
                         &reply.retry_after, &reply.retry_after_ms,    &reply.location};
  for (std::string* text : texts) *text = without_key(std::move(*text), key);
}

}  // namespace preval
