#include "search/sequence_pair.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/random.hpp"
#include "cost/legality.hpp"

namespace placement {
namespace {

// Two orders of all boxes. A box that precedes another in both is to its left; one that precedes it only in the second
// order is below it. Both coordinates can therefore be computed in the second order, each the least value that its
// limits and the preceding boxes allow.
class SequencePair {
 public:
  SequencePair(const PackingProblem& problem, const std::vector<double>& x, const std::vector<double>& y)
      : problem_(problem), count_(problem.boxes()), rank_(count_), second_(count_), place_(count_), x_(count_), y_(count_),
        kept_x_(count_), kept_y_(count_), excess_(count_ + 1), kept_excess_(count_ + 1) {
    std::vector<int> first(count_);
    std::iota(first.begin(), first.end(), 0);
    std::iota(second_.begin(), second_.end(), 0);
    std::stable_sort(first.begin(), first.end(), [&](int a, int b) { return x[a] - y[a] < x[b] - y[b]; });
    std::stable_sort(second_.begin(), second_.end(), [&](int a, int b) { return x[a] + y[a] < x[b] + y[b]; });
    for (int i = 0; i < count_; ++i) rank_[first[i]] = i;
    for (int i = 0; i < count_; ++i) place_[second_[i]] = i;
    work_out(0);
  }

  // Sum of the distances by which boxes exceed their limits, µm.
  double excess() const { return excess_[count_]; }
  Centres centres() const { return {x_, y_}; }
  std::int64_t comparisons() const { return comparisons_; }

  // Exchanges two boxes in the first order, in the second, or in both.
  void swap(int a, int b, bool in_first, bool in_second) {
    if (in_first) std::swap(rank_[a], rank_[b]);
    if (in_second) {
      std::swap(second_[place_[a]], second_[place_[b]]);
      std::swap(place_[a], place_[b]);
    }
  }

  // Recomputes the centres from the earlier of two boxes on; `restore` undoes that.
  void renew(int a, int b) {
    from_ = std::min(place_[a], place_[b]);
    kept_x_ = x_;
    kept_y_ = y_;
    kept_excess_ = excess_;
    work_out(from_);
  }
  void restore() {
    std::swap(x_, kept_x_);
    std::swap(y_, kept_y_);
    std::swap(excess_, kept_excess_);
  }

 private:
  void work_out(int from) {
    for (int j = from; j < count_; ++j) {
      const int box = second_[j];
      const double *apart_x = &problem_.apart_x[static_cast<std::size_t>(box) * count_];
      const double *apart_y = &problem_.apart_y[static_cast<std::size_t>(box) * count_];
      double x = problem_.low_x[box], y = problem_.low_y[box];
      for (int i = 0; i < j; ++i) {
        const int other = second_[i];
        if (rank_[other] < rank_[box]) x = std::max(x, x_[other] + apart_x[other]);
        else y = std::max(y, y_[other] + apart_y[other]);
      }
      x_[box] = x;
      y_[box] = y;
      excess_[j + 1] = excess_[j] + std::max(0.0, x - problem_.high_x[box]) + std::max(0.0, y - problem_.high_y[box]);
    }
    comparisons_ += static_cast<std::int64_t>(count_ - from) * (count_ + from) / 2 + 1;
  }

  const PackingProblem& problem_;
  int count_;
  std::vector<int> rank_;            // rank of each box in the first order
  std::vector<int> second_, place_;  // the second order, and each box's position in it
  std::vector<double> x_, y_, kept_x_, kept_y_;
  std::vector<double> excess_, kept_excess_;  // [B + 1] excess of the boxes before each position in the second order
  int from_ = 0;
  std::int64_t comparisons_ = 0;
};

}  // namespace

std::optional<Centres> pack(const PackingProblem& problem, const std::vector<double>& x, const std::vector<double>& y,
                            std::int64_t comparisons, std::uint64_t seed) {
  const int count = problem.boxes();
  SequencePair pair(problem, x, y);
  Random random;
  random.seed(seed);
  const double enough = kLengthTolerance / 2;
  if (count < 2) return pair.excess() <= enough ? std::optional(pair.centres()) : std::nullopt;
  double mean = 0;  // mean required distance of two boxes
  std::int64_t held = 0;
  for (const std::vector<double>* apart : {&problem.apart_x, &problem.apart_y}) {
    for (const double one : *apart) {
      if (!std::isfinite(one)) continue;
      mean += one;
      ++held;
    }
  }
  mean /= static_cast<double>(std::max<std::int64_t>(held, 1));
  constexpr int kRounds = 4;  // each at a higher initial temperature than the previous one, so that the order is kept
                              // if possible
  for (int round = 0; round < kRounds; ++round) {
    const double initial = mean * 0.05 * std::pow(2.0, round), final = mean * 1e-3;
    const std::int64_t begun = pair.comparisons(), budget = comparisons / kRounds;
    while (pair.excess() > enough) {
      const double progress = static_cast<double>(pair.comparisons() - begun) / static_cast<double>(budget);
      if (progress >= 1) break;
      const int a = static_cast<int>(random.below(count)), b = static_cast<int>(random.below(count));
      if (a == b) continue;
      const auto kind = random.below(3);
      const bool in_first = kind != 1, in_second = kind != 0;
      const double before = pair.excess(), temperature = initial * std::pow(final / initial, progress);
      pair.swap(a, b, in_first, in_second);
      pair.renew(a, b);
      const double worse = pair.excess() - before;
      if (worse > 0 && random.fraction() >= std::exp(-worse / temperature)) {
        pair.swap(a, b, in_first, in_second);
        pair.restore();
      }
    }
    if (pair.excess() <= enough) return pair.centres();
  }
  return std::nullopt;
}

}  // namespace placement
