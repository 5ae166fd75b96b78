// The mean of the largest values of a map.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace placement {

// Picks the values of an array that fulfil a condition, in their order.

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

// It remembers the smallest value that counted last time, so that a call with similar values is cheap. The result does not
// depend on earlier calls: the values above the smallest that counts are summed in eight
// sums in their order. NaN does not count; the
// result is NaN where fewer than `count` other values are there.
class LargestMean {
 public:
  // Of `values` values, the `count` ≥ 1 largest.
  LargestMean(int values, int count) : values_(values), count_(count), near_(values + 4), ranked_(values + 4) {}

  double operator()(const double* values);

  // The same with the values near the largest kept from call to call: touch() every value that may have changed since
  // the last call, all of them at keep().
  void keep();
  void touch(int first, int end) {
    if (is_all_stale_) return;
    for (int block = first / kBlock; block <= (end - 1) / kBlock; ++block) {
      if (is_stale_[block]) continue;
      is_stale_[block] = 1;
      stale_.push_back(block);
    }
  }
  void touch_all() { is_all_stale_ = true; }
  double kept(const double* values);

  // The same from a function that finds the values: find(limit, to) writes those from `limit` on to `to`, in their order, and
  // returns how many; `to` has space for all and four more. The limit stays the same from call to call while it serves.
  template <typename Find>
  double found_by(Find find) {
    return steadily([&](double limit) { return find(limit, near_.data()); });
  }

 private:
  static constexpr int kBlock = 8;

  int collect(const double* values, double limit);
  void mark_from(const double* values, int block);
  int collect_kept(const double* values, double limit);
  template <typename Collect>
  double mean(Collect collect) {
    int found = collect(limit_);
    if (found < count_) {
      found = collect(-std::numeric_limits<double>::infinity());  // all but NaN
      if (found < count_) return std::numeric_limits<double>::quiet_NaN();
      margin_ *= 2;
      is_limit_kept_ = false;
    } else if (found > 2 * count_ + 8) {
      margin_ *= 0.5;
    }
    return mean_of_near(found);
  }
  // The mean, with the same limit at the next call where about as many values were found.
  template <typename Collect>
  double steadily(Collect collect) {
    const double limit = limit_;
    is_limit_kept_ = true;
    const double result = mean(collect);
    if (is_limit_kept_ && found_ <= count_ + count_ / 2 + kBlock) limit_ = limit;
    else if (is_limit_kept_) margin_ *= 0.5;
    return result;
  }
  double mean_of_near(int found);
  double smallest_counted(int found);

  int values_, count_;
  double limit_ = 0;    // the values from here on are near enough to the largest to be looked at
  double margin_ = 0;   // of the limit below the smallest value that counts
  int found_ = 0;       // values that were looked at last time
  bool is_limit_kept_ = false;  // the last call looked at those from its limit on, and no others
  double smallest_ = 0; // of the values that counted last time
  double band_ = 0;     // it is looked for so near to the last one first
  std::vector<double> near_, ranked_;
  double kept_limit_ = 0;                 // of the marks
  std::vector<std::uint8_t> marks_;      // [blocks, rounded up to 8] bit i: the block's value i is at least kept_limit_
  std::vector<std::int32_t> stale_;      // blocks whose values may have changed
  std::vector<std::uint8_t> is_stale_;
  bool is_all_stale_ = false;
};

}  // namespace placement
