// The netlist as the cost sees it: pins that always share a place become one point, nets that join the same points
// from the same driver become one net. Built once per design (shared_compact_nets), immutable, shared by every evaluator.
// Axes: N nodes, Q points, M merged nets, K point incidences of the merged nets.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/design.hpp"

namespace placement {

// Rounds to multiples of a power of two, so that sums below 2^52 of them are exact: the order of adding and taking
// away leaves no trace, and an incremental sum equals a fresh one bit for bit.
class Rounder {
 public:
  // `bound`: the largest sum, of absolute values, that must be exact.
  explicit Rounder(double bound);
  double operator()(double value) const { return (value + magic_) - magic_; }
  double quantum() const { return quantum_; }

 private:
  double quantum_, magic_;
};

struct CompactNets {
  explicit CompactNets(const Design& design);

  // Points, those of one node together: node n has points [point_start[n], point_start[n + 1]).
  std::vector<std::int32_t> point_start;     // [N+1]
  std::vector<std::int32_t> point_node;      // [Q]
  std::vector<double> point_dx, point_dy;    // [Q] µm from the node's centre, in orientation N
  // Merged nets of at least two points, by rising number of points; the driver's point first.
  std::vector<std::int32_t> net_start;       // [M+1]
  std::vector<std::int32_t> net_points;      // [K]
  std::vector<double> wire_weight;           // [M] summed weights, for the wirelength
  std::vector<double> route_weight;          // [M] summed max(weight, 1), for the routing, rounded: see below
  double per_wirelength = 0;                 // 1/µm: makes the wirelength its cost
  Rounder length_rounder{1.0};

  // What a net of this half perimeter, µm, adds to the wirelength; sums are exact.
  double weighted_length(int net, double half_perimeter) const {
    return length_rounder(wire_weight[net] * half_perimeter);
  }

  int points() const { return static_cast<int>(point_node.size()); }
  int nets() const { return static_cast<int>(wire_weight.size()); }
  // Points of a net.
  int size(int net) const { return net_start[net + 1] - net_start[net]; }
};

// The design's own, made at the first call. The design must be complete by then.
std::shared_ptr<const CompactNets> shared_compact_nets(const Design& design);

}  // namespace placement
