#include "stats/sums.h"

#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace preval {

void PythonSum::add(double value) {
  if (!any_float_) {
    any_float_ = true;
    sum_ = static_cast<double>(integers_) + value;
    return;
  }
  const double next = sum_ + value;
  compensation_ +=
      std::fabs(sum_) >= std::fabs(value) ? (sum_ - next) + value : (value - next) + sum_;
  sum_ = next;
}

void PythonSum::add_integer(std::int64_t value) {
  if (any_float_) {
    sum_ += static_cast<double>(value);
  } else {
    integers_ += value;
  }
}

double PythonSum::value() const {
  if (!any_float_) return static_cast<double>(integers_);
  return compensation_ != 0 && std::isfinite(compensation_) ? sum_ + compensation_ : sum_;
}

double python_sum(std::span<const double> values) {
  PythonSum sum;
  for (const double value : values) sum.add(value);
  return sum.value();
}

double square(double x) {
  // Compilers turn pow(x, 2.0) into x * x when they see the exponent.
  const volatile double two = 2.0;
  return std::pow(x, two);
}

double round_half_even(double x) {
  // Halves go to even in the default rounding mode, which nothing here changes; + 0 removes a -0.
  return std::nearbyint(x) + 0.0;
}

double round_to_digits(double x, int digits) {
  // Values of 2^52 and more have no fraction; smaller ones fit the buffer.
  if (!std::isfinite(x) || std::fabs(x) >= 4503599627370496.0) return x;
  if (digits < 0 || digits > 15) throw std::logic_error("round_to_digits: 0 to 15 digits");
  std::array<char, 64> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), x, std::chars_format::fixed, digits)
          .ptr;
  double rounded = 0;
  std::from_chars(text.data(), end, rounded);
  return rounded;
}

}  // namespace preval
