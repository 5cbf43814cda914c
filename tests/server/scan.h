#pragma once
// Just enough reading of a request's JSON, without building it: the value behind a key, and lists
// of integers. Only for bodies in which the key cannot stand inside a string.
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model.h"

namespace preval::test_server {

/// What follows `"key":`, white space skipped; empty when the key is not there.
inline std::string_view value_of(std::string_view body, std::string_view quoted_key) {
  std::size_t at = body.find(quoted_key);
  if (at == std::string_view::npos) return {};
  at = body.find_first_not_of(" \n\r\t:", at + quoted_key.size());
  return at == std::string_view::npos ? std::string_view() : body.substr(at);
}

inline std::optional<double> number_of(std::string_view body, std::string_view quoted_key) {
  const std::string_view text = value_of(body, quoted_key);
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ec == std::errc() ? std::optional(value) : std::nullopt;
}

/// The integers of a flat list; false when it is none.
inline bool integers_of(std::string_view text, std::vector<Id>& out) {
  out.clear();
  if (text.empty() || text.front() != '[') return false;
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size();
  while (at != end && *at != ']') {
    if (*at == ',' || *at == ' ' || *at == '\n') {
      ++at;
      continue;
    }
    Id id = 0;
    const auto got = std::from_chars(at, end, id);
    if (got.ec != std::errc()) return false;
    out.push_back(id);
    at = got.ptr;
  }
  return at != end;
}

template <class Number>
void append(std::string& text, Number number) {
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace preval::test_server
