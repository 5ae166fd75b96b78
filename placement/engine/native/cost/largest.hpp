// Mean of the largest values of a map.
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

// Compacts the values of an array that satisfy a condition, in their order.

#if defined(__AVX2__)

// The 32-bit halves of four doubles to move to the front, indexed by the bits of the selected doubles.
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

// Four doubles and the limit with which they are compared.
struct PackedFour {
  __m256d v;
  int from(double limit) const { return _mm256_movemask_pd(_mm256_cmp_pd(v, _mm256_set1_pd(limit), _CMP_GE_OQ)); }
  int above(double limit) const { return _mm256_movemask_pd(_mm256_cmp_pd(v, _mm256_set1_pd(limit), _CMP_GT_OQ)); }
};

#endif

// Copies those of `count` values that are at least `limit` (above: larger than `limit`) to `to`, which has space for
// `count` + 4. Returns their number. `to` may be `values`.
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

// Remembers the smallest value that counted in the last call, so that a call with similar values is fast. The result
// does not depend on earlier calls: the values above the smallest that counts are added in eight partial sums in their
// order. NaN does not count; the result is NaN if there are fewer than `count` other values.
class LargestMean {
 public:
  // Mean of the `count` ≥ 1 largest of `values` values.
  LargestMean(int values, int count) : values_(values), count_(count), near_(values + 4), ranked_(values + 4) {}

  double operator()(const double* values);

  // Incremental computation with a maintained list of the values near the largest: touch() every value that may have
  // changed since the last call; keep() requires all of them.
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

  // The same with a function that finds the values: find(limit, to) writes those from `limit` on to `to`, in their
  // order, and returns their number; `to` has space for all and four more. The limit does not change between calls
  // while it is suitable.
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
  // Returns the mean and keeps the limit for the next call if about as many values were found.
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
  double limit_ = 0;    // values from this limit on are collected
  double margin_ = 0;   // distance of the limit below the smallest value that counts
  int found_ = 0;       // number of values collected in the last call
  bool is_limit_kept_ = false;  // the last call collected exactly the values from its limit on
  double smallest_ = 0; // smallest value that counted in the last call
  double band_ = 0;     // half width of the interval around it that is searched first
  std::vector<double> near_, ranked_;
  double kept_limit_ = 0;                 // limit of the marks
  std::vector<std::uint8_t> marks_;      // [blocks, rounded up to 8] bit i: the block's value i is at least kept_limit_
  std::vector<std::int32_t> stale_;      // blocks whose values may have changed
  std::vector<std::uint8_t> is_stale_;
  bool is_all_stale_ = false;
};

}  // namespace placement
