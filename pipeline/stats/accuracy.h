#pragma once
// Shares of right answers: their interval, the baseline they are compared with, and the difference
// of two shares that were measured on separate lists.
#include <cstddef>
#include <optional>
#include <span>

namespace preval {

/// The study's rounding of the normal quantile at .975. Its intervals, and only those, use it.
inline constexpr double kStudyZ = 1.959964;
/// The normal quantile at .975 in full, for everything else.
inline constexpr double kNormal975 = 1.959963984540054;

/// A confidence interval; low <= high.
struct Interval {
  double low = 0;
  double high = 0;
};

/// k / n; nothing for n = 0. k > n is a std::logic_error here and below.
std::optional<double> share(std::size_t k, std::size_t n);

/// The score interval of a proportion (E. B. Wilson, JASA 22, 1927):
///   d = 1 + z²/n,  centre = (p + z²/2n) / d,  half = z √(p(1-p)/n + z²/4n²) / d.
/// The low end is exactly 0 at k = 0 and the high end exactly 1 at k = n, where floating point
/// would miss them by 1e-17. Nothing for n = 0.
std::optional<Interval> wilson(std::size_t k, std::size_t n, double z = kStudyZ);

/// The share of the most frequent gold label: what an answerer that never looks would reach.
/// `counts` holds the records per label; nothing when they sum to 0.
std::optional<double> majority_share(std::span<const std::size_t> counts);

/// A difference and its interval, in shares (not points).
struct Difference {
  double value = 0;
  Interval interval;
};

/// p1 - p2 of two independent samples, ± z √(p1(1-p1)/n1 + p2(1-p2)/n2): the study's comparison
/// with published figures. It takes shares and not counts, because for a published figure only the
/// share may be known. Nothing when a sample is empty.
std::optional<Difference> unpaired_difference(double p1, std::size_t n1, double p2, std::size_t n2,
                                              double z = kStudyZ);

}  // namespace preval
