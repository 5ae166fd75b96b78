#include "cost/largest.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace placement {
namespace {

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

}  // namespace

int LargestMean::collect(const double* values, double limit) {
  constexpr int kBlock = 8;
  int found = 0, i = 0;
  double* near = near_.data();
  const auto keep = [&](int end) {
    for (; i < end; ++i) {
      near[found] = values[i];  // kept if it is large enough, else overwritten by the next
      found += values[i] >= limit;
    }
  };
  while (i + kBlock <= values_) {
    if (any_from(values + i, limit)) keep(i + kBlock);
    else i += kBlock;
  }
  keep(values_);
  return found;
}

// The last of the count_ largest of the `found` values in near_.
double LargestMean::smallest_counted(int found) {
  constexpr int kFew = 24;
  const double low = smallest_ - band_, high = smallest_ + band_;
  int above = 0, within = 0;
  double* ranked = ranked_.data();
  for (int i = 0; i < found; ++i) {
    const double value = near_[i];
    ranked[within] = value;
    within += (value >= low) & (value <= high);
    above += value > high;
  }
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
  int found = collect(values, limit_);
  if (found < count_) {
    found = collect(values, -std::numeric_limits<double>::infinity());  // all but NaN
    if (found < count_) return std::numeric_limits<double>::quiet_NaN();
    margin_ *= 2;
  } else if (found > 2 * count_ + 8) {
    margin_ *= 0.5;
  }
  const double smallest = smallest_ = smallest_counted(found);
  double sum = 0;
  int above = 0;
  for (int i = 0; i < found; ++i) {
    sum += near_[i] > smallest ? near_[i] : 0.0;
    above += near_[i] > smallest;
  }
  margin_ = std::max(margin_, 1e-3 * smallest);
  limit_ = smallest - margin_;
  return (sum + (count_ - above) * smallest) / count_;
}

}  // namespace placement
