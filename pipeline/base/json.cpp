#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"

namespace preval {
namespace {

/// UTF-16 order of two UTF-8 strings. It is byte order, except that the code points above U+FFFF
/// (lead bytes F0 and up), being surrogate pairs there, come before U+E000 … U+FFFF (EE and EF).
bool utf16_less(std::string_view a, std::string_view b) {
  const auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (left == a.end() || right == b.end()) return left == a.end() && right != b.end();
  const auto x = static_cast<unsigned char>(*left);
  const auto y = static_cast<unsigned char>(*right);
  if (x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0)) return x >= 0xF0;
  return x < y;
}

/// The escapes that RFC 8785 and Python share; everything else of these is \u00XX in both.
char short_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
      return c;
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return '\0';
  }
}

void append_escape(std::string& out, unsigned unit) {
  fmt::format_to(std::back_inserter(out), "\\u{:04x}", unit);
}

void append_string(std::string& out, std::string_view text, bool ascii_only) {
  if (const auto bad = invalid_utf8(text)) {
    throw Error(ErrorKind::usage,
                fmt::format("a string is not valid UTF-8 (byte {} of {})", *bad + 1, text.size()),
                "store text as UTF-8");
  }
  out.push_back('"');
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (const char letter = short_escape(text[i]); letter != '\0') {
      out.push_back('\\');
      out.push_back(letter);
    } else if (byte < 0x20 || (ascii_only && byte == 0x7F)) {
      append_escape(out, byte);
    } else if (byte < 0x80 || !ascii_only) {
      out.push_back(text[i]);
    } else {
      const int more = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
      unsigned code = byte & (0x3FU >> more);
      for (int k = 0; k < more; ++k) code = code << 6 | (static_cast<unsigned>(text[++i]) & 0x3FU);
      if (code < 0x10000) {
        append_escape(out, code);
      } else {
        append_escape(out, 0xD800 + ((code - 0x10000) >> 10));
        append_escape(out, 0xDC00 + ((code - 0x10000) & 0x3FF));
      }
    }
  }
  out.push_back('"');
}

/// What the two renderings do differently.
struct Style {
  std::string_view comma;
  std::string_view colon;
  bool ascii_only;
  bool canonical;
};

void append_integer(std::string& out, const Json& value, bool canonical) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  const bool exact =
      value.is_number_unsigned()
          ? value.get<std::uint64_t>() <= std::uint64_t{kExact}
          : value.get<std::int64_t>() <= kExact && value.get<std::int64_t>() >= -kExact;
  const std::string text = value.is_number_unsigned()
                               ? fmt::format("{}", value.get<std::uint64_t>())
                               : fmt::format("{}", value.get<std::int64_t>());
  if (canonical && !exact) {
    throw Error(ErrorKind::usage,
                fmt::format("the integer {} is beyond 2^53 and has no canonical JSON form", text),
                "write it as a string");
  }
  out += text;
}

void append_float(std::string& out, double value, bool canonical) {
  if (!canonical) {
    if (std::isfinite(value)) {
      out += python_float(value);
    } else {
      out += std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    }
    return;
  }
  if (!std::isfinite(value)) {
    throw Error(ErrorKind::usage, "a number that is not finite has no canonical JSON form",
                "leave it out, or use null");
  }
  out += value == 0 ? "0" : shortest(value);  // -0 too
}

void append_value(std::string& out, const Json& value, const Style& style) {
  const auto append_member = [&](const std::string& key, const Json& member) {
    append_string(out, key, style.ascii_only);
    out += style.colon;
    append_value(out, member, style);
  };
  std::string_view separator;
  switch (value.type()) {
    case Json::value_t::null:
      out += "null";
      break;
    case Json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      break;
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      append_integer(out, value, style.canonical);
      break;
    case Json::value_t::number_float:
      append_float(out, value.get<double>(), style.canonical);
      break;
    case Json::value_t::string:
      append_string(out, value.get_ref<const std::string&>(), style.ascii_only);
      break;
    case Json::value_t::array:
      out.push_back('[');
      for (const Json& item : value) {
        out += std::exchange(separator, style.comma);
        append_value(out, item, style);
      }
      out.push_back(']');
      break;
    case Json::value_t::object: {
      std::vector<const Json::object_t::value_type*> members;
      for (const auto& member : value.get_ref<const Json::object_t&>()) members.push_back(&member);
      if (style.canonical) {
        std::sort(members.begin(), members.end(),
                  [](const auto* a, const auto* b) { return utf16_less(a->first, b->first); });
      }
      out.push_back('{');
      for (const auto* member : members) {
        out += std::exchange(separator, style.comma);
        append_member(member->first, member->second);
      }
      out.push_back('}');
      break;
    }
    case Json::value_t::binary:
    case Json::value_t::discarded:
      throw std::logic_error("a value without a JSON form");
  }
}

}  // namespace

std::string canonical_json(const Json& value) {
  std::string out;
  append_value(out, value, {",", ":", false, true});
  return out;
}

std::string canonical_sha256(const Json& value) { return sha256_hex(canonical_json(value)); }

std::string python_json(const Json& value, bool ascii_only) {
  std::string out;
  append_value(out, value, {", ", ": ", ascii_only, false});
  return out;
}

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // repr() switches to an exponent below 1e-4 and from 1e16 on (format code 'r' of CPython).
  const ShortestDecimal decimal = shortest_decimal(value);
  if (decimal.point <= -4 || decimal.point > 16) return decimal.scientific(2);
  std::string text = decimal.positional();
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace preval
