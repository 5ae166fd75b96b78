// Shapes of routes: the changes that a net's route makes along the lines of the grid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cost/compact_nets.hpp"

namespace placement {

// `Sink` receives the changes: across<kLogged>(column, row, pillar, change) of the horizontal demand from a column on,
// in a row, and upward<kLogged>(column, row, level, change) of the vertical demand from a row on, in a column; `pillar`
// = column · R, `level` = row · C.
template <typename Sink>
class RouteShapes {
 public:
  explicit RouteShapes(const Canvas& canvas)
      : columns_(canvas.columns),
        rows_(canvas.rows),
        span_(std::max(columns_, rows_) - 1),
        signs_(2 * span_ + 1) {
    for (int i = 0; i < 2 * span_ + 1; ++i) signs_[i] = (i > span_) - (i < span_);
  }

  // Adds the route of a net that meets `count` distinct gcells, given by one point each, the driver's first. The
  // opposite weight removes it exactly, because weights are rounded (CompactNets). `kLogged`: the changes are logged
  // since begin().
  template <bool kLogged = false>
  void add(const PointPlace* const* cells, int count, double weight) {
    if (count == 3) {
      add_three<kLogged>(*cells[0], *cells[1], *cells[2], weight);
    } else {
      add_star<kLogged>(cells, count, weight);
    }
  }

  // Replaces the route of a net between `before` by that between `after`, distinct gcells as for add(); branches of a
  // star that are the same in both do not change.
  template <bool kLogged>
  void change(const PointPlace* const* before, int count_before, const PointPlace* const* after, int count_after,
              double weight) {
    const bool stars = (count_before != 3) & (count_after != 3) & (before[0]->cell == after[0]->cell);
    if (!stars) {
      add<kLogged>(before, count_before, -weight);
      add<kLogged>(after, count_after, weight);
      return;
    }
    const int both = std::min(count_before, count_after);
    for (int i = 1; i < both; ++i) {
      if (before[i]->cell == after[i]->cell) continue;
      add_two<kLogged>(*before[0], *before[i], -weight);
      add_two<kLogged>(*after[0], *after[i], weight);
    }
    for (int i = both; i < count_before; ++i) add_two<kLogged>(*before[0], *before[i], -weight);
    for (int i = both; i < count_after; ++i) add_two<kLogged>(*after[0], *after[i], weight);
  }

  // Two points, in two cells or in one.
  template <bool kLogged = false>
  void add_two(const PointPlace& from, const PointPlace& to, double weight) {
    const double right = weight * signs_[span_ + to.column - from.column];
    across<kLogged>(from.column, from.row, from.pillar, right);
    across<kLogged>(to.column, from.row, to.pillar, -right);
    const double up = weight * signs_[span_ + to.row - from.row];
    upward<kLogged>(to.column, from.row, from.cell - from.column, up);
    upward<kLogged>(to.column, to.row, to.cell - to.column, -up);
  }

 private:
  template <bool kLogged>
  void across(int column, int row, int pillar, double change) {
    static_cast<Sink*>(this)->template take_across<kLogged>(column, row, pillar, change);
  }
  template <bool kLogged>
  void upward(int column, int row, int level, double change) {
    static_cast<Sink*>(this)->template take_upward<kLogged>(column, row, level, change);
  }

  // Each other cell is connected to the driver's: along the driver's row, then along the cell's own column.
  template <bool kLogged>
  void add_star(const PointPlace* const* cells, int count, double weight) {
    const PointPlace& driver = *cells[0];
    const int driver_level = driver.cell - driver.column;
    double leaving = 0;
    const double* right_of = signs_.data() + (span_ - driver.column);
    const double* above = signs_.data() + (span_ - driver.row);
    for (int i = 1; i < count; ++i) {
      const PointPlace& to = *cells[i];
      const double right = weight * right_of[to.column];
      leaving += right;
      across<kLogged>(to.column, driver.row, to.pillar, -right);
      const double up = weight * above[to.row];
      upward<kLogged>(to.column, driver.row, driver_level, up);
      upward<kLogged>(to.column, to.row, to.cell - to.column, -up);
    }
    across<kLogged>(driver.column, driver.row, driver.pillar, leaving);
  }

  template <bool kLogged>
  void horizontal(int row, int from, int to, double weight) {  // from ≤ to
    across<kLogged>(from, row, from * rows_, weight);
    across<kLogged>(to, row, to * rows_, -weight);
  }
  template <bool kLogged>
  void vertical(int column, int from, int to, double weight) {
    const int low = std::min(from, to), high = std::max(from, to);
    upward<kLogged>(column, low, low * columns_, weight);
    upward<kLogged>(column, high, high * columns_, -weight);
  }

  // A cell as one number that sorts by its first coordinate, then by its second.
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

  template <bool kLogged>
  void add_three(const PointPlace& a, const PointPlace& b, const PointPlace& c, double weight) {
    constexpr int kShift = 15, kMask = (1 << kShift) - 1;
    std::int32_t keys[3] = {a.column << kShift | a.row, b.column << kShift | b.row, c.column << kShift | c.row};
    sort_three(keys);
    const int x1 = keys[0] >> kShift, x2 = keys[1] >> kShift, x3 = keys[2] >> kShift;
    const int y1 = keys[0] & kMask, y2 = keys[1] & kMask, y3 = keys[2] & kMask;
    // Staircase of three segments; if two cells share a column or a row, one of its four parts is empty.
    const bool steps = (x1 < x2) & (x2 < x3) & (std::min(y1, y3) < y2) & (y2 < std::max(y1, y3));
    const bool both_above = (x2 == x3) & (x1 < x2) & (y1 < std::min(y2, y3));
    if (steps | both_above | (y2 == y3)) {
      horizontal<kLogged>(y1, x1, x2, weight);
      horizontal<kLogged>(y2, x2, x3, weight);
      vertical<kLogged>(x2, y1, y2, weight);
      vertical<kLogged>(x3, y2, y3, weight);
      return;
    }
    // A trunk on the middle cell's row, and branches to the lowest and the highest cell.
    std::int32_t levels[3] = {y1 << kShift | x1, y2 << kShift | x2, y3 << kShift | x3};
    sort_three(levels);
    const int trunk = levels[1] >> kShift;
    horizontal<kLogged>(trunk, x1, x3, weight);
    vertical<kLogged>(levels[0] & kMask, levels[0] >> kShift, trunk, weight);
    vertical<kLogged>(levels[2] & kMask, trunk, levels[2] >> kShift, weight);
  }

 protected:
  int columns_, rows_;

 private:
  // signs_[span_ + d] is the sign of the difference d of two columns or rows.
  int span_;
  std::vector<double> signs_;
};

}  // namespace placement
