#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/decimal.h"

namespace preval {
namespace {

/// Bytes of the valid UTF-8 sequence at the start of `text`, or 0 when there is none; the code
/// point goes to `code`. The limits of the second byte are those of RFC 3629, section 4.
std::size_t decode(std::string_view text, char32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    code = lead;
    return 1;
  }
  std::size_t size = 0;
  unsigned lowest = 0x80;
  unsigned highest = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
    code = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    code = lead & 0x0F;
    if (lead == 0xE0) lowest = 0xA0;   // shorter forms exist
    if (lead == 0xED) highest = 0x9F;  // surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    code = lead & 0x07;
    if (lead == 0xF0) lowest = 0x90;
    if (lead == 0xF4) highest = 0x8F;  // above U+10FFFF
  } else {
    return 0;
  }
  if (text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if (byte(i) < lowest || byte(i) > highest) return 0;
    code = (code << 6) | (byte(i) & 0x3FU);
    lowest = 0x80;
    highest = 0xBF;
  }
  return size;
}

std::size_t ascii_prefix(std::string_view text) {
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & 0x8080808080808080U) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

struct Range {
  char32_t first, last;
};

template <std::size_t N>
bool contains(const Range (&ranges)[N], char32_t code) {
  const Range* after = std::upper_bound(
      ranges, ranges + N, code, [](char32_t c, const Range& range) { return c < range.first; });
  return after != ranges && code <= (after - 1)->last;
}

// General categories Mn, Me and Cf, and the Hangul vowels and finals that join the syllable before
// them: the scripts that names and texts of evaluation data are written in, not all of Unicode.
constexpr Range kNoWidth[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},  {0x05BF, 0x05BF}, {0x05C1, 0x05C2},
    {0x05C4, 0x05C5}, {0x05C7, 0x05C7}, {0x0610, 0x061A},  {0x064B, 0x065F}, {0x0670, 0x0670},
    {0x06D6, 0x06DC}, {0x06DF, 0x06E4}, {0x06E7, 0x06E8},  {0x06EA, 0x06ED}, {0x0900, 0x0902},
    {0x093A, 0x093A}, {0x093C, 0x093C}, {0x0941, 0x0948},  {0x094D, 0x094D}, {0x0951, 0x0957},
    {0x0962, 0x0963}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A},  {0x0E47, 0x0E4E}, {0x1160, 0x11FF},
    {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F},  {0x202A, 0x202E}, {0x2060, 0x206F},
    {0x20D0, 0x20F0}, {0x302A, 0x302D}, {0x3099, 0x309A},  {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
    {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0001, 0xE01EF}};

// Classes W and F of Unicode's EastAsianWidth.txt, neighbouring blocks joined.
constexpr Range kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},
    {0x23F0, 0x23F0},   {0x23F3, 0x23F3},   {0x25FD, 0x25FE},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267F, 0x267F},   {0x2693, 0x2693},   {0x26A1, 0x26A1},
    {0x26AA, 0x26AB},   {0x26BD, 0x26BE},   {0x26C4, 0x26C5},   {0x26CE, 0x26CE},
    {0x26D4, 0x26D4},   {0x26EA, 0x26EA},   {0x26F2, 0x26F3},   {0x26F5, 0x26F5},
    {0x26FA, 0x26FA},   {0x26FD, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},
    {0x2728, 0x2728},   {0x274C, 0x274C},   {0x274E, 0x274E},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27B0, 0x27B0},   {0x27BF, 0x27BF},
    {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},   {0x2E80, 0x303E},
    {0x3041, 0x3247},   {0x3250, 0x4DBF},   {0x4E00, 0xA4C6},   {0xA960, 0xA97C},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6B},
    {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x1B2FB}, {0x1F004, 0x1F004},
    {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F200, 0x1F320},
    {0x1F32D, 0x1F335}, {0x1F337, 0x1F37C}, {0x1F37E, 0x1F393}, {0x1F3A0, 0x1F3CA},
    {0x1F3CF, 0x1F3D3}, {0x1F3E0, 0x1F3F0}, {0x1F3F4, 0x1F3F4}, {0x1F3F8, 0x1F43E},
    {0x1F440, 0x1F440}, {0x1F442, 0x1F4FC}, {0x1F4FF, 0x1F53D}, {0x1F54B, 0x1F54E},
    {0x1F550, 0x1F567}, {0x1F57A, 0x1F57A}, {0x1F595, 0x1F596}, {0x1F5A4, 0x1F5A4},
    {0x1F5FB, 0x1F64F}, {0x1F680, 0x1F6C5}, {0x1F6CC, 0x1F6CC}, {0x1F6D0, 0x1F6D2},
    {0x1F6D5, 0x1F6DF}, {0x1F6EB, 0x1F6EC}, {0x1F6F4, 0x1F6FC}, {0x1F7E0, 0x1F7F0},
    {0x1F90C, 0x1F93A}, {0x1F93C, 0x1F945}, {0x1F947, 0x1F9FF}, {0x1FA70, 0x1FAFF},
    {0x20000, 0x3FFFD}};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::size_t> invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    at += ascii_prefix(text.substr(at));
    char32_t code = 0;
    while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80) {
      const std::size_t size = decode(text.substr(at), code);
      if (size == 0) return at;
      at += size;
    }
  }
  return std::nullopt;
}

std::size_t display_width(std::string_view utf8) {
  std::size_t width = 0;
  while (!utf8.empty()) {
    char32_t code = 0;
    const std::size_t size = decode(utf8, code);
    utf8.remove_prefix(std::max(size, std::size_t{1}));
    if (size == 0) {
      width += 1;  // terminals show one replacement sign for a stray byte
    } else if (code < 0x20 || (code >= 0x7F && code < 0xA0) || contains(kNoWidth, code)) {
      continue;
    } else {
      width += contains(kWide, code) ? 2 : 1;
    }
  }
  return width;
}

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  const std::size_t enough = (word.size() + 2) / 3;
  std::optional<std::string> found;
  std::size_t least = enough + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      found = candidate;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::optional<std::string> found = nearest(word, candidates);
  return found ? fmt::format(": did you mean {}?", *found) : "";
}

std::string shortest(double value) {
  // The bounds are ECMAScript's (Number::toString): 1e-7 and 1e21 are the first with an exponent.
  const ShortestDecimal decimal = shortest_decimal(value);
  const bool plain = decimal.point > -6 && decimal.point <= 21;
  return plain ? decimal.positional() : decimal.scientific(1);
}

std::string made_valid(std::string_view text) {
  std::string valid;
  for (;;) {
    const std::optional<std::size_t> bad = invalid_utf8(text);
    if (!bad) return valid.append(text);
    valid.append(text.substr(0, *bad)).append("\uFFFD");
    text.remove_prefix(*bad + 1);
  }
}

std::string printable(std::string_view text) {
  const std::string valid = made_valid(text);
  std::string clean;
  for (std::size_t at = 0; at < valid.size();) {
    const auto byte = static_cast<unsigned char>(valid[at]);
    const std::size_t length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    const std::string_view character = std::string_view(valid).substr(at, length);
    at += length;
    const bool control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F ||
                         (byte == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0);
    // U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069.
    const bool turns = character == "\u200E" || character == "\u200F" ||
                       (character >= "\u202A" && character <= "\u202E") ||
                       (character >= "\u2066" && character <= "\u2069");
    clean.append(control || turns ? std::string_view("\uFFFD") : character);
  }
  return clean;
}

std::optional<double> to_double(std::string_view text) {
  const std::optional<double> value = whole_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<long long> to_integer(std::string_view text) { return whole_number<long long>(text); }

std::string grouped(long long value) {
  std::string text = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string counted(long long count, std::string_view noun) {
  return grouped(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds) || std::fabs(seconds) > 1e12) return "unknown";
  if (seconds < 0) return "-" + human_duration(-seconds);
  // Each bound is where the smaller unit would round up to the next one.
  if (seconds < 0.9995) return fmt::format("{} ms", std::llround(seconds * 1000));
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const long long whole = std::llround(seconds);
  const long long minutes = whole / 60;
  if (minutes < 60) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, whole % 60);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace preval
