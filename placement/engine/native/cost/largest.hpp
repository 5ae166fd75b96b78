// The mean of the largest values of a map.
#pragma once

#include <cstddef>
#include <vector>

namespace placement {

// It remembers the smallest value that counted last time, so that a call with similar values is cheap. The result does not
// depend on earlier calls: the values above the smallest that counts are summed in their order. NaN does not count; the
// result is NaN where fewer than `count` other values are there.
class LargestMean {
 public:
  // Of `values` values, the `count` ≥ 1 largest.
  LargestMean(int values, int count) : values_(values), count_(count), near_(values), ranked_(values) {}

  double operator()(const double* values);

 private:
  int collect(const double* values, double limit);
  double smallest_counted(int found);

  int values_, count_;
  double limit_ = 0;    // the values from here on are near enough to the largest to be looked at
  double margin_ = 0;   // of the limit below the smallest value that counts
  double smallest_ = 0; // of the values that counted last time
  double band_ = 0;     // it is looked for so near to the last one first
  std::vector<double> near_, ranked_;
};

}  // namespace placement
