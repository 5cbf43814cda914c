#include "base/placeholders.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace preval {

namespace {

constexpr std::string_view kBraceHint = "write {{ and }} for braces that are meant as such";

[[noreturn]] void lone_brace(std::string_view text, std::string_view where, char brace) {
  throw Error(ErrorKind::usage, fmt::format("{}: a single '{}' in \"{}\"", where, brace, text),
              std::string(kBraceHint));
}

std::string_view value_of(std::string_view name, const Placeholders& values,
                          std::string_view where) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  if (found != values.end()) return found->second;
  std::vector<std::string> names, known;
  for (const auto& entry : values) {
    names.emplace_back(entry.first);
    known.push_back(fmt::format("{{{}}}", entry.first));
  }
  throw Error(
      ErrorKind::usage,
      fmt::format("{}: unknown placeholder {{{}}}{}", where, name, did_you_mean(name, names)),
      known.empty() ? std::string("no placeholders are known here")
                    : "known here: " + join(known, ", "));
}

}  // namespace

std::string fill_placeholders(std::string_view text, const Placeholders& values,
                              std::string_view where) {
  std::string result;
  result.reserve(text.size() * 2);
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      result += c;
      ++at;
    } else if (at + 1 < text.size() && text[at + 1] == c) {
      result += c;
      at += 2;
    } else if (c == '{') {
      const std::size_t end = text.find_first_of("{}", at + 1);
      if (end == std::string_view::npos || text[end] == '{') lone_brace(text, where, c);
      result += value_of(text.substr(at + 1, end - at - 1), values, where);
      at = end + 1;
    } else {
      lone_brace(text, where, c);
    }
  }
  return result;
}

}  // namespace preval
