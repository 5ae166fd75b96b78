// A pair of doubles, usually an (x, y), as a SIMD vector if the processor has one; and two such pairs.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace placement {

#if defined(__SSE2__)

struct Pair {
  __m128d v;
  static Pair load(const double* from) { return {_mm_loadu_pd(from)}; }
  static Pair of(double first, double second) { return {_mm_set_pd(second, first)}; }
  void store(double* to) const { _mm_storeu_pd(to, v); }
  void truncate(std::int32_t& first, std::int32_t& second) const {
    const __m128i both = _mm_cvttpd_epi32(v);
    first = _mm_cvtsi128_si32(both);
    second = _mm_cvtsi128_si32(_mm_shuffle_epi32(both, 1));
  }
  double sum() const { return _mm_cvtsd_f64(_mm_add_sd(v, _mm_unpackhi_pd(v, v))); }
};
inline Pair operator+(Pair a, Pair b) { return {_mm_add_pd(a.v, b.v)}; }
inline Pair operator-(Pair a, Pair b) { return {_mm_sub_pd(a.v, b.v)}; }
inline Pair operator*(Pair a, Pair b) { return {_mm_mul_pd(a.v, b.v)}; }
inline Pair operator/(Pair a, Pair b) { return {_mm_div_pd(a.v, b.v)}; }
inline Pair least(Pair a, Pair b) { return {_mm_min_pd(a.v, b.v)}; }
inline Pair largest(Pair a, Pair b) { return {_mm_max_pd(a.v, b.v)}; }

#else

struct Pair {
  double first, second;
  static Pair load(const double* from) { return {from[0], from[1]}; }
  static Pair of(double first, double second) { return {first, second}; }
  void store(double* to) const { to[0] = first, to[1] = second; }
  void truncate(std::int32_t& a, std::int32_t& b) const {
    a = static_cast<std::int32_t>(first);
    b = static_cast<std::int32_t>(second);
  }
  double sum() const { return first + second; }
};
inline Pair operator+(Pair a, Pair b) { return {a.first + b.first, a.second + b.second}; }
inline Pair operator-(Pair a, Pair b) { return {a.first - b.first, a.second - b.second}; }
inline Pair operator*(Pair a, Pair b) { return {a.first * b.first, a.second * b.second}; }
inline Pair operator/(Pair a, Pair b) { return {a.first / b.first, a.second / b.second}; }
inline Pair least(Pair a, Pair b) { return {std::min(a.first, b.first), std::min(a.second, b.second)}; }
inline Pair largest(Pair a, Pair b) { return {std::max(a.first, b.first), std::max(a.second, b.second)}; }

#endif

#if defined(__AVX__)

struct TwoPairs {
  __m256d v;
  static TwoPairs load(const double* from) { return {_mm256_loadu_pd(from)}; }
  static TwoPairs of(Pair low, Pair high) { return {_mm256_set_m128d(high.v, low.v)}; }
  void store(double* to) const { _mm256_storeu_pd(to, v); }
  Pair low() const { return {_mm256_castpd256_pd128(v)}; }
  Pair high() const { return {_mm256_extractf128_pd(v, 1)}; }
};
inline TwoPairs operator+(TwoPairs a, TwoPairs b) { return {_mm256_add_pd(a.v, b.v)}; }
inline TwoPairs operator-(TwoPairs a, TwoPairs b) { return {_mm256_sub_pd(a.v, b.v)}; }
inline TwoPairs largest(TwoPairs a, TwoPairs b) { return {_mm256_max_pd(a.v, b.v)}; }

#else

struct TwoPairs {
  Pair first, second;
  static TwoPairs load(const double* from) { return {Pair::load(from), Pair::load(from + 2)}; }
  static TwoPairs of(Pair low, Pair high) { return {low, high}; }
  void store(double* to) const { first.store(to), second.store(to + 2); }
  Pair low() const { return first; }
  Pair high() const { return second; }
};
inline TwoPairs operator+(TwoPairs a, TwoPairs b) { return {a.first + b.first, a.second + b.second}; }
inline TwoPairs operator-(TwoPairs a, TwoPairs b) { return {a.first - b.first, a.second - b.second}; }
inline TwoPairs largest(TwoPairs a, TwoPairs b) { return {largest(a.first, b.first), largest(a.second, b.second)}; }

#endif

}  // namespace placement
