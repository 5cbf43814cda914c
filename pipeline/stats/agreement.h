#pragma once
// Whether two arms, or two repeats of one arm, gave the same answers, right or wrong.
#include <cstddef>
#include <optional>
#include <ranges>
#include <stdexcept>

namespace preval {

/// Records that both sides answered, and how many of them got the same label.
struct Agreement {
  std::size_t same = 0;
  std::size_t n = 0;

  /// same / n; nothing when no record was answered on both sides.
  std::optional<double> share() const {
    if (n == 0) return std::nullopt;
    return static_cast<double>(same) / static_cast<double>(n);
  }
};

/// Compares the labels of the records that both sides answered, in one order: indices, names, or
/// whatever has ==. Sides of different length are a std::logic_error.
template <std::ranges::sized_range A, std::ranges::sized_range B>
Agreement agreement(const A& labels_a, const B& labels_b) {
  if (std::ranges::size(labels_a) != std::ranges::size(labels_b)) {
    throw std::logic_error("agreement: the two sides differ in length");
  }
  Agreement result;
  auto b = std::ranges::begin(labels_b);
  for (const auto& a : labels_a) {
    if (a == *b++) ++result.same;
    ++result.n;
  }
  return result;
}

}  // namespace preval
