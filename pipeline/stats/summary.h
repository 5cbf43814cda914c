#pragma once
// Medians. The study uses two, and they differ for an even number of values.
#include <optional>
#include <vector>

namespace preval {

/// sorted(values)[n // 2]: the upper one of two middle values. For label mass per subset and for
/// medians over the 13 subsets. Nothing for no values.
std::optional<double> upper_median(std::vector<double> values);

/// The median: the mean of the two middle values when n is even. For latency and for label mass per
/// task. Nothing for no values.
std::optional<double> median(std::vector<double> values);

}  // namespace preval
