// Picks the values of an array that fulfil a condition, in their order.
#pragma once

#include <array>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace placement {

#if defined(__AVX2__)

// Which 32-bit halves of four doubles move to the front, by the bits of those that are picked.
inline constexpr std::array<std::array<std::int32_t, 8>, 16> pack_order() {
  std::array<std::array<std::int32_t, 8>, 16> order{};
  for (int bits = 0; bits < 16; ++bits) {
    int to = 0;
    for (int i = 0; i < 4; ++i) {
      if (!((bits >> i) & 1)) continue;
      order[bits][to++] = 2 * i;
      order[bits][to++] = 2 * i + 1;
    }
  }
  return order;
}
inline constexpr auto kPackOrder = pack_order();

// Four doubles and what they are compared with.
struct PackedFour {
  __m256d v;
  int from(double limit) const { return _mm256_movemask_pd(_mm256_cmp_pd(v, _mm256_set1_pd(limit), _CMP_GE_OQ)); }
  int above(double limit) const { return _mm256_movemask_pd(_mm256_cmp_pd(v, _mm256_set1_pd(limit), _CMP_GT_OQ)); }
};

#endif

// Copies those of `count` values that are at least `limit` (above: larger than it) to `to`, which has space for `count` + 4.
// Returns how many. `to` may be `values`.
template <bool kAbove>
inline int pack(const double* values, int count, double limit, double* to) {
  int found = 0, i = 0;
#if defined(__AVX2__)
  for (; i + 4 <= count; i += 4) {
    const PackedFour four{_mm256_loadu_pd(values + i)};
    const int bits = kAbove ? four.above(limit) : four.from(limit);
    const __m256i order = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kPackOrder[bits].data()));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + found), _mm256_permutevar8x32_epi32(_mm256_castpd_si256(four.v), order));
    found += __builtin_popcount(static_cast<unsigned>(bits));
  }
#endif
  for (; i < count; ++i) {
    const double value = values[i];
    to[found] = value;
    found += kAbove ? value > limit : value >= limit;
  }
  return found;
}

}  // namespace placement
