#include "base/decimal.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace preval {

ShortestDecimal shortest_decimal(double value) {
  if (!std::isfinite(value)) throw std::logic_error("a non-finite number has no decimal form");
  // The scientific form is the only one whose digits are always the shortest: to_chars writes large
  // integers with all of their digits in the others.
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::fabs(value),
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t mark = text.find('e');
  ShortestDecimal decimal;
  decimal.negative = std::signbit(value);
  decimal.digits = text.front();
  if (mark > 1) decimal.digits += text.substr(2, mark - 2);
  int exponent = 0;
  const std::size_t number = text[mark + 1] == '+' ? mark + 2 : mark + 1;  // from_chars takes no +
  std::from_chars(text.data() + number, end, exponent);
  decimal.point = exponent + 1;
  return decimal;
}

std::string ShortestDecimal::positional() const {
  const auto size = static_cast<int>(digits.size());
  std::string text = negative ? "-" : "";
  if (point <= 0) return text + "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
  if (point >= size)
    return text + digits + std::string(static_cast<std::size_t>(point - size), '0');
  const auto split = static_cast<std::size_t>(point);
  return text + digits.substr(0, split) + "." + digits.substr(split);
}

std::string ShortestDecimal::scientific(int exponent_digits) const {
  const int exponent = point - 1;
  return fmt::format("{}{}{}{}e{}{:0{}}", negative ? "-" : "", digits.front(),
                     digits.size() > 1 ? "." : "", digits.substr(1), exponent < 0 ? '-' : '+',
                     std::abs(exponent), exponent_digits);
}

}  // namespace preval
