#include "base/python_random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <unordered_set>

namespace preval {
namespace {

/// Hands std::mt19937 the state that init_by_array (Matsumoto & Nishimura 2002) makes of a key, in
/// place of what std::seed_seq would make of it. The engine only takes seed sequences by type, so
/// this has the few members it asks for.
class InitByArray {
 public:
  using result_type = std::uint_least32_t;

  /// The key is the seed in 32-bit digits, lowest first, as CPython splits it.
  explicit InitByArray(std::uint64_t seed) : key_{static_cast<std::uint32_t>(seed)} {
    if (const auto high = static_cast<std::uint32_t>(seed >> 32); high != 0) key_.push_back(high);
  }

  template <class Iterator>
  void generate(Iterator begin, Iterator end) const {
    const auto size = static_cast<std::size_t>(end - begin);
    std::vector<std::uint32_t> state(size);
    state[0] = 19650218U;
    for (std::size_t i = 1; i < size; ++i) {
      state[i] = 1812433253U * mixed(state[i - 1]) + static_cast<std::uint32_t>(i);
    }
    std::size_t i = 1;
    const auto advance = [&] {
      if (++i == size) {
        state[0] = state[size - 1];
        i = 1;
      }
    };
    std::size_t j = 0;
    for (std::size_t left = std::max(size, key_.size()); left > 0; --left) {
      state[i] =
          (state[i] ^ (mixed(state[i - 1]) * 1664525U)) + key_[j] + static_cast<std::uint32_t>(j);
      advance();
      j = (j + 1) % key_.size();
    }
    for (std::size_t left = size - 1; left > 0; --left) {
      state[i] = (state[i] ^ (mixed(state[i - 1]) * 1566083941U)) - static_cast<std::uint32_t>(i);
      advance();
    }
    state[0] = 0x80000000U;
    std::copy(state.begin(), state.end(), begin);
  }

 private:
  static std::uint32_t mixed(std::uint32_t word) { return word ^ (word >> 30); }

  std::vector<std::uint32_t> key_;
};

std::mt19937 seeded(std::uint64_t seed) {
  InitByArray sequence(seed);
  return std::mt19937(sequence);
}

}  // namespace

PythonRandom::PythonRandom(std::uint64_t seed) : engine_(seeded(seed)) {}

std::uint32_t PythonRandom::bits(int k) {
  return static_cast<std::uint32_t>(engine_()) >> (32 - k);
}

std::uint64_t PythonRandom::below(std::uint64_t n) {
  if (n == 0) throw std::logic_error("PythonRandom::below(0)");
  const auto k = static_cast<int>(std::bit_width(n));
  while (true) {
    // More than 32 bits come in two words, the lower one first.
    std::uint64_t drawn = bits(std::min(k, 32));
    if (k > 32) drawn |= static_cast<std::uint64_t>(bits(k - 32)) << 32;
    if (drawn < n) return drawn;
  }
}

double PythonRandom::uniform() {
  const double high = bits(27);
  const double low = bits(26);
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

std::vector<std::size_t> PythonRandom::sample(std::size_t n, std::size_t k) {
  if (k > n) throw std::logic_error("PythonRandom::sample: more items than there are");
  std::vector<std::size_t> drawn;
  drawn.reserve(k);
  // CPython takes the list when it is smaller than the set would be; the two draw differently.
  double set_size = 21;
  if (k > 5) set_size += std::pow(4.0, std::ceil(std::log(3.0 * double(k)) / std::log(4.0)));
  if (double(n) <= set_size) {
    std::vector<std::size_t> pool(n);
    for (std::size_t i = 0; i < n; ++i) pool[i] = i;
    for (std::size_t i = 0; i < k; ++i) {
      const std::size_t j = below(n - i);
      drawn.push_back(pool[j]);
      pool[j] = pool[n - i - 1];
    }
    return drawn;
  }
  std::unordered_set<std::size_t> taken;
  while (drawn.size() < k) {
    const std::size_t j = below(n);
    if (taken.insert(j).second) drawn.push_back(j);
  }
  return drawn;
}

}  // namespace preval
