// Eight floats at a time, for loops that the compiler does not turn into SIMD code by itself. Lane by lane the
// arithmetic is the scalar one, so results are the same with AVX, with SSE and without.
#pragma once

#include <cstring>

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
// Σ over the lanes, in a fixed order.
inline float sum(const Lanes& a) {
  return ((a.v[0] + a.v[4]) + (a.v[2] + a.v[6])) + ((a.v[1] + a.v[5]) + (a.v[3] + a.v[7]));
}

inline int round_up_to_lanes(int count) { return (count + Lanes::kCount - 1) / Lanes::kCount * Lanes::kCount; }

}  // namespace placement
