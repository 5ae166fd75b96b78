// The mean of the largest values of a map of which few change from call to call: an order statistic that is maintained.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace placement {

// A sum of multiples of a power of two, exact in whatever order they are added and taken away.

__extension__ typedef __int128 Wide;  // 2^24 gcells of 2^52 quanta each

class Quanta {
 public:
  // `quantum`: a power of two.
  explicit Quanta(double quantum) : quantum_(quantum), per_quantum_(1.0 / quantum) {}

  // How many quanta a multiple of the quantum is; below 2^63 of them.
  std::int64_t of(double value) const { return static_cast<std::int64_t>(value * per_quantum_); }
  // The double next to the mean of `count` values with this sum.
  double mean(Wide sum, int count) const { return static_cast<double>(sum) * quantum_ / count; }

 private:
  double quantum_, per_quantum_;
};

// All values are finite multiples of a power of two, so sums are exact and the result depends on the values alone, not on
// how they came about. A call costs what the touched values cost and one look at the values near the smallest that counts.
class DensestMean {
 public:
  // Of `values` values, the `count` ≥ 1 largest; `quantum`: the power of two.
  DensestMean(int values, int count, double quantum);

  // From all values.
  double operator()(const double* values);

  // The same from those that were touched: all of them at the first call, later every one that may have changed since.
  void touch(int first, int end) { touched_.push_back({first, end}); }
  void touch_all() { is_known_ = false; }
  double kept(const double* values);

 private:
  void begin_anew(const double* values);
  void change(int at, double value);
  void join(int at);
  void leave(int at);
  double smallest_of(int rank);
  double mean_down_to(double smallest);

  int values_, count_;
  Quanta quanta_;
  std::vector<double> ranked_;  // workspace
  // Values from high_ on are counted and summed, those between low_ and high_ are listed. But those that equal tie_, which was
  // the smallest that counted, are only counted: they may be many.
  bool is_known_ = false;
  double low_ = 0, high_ = 0, tie_ = 0;
  int above_ = 0, ties_ = 0;
  Wide sum_above_ = 0;
  std::vector<double> known_;           // [values] as of the last call
  std::vector<std::int32_t> near_;      // the listed ones
  std::vector<std::int32_t> place_of_;  // [values] in near_
  std::vector<std::pair<std::int32_t, std::int32_t>> touched_;  // runs [first, end)
};

}  // namespace placement
