#include "backend/redact.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/base64.h"
#include "base/text.h"

namespace preval {

namespace {

bool is_hex(std::string_view digits, unsigned value) {
  unsigned read = 0;
  for (const char c : digits) {
    const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a' + 10)
                           : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A' + 10)
                                                  : 16U;
    if (digit == 16U) return false;
    read = read * 16 + digit;
  }
  return read == value;
}

/// The length of an HTML entity at the start of `text` that stands for this character; 0: none.
std::size_t entity_at(std::string_view text, char c) {
  static constexpr std::array<std::pair<std::string_view, char>, 5> kNamed{
      {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};
  for (const auto& [name, meant] : kNamed) {
    if (meant == c && text.starts_with(name)) return name.size();
  }
  const std::size_t end = text.substr(0, 10).find(';');
  if (end == std::string_view::npos || !text.starts_with("&#")) return 0;
  const std::string_view digits = text.substr(2, end - 2);
  const auto value = static_cast<unsigned char>(c);
  if (digits.starts_with("x") || digits.starts_with("X")) {
    return digits.size() > 1 && is_hex(digits.substr(1), value) ? end + 1 : 0;
  }
  return to_integer(digits) == value ? end + 1 : 0;
}

/// How many bytes at the start of `text` stand for this character: itself, escaped as in a JSON
/// string (encoders differ in what they escape and how), as in an address, or as in HTML. 0: none.
std::size_t written_as(std::string_view text, char c) {
  const auto value = static_cast<unsigned char>(c);
  if (text.empty()) return 0;
  if (text.front() == '\\') {
    if (text.size() >= 6 && text[1] == 'u' && is_hex(text.substr(2, 4), value)) return 6;
    if (text.size() >= 2 && text[1] == c && (c == '"' || c == '\\' || c == '/')) return 2;
  }
  if (text.front() == '&') {
    if (const std::size_t length = entity_at(text, c); length > 0) return length;
  }
  if (text.front() == '%' && text.size() >= 3 && is_hex(text.substr(1, 2), value)) return 3;
  return text.front() == c ? 1 : 0;
}

/// How many bytes at the start of `text` stand for the key; 0: they do not.
std::size_t key_at(std::string_view text, std::string_view key) {
  std::size_t length = 0;
  for (const char c : key) {
    const std::size_t one = written_as(text.substr(length), c);
    if (one == 0) return 0;
    length += one;
  }
  return length;
}

/// Without its padding, so that it is found with it and without.
std::string bare_base64(std::string_view bytes) {
  std::string text = base64(bytes);
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::string without(std::string text, std::string_view secret) {
  for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos;) {
    text.replace(at, secret.size(), kRedacted);
    at += kRedacted.size();
  }
  return text;
}

}  // namespace

std::string without_key(std::string text, std::string_view key) {
  if (key.size() < kShortestSecret) return text;
  text = without(std::move(text), bare_base64(key));
  const std::array<char, 4> starts{key.front(), '\\', '%', '&'};
  const std::string_view first(starts.data(), starts.size());
  std::string clean;
  std::size_t kept = 0;  // up to here `text` is in `clean`
  std::size_t at = text.find_first_of(first);
  while (at != std::string::npos) {
    const std::size_t length = key_at(std::string_view(text).substr(at), key);
    if (length > 0) {
      clean.append(text, kept, at - kept).append(kRedacted);
      kept = at + length;
    }
    at = text.find_first_of(first, at + std::max<std::size_t>(length, 1));
  }
  if (kept == 0) return text;
  return clean.append(text, kept);
}

void redact(HttpReply& reply, std::string_view key) {
  if (key.size() < kShortestSecret) return;
  const std::array texts{&reply.body,        &reply.transport_message, &reply.content_type,
                         &reply.retry_after, &reply.retry_after_ms,    &reply.location};
  for (std::string* text : texts) *text = without_key(std::move(*text), key);
}

}  // namespace preval
