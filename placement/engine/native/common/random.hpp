// A small random number generator with the same stream on every machine.
#pragma once

#include <cstdint>

namespace placement {

// SplitMix64 (Steele, Lea and Flood 2014): 64 bits of state, period 2^64.
class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : state_(seed) {}

  void seed(std::uint64_t seed) { state_ = seed; }
  std::uint64_t state() const { return state_; }

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // In [0, bound), bound > 0; the bias is below bound / 2^32.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
  }

  // In [0, 1), in steps of 2^-53.
  double fraction() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // In [-1, 1).
  double both_ways() { return 2 * fraction() - 1; }

 private:
  std::uint64_t state_;
};

// Seed of one of many streams derived from a root seed.
inline std::uint64_t stream_seed(std::uint64_t root, std::uint64_t stream) {
  Random random(root);
  Random mixed(random.next() ^ (stream * 0xd1342543de82ef95u));
  return mixed.next();
}

}  // namespace placement
