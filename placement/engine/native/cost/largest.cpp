#include "cost/largest.hpp"

#include <algorithm>
#include <functional>
#include <limits>

namespace placement {

int LargestMean::collect(const double* values, double limit) {
  int found = 0;
  double* near = near_.data();
  for (int i = 0; i < values_; ++i) {
    near[found] = values[i];  // kept if it is large enough, else overwritten by the next
    found += values[i] >= limit;
  }
  return found;
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
  std::copy_n(near_.begin(), found, ranked_.begin());
  std::nth_element(ranked_.begin(), ranked_.begin() + (count_ - 1), ranked_.begin() + found, std::greater<double>());
  const double smallest = ranked_[count_ - 1];
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
