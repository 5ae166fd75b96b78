// Where the points of the nets stand, how long a net is and which gcells it meets.
#pragma once

#include <cstdint>
#include <vector>

#include "compact_nets.hpp"
#include "design.hpp"
#include "pair.hpp"

namespace placement {

// Where a point stands and the gcell it falls in.
struct PointPlace {
  double x, y;  // µm
  std::int32_t column, row, cell;
  std::int32_t unused;
};

// Puts the points of nodes in their places. Immutable.
class PointPlacer {
 public:
  PointPlacer(const Design& design, const CompactNets& nets)
      : nets_(nets),
        turned_(design.nodes()),
        columns_(design.canvas.columns),
        cell_size_{design.canvas.cell_width(), design.canvas.cell_height()},
        last_cell_{static_cast<double>(design.canvas.columns - 1), static_cast<double>(design.canvas.rows - 1)} {
    // Soft macros keep their pins as they are; ports and standard cells are points.
    for (int node = 0; node < design.nodes(); ++node) turned_[node] = design.kind_of(node) == Kind::hard;
  }

  // Writes the places of a node's points, from places[point_start[node]] on.
  void place(int node, double x, double y, std::int8_t orientation, PointPlace* places) const {
    const auto& turn = kTurn[turned_[node] ? orientation : 0];
    const Pair centre = Pair::of(x, y), cell_size = Pair::load(cell_size_), last_cell = Pair::load(last_cell_);
    const Pair zero = Pair::of(0.0, 0.0);
    for (int point = nets_.point_start[node]; point < nets_.point_start[node + 1]; ++point) {
      const double dx = nets_.point_dx[point], dy = nets_.point_dy[point];
      const Pair at = centre + Pair::of(turn[0] * dx + turn[1] * dy, turn[2] * dx + turn[3] * dy);
      at.store(&places[point].x);
      double cell[2];  // clamped to [0, last] first, so that cutting off the fraction is the floor
      largest(zero, least(at / cell_size, last_cell)).store(cell);
      places[point].column = static_cast<std::int32_t>(cell[0]);
      places[point].row = static_cast<std::int32_t>(cell[1]);
      places[point].cell = places[point].row * columns_ + places[point].column;
    }
  }

 private:
  const CompactNets& nets_;
  std::vector<std::uint8_t> turned_;  // [N]
  int columns_;
  double cell_size_[2], last_cell_[2];
};

// The half perimeter of a net, µm; `count` points.
inline double half_perimeter(const PointPlace* places, const std::int32_t* points, int count) {
  Pair low = Pair::load(&places[points[0]].x), high = low;
  for (int i = 1; i < count; ++i) {
    const Pair at = Pair::load(&places[points[i]].x);
    low = least(low, at);
    high = largest(high, at);
  }
  return (high - low).sum();
}

// Finds one point for each distinct gcell of a net, the driver's first.
class DistinctCells {
 public:
  DistinctCells(const Canvas& canvas, int most_points) : stamp_(canvas.cells(), 0), points_(most_points + 1) {}

  // Returns how many; they are in points() until the next call.
  int find(const PointPlace* places, const std::int32_t* points, int count) {
    if (++epoch_ == 0) {
      std::fill(stamp_.begin(), stamp_.end(), 0);
      epoch_ = 1;
    }
    int distinct = 0;
    for (int i = 0; i < count; ++i) {
      const std::int32_t cell = places[points[i]].cell;
      points_[distinct] = points[i];
      distinct += stamp_[cell] != epoch_;
      stamp_[cell] = epoch_;
    }
    return distinct;
  }
  const std::int32_t* points() const { return points_.data(); }

 private:
  std::vector<std::uint32_t> stamp_;  // [R·C] the last net that met the cell
  std::uint32_t epoch_ = 0;
  std::vector<std::int32_t> points_;
};

}  // namespace placement
