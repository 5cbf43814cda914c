#include "stats/summary.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace preval {

std::optional<double> upper_median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::optional<double> median(std::vector<double> values) {
  if (values.size() % 2 == 1 || values.empty()) return upper_median(std::move(values));
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace preval
