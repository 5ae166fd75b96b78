// Vectors of eight floats, for loops that the compiler does not vectorise by itself. Each lane computes the scalar
// arithmetic, so results are the same with AVX, with SSE and without.
#pragma once

#include <cstring>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // the vector calling convention matters across libraries only
#endif

namespace placement {

struct Lanes {
  static constexpr int kCount = 8;
  typedef float Vector __attribute__((vector_size(32)));
  Vector v;

  static Lanes load(const float* from) {
    Lanes result;
    std::memcpy(&result.v, from, sizeof result.v);
    return result;
  }
  static Lanes all(float value) { return {Vector{} + value}; }
  void store(float* to) const { std::memcpy(to, &v, sizeof v); }
};

inline Lanes operator+(const Lanes& a, const Lanes& b) { return {a.v + b.v}; }
inline Lanes operator-(const Lanes& a, const Lanes& b) { return {a.v - b.v}; }
inline Lanes operator*(const Lanes& a, const Lanes& b) { return {a.v * b.v}; }
inline Lanes max(const Lanes& a, const Lanes& b) { return {a.v > b.v ? a.v : b.v}; }
inline Lanes min(const Lanes& a, const Lanes& b) { return {a.v < b.v ? a.v : b.v}; }
inline Lanes magnitude(const Lanes& a) { return max(a, {-a.v}); }
// True in the first `count` lanes.
inline auto first_lanes(int count) {
  const Lanes::Vector numbers = {0, 1, 2, 3, 4, 5, 6, 7};
  return numbers < Lanes::all(static_cast<float>(count)).v;
}
// Σ over the lanes, in a fixed order.
inline float sum(const Lanes& a) {
  return ((a.v[0] + a.v[4]) + (a.v[2] + a.v[6])) + ((a.v[1] + a.v[5]) + (a.v[3] + a.v[7]));
}

// values[i] += factor · distance of at[i] from the interval [low, high].
template <int kCount>
inline void add_excess(Lanes (&values)[kCount], const float* at, float low, float high, float factor) {
  const Lanes by = Lanes::all(factor), first = Lanes::all(low), last = Lanes::all(high), zero = Lanes::all(0);
  for (int i = 0; i < kCount; ++i) {
    const Lanes here = Lanes::load(at + i * Lanes::kCount);
    values[i] = values[i] + max(max(first - here, here - last), zero) * by;
  }
}

// Writes the transpose of the 8 × 8 floats at `from`, whose rows are `from_stride` apart, to `to`.
inline void transpose_lanes(const float* from, int from_stride, float* to, int to_stride) {
  Lanes::Vector row[8], pair[8], quad[8];
  for (int i = 0; i < 8; ++i) row[i] = Lanes::load(from + i * from_stride).v;
  for (int i = 0; i < 8; i += 2) {
    pair[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pair[i + 1] = __builtin_shufflevector(row[i], row[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      quad[i + 2 * j] = __builtin_shufflevector(pair[i + j], pair[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      quad[i + 2 * j + 1] = __builtin_shufflevector(pair[i + j], pair[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int i = 0; i < 4; ++i) {
    Lanes{__builtin_shufflevector(quad[i], quad[i + 4], 0, 1, 2, 3, 8, 9, 10, 11)}.store(to + i * to_stride);
    Lanes{__builtin_shufflevector(quad[i], quad[i + 4], 4, 5, 6, 7, 12, 13, 14, 15)}.store(to + (i + 4) * to_stride);
  }
}

inline int round_up_to_lanes(int count) { return (count + Lanes::kCount - 1) / Lanes::kCount * Lanes::kCount; }

}  // namespace placement
