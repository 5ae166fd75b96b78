// The chip cost's own terms: whitespace for the cells, and tracks for the wires. All terms are lengths of wire divided
// by the same length as the wirelength cost, so that their weights are prices per µm.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/design.hpp"
#include "cost/cell_overflow.hpp"
#include "cost/compact_nets.hpp"
#include "cost/wire_spread.hpp"

namespace placement {

class ChipCost {
 public:
  ChipCost(const Design& design, const CompactNets& nets);

  void clear();
  // Adds (sign 1) or removes (sign −1) a macro centred at x, y.
  void add_macro(const Design& design, int node, double x, double y, std::int8_t orientation, double sign) {
    const double width = design.width_of(node, orientation), height = design.height_of(node, orientation);
    if (design.kind_of(node) != Kind::hard) {
      overflow_.add(x, y, soft_side_ * width, soft_side_ * height, false, sign);
      return;
    }
    const Halo halo = design.constraints.halo_of(node, orientation);
    const double left = clear_of(design, halo.left()), right = clear_of(design, halo.right());
    const double low = clear_of(design, halo.low()), high = clear_of(design, halo.high());
    overflow_.add(x + (right - left) / 2, y + (high - low) / 2, width + (left + right), height + (low + high), true, sign);
    wires_.block(x, y, width, height, sign);
  }
  const CellOverflow& overflow() const { return overflow_; }
  WireSpread& wires() { return wires_; }
  const WireSpread& wires() const { return wires_; }

  // Wire that displaced cells add, if every pin of a cluster moved with its area.
  double density_cost() { return overflow_.displacement() * per_displacement_; }
  // Wire beyond the usable tracks.
  double congestion_cost() { return wires_.excess() * per_wirelength_; }

  // Rise of the density cost if a soft macro moved from x, y to a point, as CellOverflow::price. In µm³; multiplied by
  // density_per_displacement(), it is a cost.
  void price_overflow(const Design& design, int node, double x, double y, const float* xs, int columns, const float* ys,
                  int rows, float* prices) const {
    overflow_.price({x, y, soft_side_ * design.node_width[node], soft_side_ * design.node_height[node]}, xs, columns, ys, rows,
                prices);
  }
  double density_per_displacement() const { return per_displacement_; }

  // Congestion cost of `excess` µm of wire beyond the tracks.
  double congestion_of(double excess) const { return excess * per_wirelength_; }

  // Distance in µm between a hard macro and cells: the PDN channel or the halo, whichever is wider.
  static double clear_of(const Design& design, double halo) { return std::max(design.pdn_channel, halo); }

 private:
  CellOverflow overflow_;
  WireSpread wires_;
  double soft_side_, per_displacement_, per_wirelength_;
};

}  // namespace placement
