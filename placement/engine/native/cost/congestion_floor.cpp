#include "cost/congestion_floor.hpp"

#include <algorithm>
#include <functional>

namespace placement {

CongestionFloor::CongestionFloor(const Canvas& canvas, const Weights& weights)
    : cells_(canvas.cells()),
      count_(counted_gcells(canvas)),
      reach_(smoothing_reach(canvas)),
      axes_{vertical_axis(canvas), horizontal_axis(canvas)},
      price_(weights.congestion / count_),
      is_valid_(weights.congestion >= 0 && weights.wirelength >= 0),
      vertical_block_(cells_, 0.0),
      horizontal_block_(cells_, 0.0),
      routes_(canvas),
      congestion_(2 * static_cast<std::size_t>(cells_)),
      line_(std::max(canvas.columns, canvas.rows)),
      ranked_(congestion_.size()) {}

// The choice among equal values does not matter.
void CongestionFloor::renew(const LiveMaps& maps) {
  const double* values = maps.vertical();
  ranked_.assign(values, values + 2 * cells_);
  const auto last = ranked_.begin() + (count_ - 1);
  std::nth_element(ranked_.begin(), last, ranked_.end(), std::greater<double>());
  const double smallest = *last;
  auto equal = count_ - std::count_if(ranked_.begin(), last, [&](double value) { return value > smallest; });
  for (const std::int32_t cell : busy_) congestion_[cell] = 0;
  busy_.clear();
  for (int i = 0; i < 2 * cells_; ++i) {
    if (!(values[i] >= smallest) || (values[i] == smallest && --equal < 0)) continue;
    busy_.push_back(i);
    congestion_[i] = price_;
  }
  price_side(axes_[0], 0, vertical_block_, routes_.vertical());
  price_side(axes_[1], cells_, horizontal_block_, routes_.horizontal());
}

// A track's demand in a gcell is distributed along the line, so its price is the mean of those of the gcells within
// reach.
void CongestionFloor::price_side(const GridAxis& axis, int first, std::vector<double>& block, std::vector<double>& sums) {
  const int length = axis.length;
  std::fill(line_.begin(), line_.end(), 0.0);
  for (int line = axis.lines - 1; line >= 0; --line) {
    const double* prices = congestion_.data() + first + line * length;
    for (int i = 0; i < length; ++i) {
      double price = 0;
      const int last = std::min(length - 1, i + reach_);
      for (int j = std::max(0, i - reach_); j <= last; ++j) price += prices[j];
      line_[i] += price * (axis.shares[i] * axis.per_unit);
      sums[line * length + i] = line_[i];
      block[line * length + i] = prices[i] * axis.block_share;
    }
  }
}

double CongestionFloor::current(const LiveMaps& maps) const {
  double sum = 0;
  for (const std::int32_t cell : busy_) sum += maps.vertical()[cell];
  return sum * price_;
}

}  // namespace placement
