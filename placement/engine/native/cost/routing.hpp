// The routing demand of nets, kept as differences along the lines of the grid: a segment changes its two ends only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cost/net_points.hpp"

namespace placement {

class RouteSteps {
 public:
  explicit RouteSteps(const Canvas& canvas)
      : columns_(canvas.columns),
        rows_(canvas.rows),
        horizontal_(canvas.cells(), 0.0),
        vertical_(canvas.cells(), 0.0),
        span_(std::max(columns_, rows_) - 1),
        signs_(2 * span_ + 1) {
    for (int i = 0; i < 2 * span_ + 1; ++i) signs_[i] = (i > span_) - (i < span_);
  }

  // Changes of the demand from one column to the next, [C, R], and from one row to the next, [R, C].
  const std::vector<double>& horizontal() const { return horizontal_; }
  const std::vector<double>& vertical() const { return vertical_; }

  void clear() {
    std::fill(horizontal_.begin(), horizontal_.end(), 0.0);
    std::fill(vertical_.begin(), vertical_.end(), 0.0);
  }

  // The maps of another one of the same canvas; without allocating.
  void copy(const RouteSteps& other) {
    std::copy(other.horizontal_.begin(), other.horizontal_.end(), horizontal_.begin());
    std::copy(other.vertical_.begin(), other.vertical_.end(), vertical_.begin());
  }
  void swap(RouteSteps& other) {
    horizontal_.swap(other.horizontal_);
    vertical_.swap(other.vertical_);
  }

  // Adds the route of a net that meets `count` distinct gcells, given by one point for each, the driver's first. The
  // opposite weight takes it away again, exactly: weights are rounded for that (CompactNets).
  void add(const PointPlace* const* cells, int count, double weight) {
    if (count == 3) {
      add_three(*cells[0], *cells[1], *cells[2], weight);
    } else {
      add_star(cells, count, weight);
    }
  }

  // Two points, in two cells or in one.
  void add_two(const PointPlace& from, const PointPlace& to, double weight) {
    const double right = weight * signs_[span_ + to.column - from.column];
    horizontal_[from.pillar + from.row] += right;
    horizontal_[to.pillar + from.row] -= right;
    const double up = weight * signs_[span_ + to.row - from.row];
    vertical_[from.cell - from.column + to.column] += up;
    vertical_[to.cell] -= up;
  }

 private:
  // Each other cell is joined to the driver's: along the driver's row, then along the cell's own column.
  void add_star(const PointPlace* const* cells, int count, double weight) {
    const PointPlace& driver = *cells[0];
    double* horizontal = horizontal_.data() + driver.row;
    double* driver_level = vertical_.data() + (driver.cell - driver.column);
    double* vertical = vertical_.data();
    double leaving = 0;
    const double* right_of = signs_.data() + (span_ - driver.column);
    const double* above = signs_.data() + (span_ - driver.row);
    for (int i = 1; i < count; ++i) {
      const PointPlace& to = *cells[i];
      const double right = weight * right_of[to.column];
      leaving += right;
      horizontal[to.pillar] -= right;
      const double up = weight * above[to.row];
      driver_level[to.column] += up;
      vertical[to.cell] -= up;
    }
    horizontal[driver.pillar] += leaving;
  }

  void horizontal(int row, int from, int to, double weight) {  // from ≤ to
    horizontal_[from * rows_ + row] += weight;
    horizontal_[to * rows_ + row] -= weight;
  }
  void vertical(int column, int from, int to, double weight) {
    vertical_[std::min(from, to) * columns_ + column] += weight;
    vertical_[std::max(from, to) * columns_ + column] -= weight;
  }

  // A cell as one number, so that sorting is by its first part, then by its second.
  static void sort_three(std::int32_t (&keys)[3]) {
    auto order = [](std::int32_t& a, std::int32_t& b) {
      const std::int32_t low = std::min(a, b);
      b = std::max(a, b);
      a = low;
    };
    order(keys[0], keys[1]);
    order(keys[1], keys[2]);
    order(keys[0], keys[1]);
  }

  void add_three(const PointPlace& a, const PointPlace& b, const PointPlace& c, double weight) {
    constexpr int kShift = 15, kMask = (1 << kShift) - 1;
    std::int32_t keys[3] = {a.column << kShift | a.row, b.column << kShift | b.row, c.column << kShift | c.row};
    sort_three(keys);
    const int x1 = keys[0] >> kShift, x2 = keys[1] >> kShift, x3 = keys[2] >> kShift;
    const int y1 = keys[0] & kMask, y2 = keys[1] & kMask, y3 = keys[2] & kMask;
    // Stairs in three shapes; where two cells share a column or a row, one of the four segments is empty.
    const bool steps = (x1 < x2) & (x2 < x3) & (std::min(y1, y3) < y2) & (y2 < std::max(y1, y3));
    const bool both_above = (x2 == x3) & (x1 < x2) & (y1 < std::min(y2, y3));
    if (steps | both_above | (y2 == y3)) {
      horizontal(y1, x1, x2, weight);
      horizontal(y2, x2, x3, weight);
      vertical(x2, y1, y2, weight);
      vertical(x3, y2, y3, weight);
      return;
    }
    // A trunk on the middle cell's row, and branches to the lowest and the highest cell.
    std::int32_t levels[3] = {y1 << kShift | x1, y2 << kShift | x2, y3 << kShift | x3};
    sort_three(levels);
    const int trunk = levels[1] >> kShift;
    horizontal(trunk, x1, x3, weight);
    vertical(levels[0] & kMask, levels[0] >> kShift, trunk, weight);
    vertical(levels[2] & kMask, trunk, levels[2] >> kShift, weight);
  }

  int columns_, rows_;
  std::vector<double> horizontal_, vertical_;
  // signs_[span_ + d] is the sign of the difference d of two columns or rows.
  int span_;
  std::vector<double> signs_;
};

}  // namespace placement
