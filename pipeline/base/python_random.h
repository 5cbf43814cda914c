#pragma once
// CPython's random.Random, for the draws that the study registered by seed: MT19937 seeded by
// init_by_array, shuffle(), sample(), randrange() and random() as CPython >= 3.2 computes them
// (Lib/random.py, Modules/_randommodule.c). Golden vectors: tests/data/study-vectors.json.
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace preval {

class PythonRandom {
 public:
  /// Random(seed) for a non-negative seed below 2^64.
  explicit PythonRandom(std::uint64_t seed);

  /// getrandbits(k), 1 <= k <= 32.
  std::uint32_t bits(int k);
  /// _randbelow(n): uniform over 0 … n-1, n >= 1.
  std::uint64_t below(std::uint64_t n);
  /// random(): uniform over [0, 1) with 53 bits.
  double uniform();

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i-- > 1;) std::swap(items[i], items[below(i + 1)]);
  }

  /// sample(range(n), k): k distinct indices, in the order drawn.
  std::vector<std::size_t> sample(std::size_t n, std::size_t k);

 private:
  std::mt19937 engine_;
};

}  // namespace preval
