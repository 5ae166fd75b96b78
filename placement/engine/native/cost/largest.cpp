#include "cost/largest.hpp"

#include <algorithm>
#include <functional>


#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace placement {
namespace {

// Bit i: value i of eight is at least `limit`.
std::uint8_t marks(const double* values, double limit) {
#if defined(__AVX__)
  const __m256d from = _mm256_set1_pd(limit);
  const int low = _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(values), from, _CMP_GE_OQ));
  const int high = _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(values + 4), from, _CMP_GE_OQ));
  return static_cast<std::uint8_t>(low | high << 4);
#else
  int all = 0;
  for (int i = 0; i < 8; ++i) all |= (values[i] >= limit) << i;
  return static_cast<std::uint8_t>(all);
#endif
}

// Whether one of eight values is at least `limit`.
bool any_from(const double* values, double limit) {
#if defined(__AVX__)
  const __m256d from = _mm256_set1_pd(limit);
  const __m256d low = _mm256_cmp_pd(_mm256_loadu_pd(values), from, _CMP_GE_OQ);
  const __m256d high = _mm256_cmp_pd(_mm256_loadu_pd(values + 4), from, _CMP_GE_OQ);
  return _mm256_movemask_pd(_mm256_or_pd(low, high)) != 0;
#else
  bool any = false;
  for (int i = 0; i < 8; ++i) any |= values[i] >= limit;
  return any;
#endif
}

// Removes the values above `limit`; returns the number of those left.
int pack_within(double* values, int count, double limit) {
  int found = 0;
  for (int i = 0; i < count; ++i) {
    const double value = values[i];
    values[found] = value;
    found += value <= limit;
  }
  return found;
}

// Uses eight partial sums, so that no addition waits for the previous one.
double sum_of(const double* values, int count) {
  double sums[8] = {};
  int i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int lane = 0; lane < 8; ++lane) sums[lane] += values[i + lane];
  }
  for (int lane = 0; i + lane < count; ++lane) sums[lane] += values[i + lane];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

}  // namespace

// Writes the values from `limit` on to near_; returns their number.
int LargestMean::collect(const double* values, double limit) {
  double* near = near_.data();
  int found = 0, i = 0;
  for (; i + kBlock <= values_; i += kBlock) {
    if (any_from(values + i, limit)) found += pack<false>(values + i, kBlock, limit, near + found);
  }
  return found + pack<false>(values + i, values_ - i, limit, near + found);
}

void LargestMean::keep() {
  const int blocks = (values_ + kBlock - 1) / kBlock;
  marks_.assign((blocks + 7) / 8 * 8, 0);
  is_stale_.assign(blocks, 0);
  stale_.clear();
  stale_.reserve(blocks);
  touch_all();
}

void LargestMean::mark_from(const double* values, int block) {
  const int first = block * kBlock;
  if (first + kBlock <= values_) {
    marks_[block] = marks(values + first, kept_limit_);
    return;
  }
  marks_[block] = 0;
  for (int i = first; i < values_; ++i) marks_[block] |= static_cast<std::uint8_t>((values[i] >= kept_limit_) << (i - first));
}

int LargestMean::collect_kept(const double* values, double limit) {
  if (limit != kept_limit_ || is_all_stale_) {
    kept_limit_ = limit;
    is_all_stale_ = false;
    for (std::size_t block = 0; block < is_stale_.size(); ++block) mark_from(values, static_cast<int>(block));
  } else {
    for (const std::int32_t block : stale_) mark_from(values, block);
  }
  for (const std::int32_t block : stale_) is_stale_[block] = 0;
  stale_.clear();
  int found = 0;
  double* near = near_.data();
  for (std::size_t word = 0; word < marks_.size(); word += 8) {
    std::uint64_t bits = 0;
    for (int byte = 7; byte >= 0; --byte) bits = bits << 8 | marks_[word + byte];
    for (const double* at = values + word * kBlock; bits != 0; bits &= bits - 1) {
      near[found++] = at[__builtin_ctzll(bits)];
    }
  }
  return found;
}

// Returns the smallest of the count_ largest of the `found` values in near_.
double LargestMean::smallest_counted(int found) {
  constexpr int kFew = 24;
  const double low = smallest_ - band_, high = smallest_ + band_;
  double* ranked = ranked_.data();
  int within = pack<false>(near_.data(), found, low, ranked);  // still includes those above the band
  int above = 0;
  for (int i = 0; i < within; ++i) above += ranked[i] > high;
  within = pack_within(ranked, within, high);
  if (above < count_ && count_ <= above + within) {
    if (within > kFew) band_ *= 0.75;
    std::nth_element(ranked, ranked + (count_ - above - 1), ranked + within, std::greater<double>());
    return ranked[count_ - above - 1];
  }
  std::copy_n(near_.begin(), found, ranked);
  std::nth_element(ranked, ranked + (count_ - 1), ranked + found, std::greater<double>());
  const double smallest = ranked[count_ - 1];
  band_ = std::max(2 * band_, 1e-3 * smallest);
  return smallest;
}

double LargestMean::operator()(const double* values) {
  return mean([&](double limit) { return collect(values, limit); });
}

double LargestMean::kept(const double* values) {
  return steadily([&](double limit) { return collect_kept(values, limit); });
}

double LargestMean::mean_of_near(int found) {
  found_ = found;
  const double smallest = smallest_ = smallest_counted(found);
  const int above = pack<true>(near_.data(), found, smallest, ranked_.data());
  const double sum = sum_of(ranked_.data(), above);
  margin_ = std::max(margin_, 1e-3 * smallest);
  limit_ = smallest - margin_;
  return (sum + (count_ - above) * smallest) / count_;
}

}  // namespace placement
