#include "cost/wire_spread.hpp"

#include <algorithm>
#include <array>
#include <cmath>


namespace placement {
namespace {

// Ratio of a net's tree length to its half perimeter by number of pins (Cheng: "RISA", ICCAD 1994, table 1), linear in
// between; beyond 50 pins it grows as their square root, as the length of trees through random points does.
constexpr std::array<std::array<double, 2>, 16> kTrees = {{{3, 1.0},      {4, 1.0828},  {5, 1.1536},  {6, 1.2206},  {7, 1.2823},
                                                           {8, 1.3385},  {9, 1.3991},  {10, 1.4493}, {15, 1.6899}, {20, 1.8924},
                                                           {25, 2.0743}, {30, 2.2334}, {35, 2.3895}, {40, 2.5356}, {45, 2.6625},
                                                           {50, 2.7933}}};

constexpr double kMostShare = 4096;  // sums of shares up to this are exact

// A wire that runs through a gcell must cross it entirely. A macro that covers at least half of a gcell's width
// therefore blocks its horizontal tracks over the macro's height; a narrower one in proportion. The same holds
// vertically.
double cut(double along, double across) { return std::min(1.0, 2.0 * along) * across; }

double tree_factor(int points) {
  if (points <= 3) return 1.0;
  for (std::size_t i = 1; i < kTrees.size(); ++i) {
    const auto& [high, at_high] = kTrees[i];
    if (points > high) continue;
    const auto& [low, at_low] = kTrees[i - 1];
    return at_low + (at_high - at_low) * (points - low) / (high - low);
  }
  return kTrees.back()[1] * std::sqrt(points / kTrees.back()[0]);
}

double most_wire(const Canvas& canvas, const CompactNets& nets) {
  double sum = 0;
  for (int net = 0; net < nets.nets(); ++net) {
    sum += nets.wire_weight[net] * tree_factor(nets.size(net));
  }
  return 8.0 * sum * std::max(canvas.width, canvas.height);
}

}  // namespace

WireSpread::WireSpread(const Canvas& canvas, const CompactNets& nets)
    : columns_(canvas.columns),
      rows_(canvas.rows),
      cell_size_{canvas.cell_width(), canvas.cell_height()},
      last_cell_{canvas.columns - 1.0, canvas.rows - 1.0},
      rounder_(most_wire(canvas, nets)),
      share_rounder_(kMostShare),
      shut_(2 * static_cast<std::size_t>(columns_) * rows_, 0.0),
      left_(shut_.size()),
      changes_(2 * static_cast<std::size_t>(columns_ + 1) * (rows_ + 1), 0.0),
      running_(2 * columns_, 0.0),
      full_(changes_.size(), 0.0) {
  const double area = canvas.cell_width() * canvas.cell_height();
  tracks_[0] = kUsableTracks * area * canvas.routes_horizontal;
  tracks_[1] = kUsableTracks * area * canvas.routes_vertical;
  blocked_[0] = kUsableTracks * area * std::min(canvas.macro_routes_horizontal, canvas.routes_horizontal);
  blocked_[1] = kUsableTracks * area * std::min(canvas.macro_routes_vertical, canvas.routes_vertical);
  for (int net = 0; net < nets.nets(); ++net) {
    tree_.push_back(nets.wire_weight[net] * tree_factor(nets.size(net)));
  }
  clear();
}

void WireSpread::clear() {
  std::fill(shut_.begin(), shut_.end(), 0.0);
  for (std::size_t i = 0; i < left_.size(); ++i) left_[i] = tracks_[i % 2];
  std::fill(changes_.begin(), changes_.end(), 0.0);
}

void WireSpread::block(double x, double y, double width, double height, double sign) {
  const GridSpan columns(x, width, 1.0 / cell_size_[0], columns_), rows(y, height, 1.0 / cell_size_[1], rows_);
  for (int row = rows.first; row <= rows.last; ++row) {
    const double up = rows.share(row);
    for (int column = columns.first; column <= columns.last; ++column) {
      const double across = columns.share(column);
      const int at = 2 * (row * columns_ + column);
      const double* full = full_.data() + 2 * (row * (columns_ + 1) + column);
      const double* above = full + 2 * (columns_ + 1);
      const double cuts[2] = {cut(across, up), cut(up, across)};
      for (int i = 0; i < 2; ++i) {
        const double here = (above[i + 2] - above[i]) - (full[i + 2] - full[i]);  // 1 in a full gcell
        shut_[at + i] += sign * share_rounder_(cuts[i]);
        const double left = tracks_[i] - blocked_[i] * std::min(1.0, shut_[at + i]);
        blocked_more_ += here * (left_[at + i] - left);
        left_[at + i] = left;
      }
    }
  }
}

NetSpread WireSpread::spread(int net, const NetBox& box) const {
  const Pair size = Pair::load(cell_size_), last = Pair::load(last_cell_), zero = Pair::of(0.0, 0.0);
  std::int32_t low_column, low_row, high_column, high_row;
  largest(zero, least(box.low / size, last)).truncate(low_column, low_row);
  largest(zero, least(box.high / size, last)).truncate(high_column, high_row);
  ++high_column;
  ++high_row;
  NetSpread result;
  box.size().store(&result.width);
  const double each = tree_[net] / ((high_column - low_column) * (high_row - low_row));
  result.across = rounder_(each * result.width);
  result.up = rounder_(each * result.height);
  const int line = columns_ + 1;
  result.corners[0] = low_row * line + low_column;
  result.corners[1] = low_row * line + high_column;
  result.corners[2] = high_row * line + low_column;
  result.corners[3] = high_row * line + high_column;
  return result;
}

// Demand is exact in any order of summation, so four gcells at a time wait for one sum.
double WireSpread::excess() {
  std::fill(running_.begin(), running_.end(), 0.0);
  const Pair none = Pair::of(0.0, 0.0);
  const TwoPairs zero = TwoPairs::of(none, none);
  TwoPairs sums[2] = {zero, zero};
  const double *left = left_.data(), *change = changes_.data();
  for (int row = 0; row < rows_; ++row, change += 2) {  // the last column's changes lie beyond the canvas
    Pair along = none;
    double* running = running_.data();
    int column = 0;
    for (; column + 4 <= columns_; column += 4, left += 8, change += 8, running += 8) {
      const Pair first = Pair::load(change), two = first + Pair::load(change + 2);
      const Pair third = Pair::load(change + 4), four = two + (third + Pair::load(change + 6));
      const TwoPairs before = TwoPairs::of(along, along), rises[2] = {TwoPairs::of(first, two), TwoPairs::of(two + third, four)};
      for (int i = 0; i < 2; ++i) {
        const TwoPairs demand = TwoPairs::load(running + 4 * i) + (before + rises[i]);
        demand.store(running + 4 * i);
        sums[i] = sums[i] + largest(zero, demand - TwoPairs::load(left + 4 * i));
      }
      along = along + four;
    }
    for (; column < columns_; ++column, left += 2, change += 2, running += 2) {
      along = along + Pair::load(change);
      const Pair demand = Pair::load(running) + along;
      demand.store(running);
      sums[0] = sums[0] + TwoPairs::of(largest(none, demand - Pair::load(left)), none);
    }
  }
  return ((sums[0].low() + sums[0].high()) + (sums[1].low() + sums[1].high())).sum();
}

// Calls visit(row, column, axis, µm of wire beyond the usable tracks, negative where tracks are free) for every gcell,
// row by row, and both axes.
template <typename Visit>
void WireSpread::visit_beyond(const Visit& visit) {
  std::fill(running_.begin(), running_.end(), 0.0);
  const double* change = changes_.data();
  for (int row = 0; row < rows_; ++row, change += 2) {  // the last column's changes lie beyond the canvas
    double along[2] = {0, 0};
    for (int column = 0; column < columns_; ++column, change += 2) {
      for (int i = 0; i < 2; ++i) {
        along[i] += change[i];
        const double demand = running_[2 * column + i] += along[i];
        visit(row, column, i, demand - left_[2 * (row * columns_ + column) + i]);
      }
    }
  }
}

void WireSpread::write_beyond(double* horizontal, double* vertical) {
  visit_beyond([&](int row, int column, int axis, double beyond) {
    if (axis == 0) horizontal[column * rows_ + row] = beyond;
    else vertical[row * columns_ + column] = beyond;
  });
}

double WireSpread::renew_floor() {
  has_full_ = false;
  blocked_more_ = 0;
  const int line = 2 * (columns_ + 1);
  double sum = 0, count[2] = {0, 0};
  visit_beyond([&](int row, int column, int axis, double beyond) {
    if (column == 0) count[axis] = 0;
    if (beyond > 0) {
      sum += beyond;
      count[axis] += 1;
      has_full_ = true;
    }
    full_[(row + 1) * line + 2 * (column + 1) + axis] = full_[row * line + 2 * (column + 1) + axis] + count[axis];
  });
  return sum;
}

}  // namespace placement
