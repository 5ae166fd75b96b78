// Mean of the largest values of a map that changes little between calls: a maintained order statistic.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace placement {

// A sum of multiples of a power of two, exact in any order of additions and subtractions.

__extension__ typedef __int128 Wide;  // 2^24 gcells of 2^52 quanta each

class Quanta {
 public:
  // `quantum`: a power of two.
  explicit Quanta(double quantum) : quantum_(quantum), per_quantum_(1.0 / quantum) {}

  // The number of quanta in a multiple of the quantum; below 2^63.
  std::int64_t of(double value) const { return static_cast<std::int64_t>(value * per_quantum_); }
  // The double nearest to the mean of `count` values with this sum.
  double mean(Wide sum, int count) const { return static_cast<double>(sum) * quantum_ / count; }

 private:
  double quantum_, per_quantum_;
};

// All values are finite multiples of a power of two, so sums are exact and the result depends on the values alone, not
// on the history. A call costs time for the touched values and one pass over the values near the smallest that counts.
class DensestMean {
 public:
  // Mean of the `count` ≥ 1 largest of `values` values; `quantum`: the power of two.
  DensestMean(int values, int count, double quantum);

  // Computed from all values.
  double operator()(const double* values);

  // Incremental computation: the first call reads all values, later calls every touched value; touch every value that
  // may have changed.
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
  // Values from high_ on are counted and summed, those between low_ and high_ are listed. Values equal to tie_, the
  // last smallest that counted, are only counted because there may be many.
  bool is_known_ = false;
  double low_ = 0, high_ = 0, tie_ = 0;
  int above_ = 0, ties_ = 0;
  Wide sum_above_ = 0;
  std::vector<double> known_;           // [values] at the last call
  std::vector<std::int32_t> near_;      // the listed values
  std::vector<std::int32_t> place_of_;  // [values] position in near_
  std::vector<std::pair<std::int32_t, std::int32_t>> touched_;  // runs [first, end)
};

}  // namespace placement
