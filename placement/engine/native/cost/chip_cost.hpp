// The chip cost's own parts: room for the cells, and tracks for the wires. All parts are lengths of wire over the same
// length as the wirelength's cost, so that their weights say what a µm of each is worth.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/design.hpp"
#include "cost/cell_room.hpp"
#include "cost/compact_nets.hpp"
#include "cost/wire_spread.hpp"

namespace placement {

class ChipCost {
 public:
  ChipCost(const Design& design, const CompactNets& nets);

  void clear();
  // Adds (sign 1) or takes away (sign −1) a macro centred at x, y.
  void add_macro(const Design& design, int node, double x, double y, std::int8_t orientation, double sign) {
    const double width = design.width_of(node, orientation), height = design.height_of(node, orientation);
    if (design.kind_of(node) != Kind::hard) {
      room_.add(x, y, soft_side_ * width, soft_side_ * height, false, sign);
      return;
    }
    room_.add(x, y, width + 2 * clear_of(design, design.constraints.halo_across(node, orientation)),
              height + 2 * clear_of(design, design.constraints.halo_up(node, orientation)), true, sign);
    wires_.block(x, y, width, height, sign);
  }
  WireSpread& wires() { return wires_; }
  const WireSpread& wires() const { return wires_; }

  // Wire that is added where cells must make way, were every pin of a cluster to follow its area.
  double density_cost() { return room_.way() * per_way_; }
  // Wire beyond the usable tracks.
  double congestion_cost() { return wires_.excess() * per_wirelength_; }

  // What the density cost would rise by were a soft macro that stands at x, y taken to a point: see CellRoom::price. In µm³;
  // times density_per_way() it is a cost.
  void price_room(const Design& design, int node, double x, double y, const float* xs, int columns, const float* ys,
                  int rows, float* prices) const {
    room_.price({x, y, soft_side_ * design.node_width[node], soft_side_ * design.node_height[node]}, xs, columns, ys, rows,
                prices);
  }
  double density_per_way() const { return per_way_; }

  // Congestion cost of so much wire beyond the tracks, µm.
  double congestion_of(double excess) const { return excess * per_wirelength_; }

  // µm from a hard macro that cells keep: power straps stand there, or a halo is asked for.
  static double clear_of(const Design& design, double halo) { return std::max(design.straps, halo); }

 private:
  CellRoom room_;
  WireSpread wires_;
  double soft_side_, per_way_, per_wirelength_;
};

}  // namespace placement
