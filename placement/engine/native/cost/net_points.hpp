// Where the points of the nets stand, how long a net is and which gcells it meets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cost/compact_nets.hpp"
#include "common/design.hpp"
#include "cost/pair.hpp"

namespace placement {

// Where a point stands and the gcell it falls in.
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

// One point for each distinct gcell of a net of few points, the driver's first, written to `cells` (one place more
// than there are points). Returns how many.
template <int count>
inline int find_distinct(const PointPlace* const* places, const PointPlace** cells) {
  std::int32_t cell[count];
  cells[0] = places[0];
  cell[0] = cells[0]->cell;
  int distinct = 1;
#pragma GCC unroll 8
  for (int i = 1; i < count; ++i) {
    cell[i] = places[i]->cell;
    bool fresh = true;
#pragma GCC unroll 8
    for (int j = 0; j < i; ++j) fresh &= cell[i] != cell[j];
    cells[distinct] = places[i];
    distinct += fresh;
  }
  return distinct;
}
template <int count>
inline int find_distinct(const PointPlace* places, const std::int32_t* points, const PointPlace** cells) {
  const PointPlace* here[count];
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) here[i] = places + points[i];
  return find_distinct<count>(here, cells);
}

// The same for nets of any number of points; marks the cells that it has met.
class DistinctCells {
 public:
  DistinctCells(const Canvas& canvas, int most_points) : stamp_(canvas.cells(), 0), cells_(most_points + 1) {}

  // Returns how many; they are in cells() until the next call.
  int find(const PointPlace* places, const std::int32_t* points, int count) {
    switch (count) {
      case 2: return find_distinct<2>(places, points, cells_.data());
      case 3: return find_distinct<3>(places, points, cells_.data());
      case 4: return find_distinct<4>(places, points, cells_.data());
      case 5: return find_distinct<5>(places, points, cells_.data());
      case 6: return find_distinct<6>(places, points, cells_.data());
      default: return find_by_stamp(places, points, count);
    }
  }
  // The same for places, written to `cells`, which has room for one more than `count`.
  int find(const PointPlace* const* places, int count, const PointPlace** cells) {
    next_epoch();
    std::uint32_t* stamp = stamp_.data();
    int distinct = 0;
    for (int i = 0; i < count; ++i) {
      cells[distinct] = places[i];
      distinct += stamp[places[i]->cell] != epoch_;
      stamp[places[i]->cell] = epoch_;
    }
    return distinct;
  }
  const PointPlace** cells() { return cells_.data(); }

 private:
  void next_epoch() {
    if (++epoch_ != 0) return;
    std::fill(stamp_.begin(), stamp_.end(), 0);
    epoch_ = 1;
  }
  int find_by_stamp(const PointPlace* places, const std::int32_t* points, int count) {
    next_epoch();
    const PointPlace** cells = cells_.data();
    std::uint32_t* stamp = stamp_.data();
    int distinct = 0;
    for (int i = 0; i < count; ++i) {
      const PointPlace* place = places + points[i];
      cells[distinct] = place;
      distinct += stamp[place->cell] != epoch_;
      stamp[place->cell] = epoch_;
    }
    return distinct;
  }

  std::vector<std::uint32_t> stamp_;  // [R·C] the last net that met the cell
  std::uint32_t epoch_ = 0;
  std::vector<const PointPlace*> cells_;
};

}  // namespace placement
