// The netlist as used by the cost: pins that always share a position form one point, nets that connect the same points
// from the same driver form one net. Built once per design (shared_compact_nets), immutable, shared by all evaluators.
// Axes: N nodes, Q points, M merged nets, K point incidences of the merged nets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/design.hpp"
#include "cost/pair.hpp"

namespace placement {

// Rounds to multiples of a power of two, so that sums below 2^52 of them are exact: the order of additions and removals
// does not matter, and an incremental sum is bit-identical to a fresh one.
class Rounder {
 public:
  // `bound`: the largest sum of absolute values that must be exact.
  explicit Rounder(double bound);
  double operator()(double value) const { return (value + magic_) - magic_; }
  double quantum() const { return quantum_; }

 private:
  double quantum_, magic_;
};

struct CompactNets {
  explicit CompactNets(const Design& design);

  // Points, grouped by node: node n has points [point_start[n], point_start[n + 1]).
  std::vector<std::int32_t> point_start;     // [N+1]
  std::vector<std::int32_t> point_node;      // [Q]
  std::vector<double> point_dx, point_dy;    // [Q] µm from the node's centre, in orientation N
  // Merged nets of at least two points, sorted by number of points; the driver's point comes first.
  std::vector<std::int32_t> net_start;       // [M+1]
  std::vector<std::int32_t> net_points;      // [K]
  std::vector<double> wire_weight;           // [M] summed weights, for the wirelength
  std::vector<double> route_weight;          // [M] summed max(weight, 1), for the routing, rounded: see below
  double per_wirelength = 0;                 // 1/µm: factor from wirelength to its cost
  Rounder length_rounder{1.0};

  // Contribution of a net of this half perimeter, µm, to the wirelength; sums are exact.
  double weighted_length(int net, double half_perimeter) const {
    return length_rounder(wire_weight[net] * half_perimeter);
  }

  int points() const { return static_cast<int>(point_node.size()); }
  int nets() const { return static_cast<int>(wire_weight.size()); }
  // Number of points of a net.
  int size(int net) const { return net_start[net + 1] - net_start[net]; }
};

// The design's compact nets, made at the first call. The design must be complete by then.
std::shared_ptr<const CompactNets> shared_compact_nets(const Design& design);

// Positions of the points of the nets, and the lengths of nets.

// Position of a point and its gcell.
struct alignas(32) PointPlace {  // two to a cache line
  double x, y;  // µm
  std::int32_t column, row;
  std::int32_t cell;    // row · C + column
  std::int32_t pillar;  // column · R
};

// Computes the positions of nodes' points. Immutable.
class PointPlacer {
 public:
  PointPlacer(const Design& design, const CompactNets& nets);

  // Writes the positions of a node's points, from places[point_start[node]] on.
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
      // Clamped to [0, last] first, so that truncation is the floor.
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

// Half perimeter of a net of `count` points, µm.
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
