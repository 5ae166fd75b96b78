// Where the points of the nets are, and how long a net is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cost/compact_nets.hpp"
#include "common/design.hpp"
#include "cost/pair.hpp"

namespace placement {

// Where a point is, and its gcell.
struct alignas(32) PointPlace {  // two to a cache line
  double x, y;  // µm
  std::int32_t column, row;
  std::int32_t cell;    // row · C + column
  std::int32_t pillar;  // column · R
};

// Puts the points of nodes in their places. Immutable.
class PointPlacer {
 public:
  PointPlacer(const Design& design, const CompactNets& nets);

  // Writes the places of a node's points, from places[point_start[node]] on.
  void place(int node, double x, double y, std::int8_t orientation, PointPlace* places) const {
    const auto& turn = kTurn[turned_[node] ? orientation : 0];
    const bool swapped = turn[0] == 0.0;
    const Pair factor = swapped ? Pair::of(turn[1], turn[2]) : Pair::of(turn[0], turn[3]);
    const double* offsets = swapped ? swapped_offsets_.data() : offsets_.data();
    const Pair centre = Pair::of(x, y), cell_size = Pair::load(cell_size_), last_cell = Pair::load(last_cell_);
    const Pair zero = Pair::of(0.0, 0.0);
    const int end = start_[node + 1];
    for (int point = start_[node]; point < end; ++point) {
      const Pair at = centre + factor * Pair::load(offsets + 2 * point);
      PointPlace& place = places[point];
      at.store(&place.x);
      // Clamped to [0, last] first, so that cutting off the fraction is the floor.
      largest(zero, least(at / cell_size, last_cell)).truncate(place.column, place.row);
      place.cell = place.row * columns_ + place.column;
      place.pillar = place.column * rows_;
    }
  }

 private:
  std::vector<std::uint8_t> turned_;              // [N]
  std::vector<std::int32_t> start_;               // [N+1]
  std::vector<double> offsets_, swapped_offsets_; // [Q, 2] (dx, dy) and (dy, dx), µm
  int columns_, rows_;
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

}  // namespace placement
