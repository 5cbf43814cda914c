#include "stats/accuracy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace preval {

std::optional<double> share(std::size_t k, std::size_t n) {
  if (k > n) throw std::logic_error("share: more right answers than records");
  if (n == 0) return std::nullopt;
  return static_cast<double>(k) / static_cast<double>(n);
}

std::optional<Interval> wilson(std::size_t k, std::size_t n, double z) {
  const std::optional<double> found = share(k, n);
  if (!found) return std::nullopt;
  const double p = *found;
  const auto size = static_cast<double>(n);
  const double d = 1 + z * z / size;
  const double centre = (p + z * z / (2 * size)) / d;
  const double half = z * std::sqrt(p * (1 - p) / size + z * z / (4 * size * size)) / d;
  return Interval{k == 0 ? 0.0 : centre - half, k == n ? 1.0 : centre + half};
}

std::optional<double> majority_share(std::span<const std::size_t> counts) {
  if (counts.empty()) return std::nullopt;
  const std::size_t all = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  return share(*std::max_element(counts.begin(), counts.end()), all);
}

std::optional<Difference> unpaired_difference(double p1, std::size_t n1, double p2, std::size_t n2,
                                              double z) {
  if (n1 == 0 || n2 == 0) return std::nullopt;
  const double difference = p1 - p2;
  const double half = z * std::sqrt(p1 * (1 - p1) / static_cast<double>(n1) +
                                    p2 * (1 - p2) / static_cast<double>(n2));
  return Difference{difference, {difference - half, difference + half}};
}

}  // namespace preval
