// A sum of multiples of a power of two, exact in whatever order they are added and taken away.
#pragma once

#include <cmath>
#include <cstdint>

namespace placement {

__extension__ typedef __int128 Wide;  // 2^24 gcells of 2^52 quanta each

class Quanta {
 public:
  // `quantum`: a power of two.
  explicit Quanta(double quantum) : quantum_(quantum), per_quantum_(1.0 / quantum) {}

  // How many quanta a multiple of the quantum is; below 2^63 of them.
  std::int64_t of(double value) const { return static_cast<std::int64_t>(value * per_quantum_); }
  // The double next to the mean of `count` values with this sum.
  double mean(Wide sum, int count) const { return static_cast<double>(sum) * quantum_ / count; }

 private:
  double quantum_, per_quantum_;
};

}  // namespace placement
