// The chip cost's own parts: room for the cells, and tracks for the wires. All parts are lengths of wire over the same
// length as the wirelength's cost, so that their weights say what a µm of each is worth.
#pragma once

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
  // Adds (sign 1) or takes away (sign −1) a macro of `width` × `height` µm centred at x, y.
  void add_macro(double x, double y, double width, double height, bool hard, double sign) {
    const double scale = hard ? 1.0 : soft_side_;
    room_.add(x, y, scale * width, scale * height, hard, sign);
    if (hard) wires_.block(x, y, width, height, sign);
  }
  WireSpread& wires() { return wires_; }
  const WireSpread& wires() const { return wires_; }

  // Wire that is added where cells must make way, were every pin of a cluster to follow its area.
  double density_cost() { return room_.way() * per_way_; }
  // Wire beyond the usable tracks.
  double congestion_cost() { return wires_.excess() * per_wirelength_; }

 private:
  CellRoom room_;
  WireSpread wires_;
  double soft_side_, per_way_, per_wirelength_;
};

}  // namespace placement
