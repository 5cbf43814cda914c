#pragma once
// The study's numbers came out of CPython's sum(), ** and round(). They are compared to the last
// bit, so everything in stats/ adds, squares and rounds through these, and in record order.
#include <cstdint>
#include <span>

namespace preval {

/// CPython's sum() (3.12 and later): integers add exactly until the first float; from there on
/// floats add with Neumaier's compensation (A. Neumaier, ZAMM 54, 1974) and integers without. Ten
/// times 0.1 is exactly 1.0; 3, 1e16, -1e16 is 4.0, since the compensation starts after the first
/// float.
class PythonSum {
 public:
  void add(double value);
  /// Also for booleans. Exact while no float has come and the sum stays within 64 bits.
  void add_integer(std::int64_t value);
  /// The sum so far; 0 when nothing was added.
  double value() const;

 private:
  std::int64_t integers_ = 0;
  bool any_float_ = false;
  double sum_ = 0;
  double compensation_ = 0;
};

/// sum(values), first to last; 0 for no values.
double python_sum(std::span<const double> values);

/// x ** 2. It is pow(), whose result differs from x * x in the last bit for one double in 1,250.
double square(double x);

/// round(x) for floats: to the nearest integer, halves to the even one.
double round_half_even(double x);

/// round(x, digits) for floats: the exact binary value, correctly rounded in decimal. 0 to 15
/// digits.
double round_to_digits(double x, int digits);

}  // namespace preval
