#pragma once
// The shortest decimal digits of a double. ECMAScript (RFC 8785) and Python write the same digits
// with the decimal point in different places, so both writers start here.
#include <string>

namespace preval {

/// value = ±0.DIGITS × 10^point, with the fewest digits that read back as the same double and,
/// among those, the nearest ones. Zero has the digits "0" and point 1.
struct ShortestDecimal {
  bool negative = false;
  std::string digits;
  int point = 0;

  /// Positional notation without exponent: "0.001", "120".
  std::string positional() const;
  /// One digit, the rest after a point, exponent of at least `exponent_digits` digits: "1.5e-05".
  std::string scientific(int exponent_digits) const;
};

/// Non-finite values have no digits and throw std::logic_error.
ShortestDecimal shortest_decimal(double value);

}  // namespace preval
