// A lower bound of the congestion cost after a proposal, at a fraction of the time to compute the cost.
//
// The mean of the k largest values of a map is the largest mean of any k of its values. The currently busiest gcells
// therefore give a bound for any move: their mean after it. The bound is linear in demand and blockage, so each gcell
// has a price, and a route costs a difference of prefix sums of prices.
#pragma once

#include <cstdint>
#include <vector>

#include "common/design.hpp"
#include "cost/live_maps.hpp"
#include "cost/macro_cover.hpp"
#include "cost/route_shapes.hpp"
#include "cost/cost.hpp"

namespace placement {

// Sum of the costs of routes at given prices.
class RoutePrices : public RouteShapes<RoutePrices> {
 public:
  explicit RoutePrices(const Canvas& canvas)
      : RouteShapes(canvas), horizontal_(canvas.cells(), 0.0), vertical_(canvas.cells(), 0.0) {}

  // Proxy cost of one more track from a column on, in a row, [C, R]; from a row on, in a column, [R, C].
  std::vector<double>& horizontal() { return horizontal_; }
  std::vector<double>& vertical() { return vertical_; }

  // Cost of the routes added since the last call.
  double take() {
    const double sum = sum_;
    sum_ = 0;
    return sum;
  }

 private:
  friend class RouteShapes<RoutePrices>;
  template <bool kLogged>
  void take_across(int, int row, int pillar, double change) {
    sum_ += change * horizontal_[pillar + row];
  }
  template <bool kLogged>
  void take_upward(int column, int, int level, double change) {
    sum_ += change * vertical_[level + column];
  }

  std::vector<double> horizontal_, vertical_;
  double sum_ = 0;
};

class CongestionFloor {
 public:
  CongestionFloor(const Canvas& canvas, const Weights& weights);

  // Whether a bound exists: prices and weights are not negative, and the grid has enough gcells.
  bool is_valid() const { return is_valid_; }

  // Selects the counted gcells by the maps.
  void renew(const LiveMaps& maps);
  // Weighted congestion cost of the maps.
  double current(const LiveMaps& maps) const;

  RoutePrices& routes() { return routes_; }
  // Cost of what a hard macro blocks.
  double block(const MacroCover& cover, double x, double y, double width, double height) const {
    return cover.block_price(x, y, width, height, vertical_block_.data(), horizontal_block_.data());
  }

 private:
  void price_side(const GridAxis& axis, int first, std::vector<double>& block, std::vector<double>& sums);

  int cells_, count_, reach_;
  GridAxis axes_[2];  // vertical, horizontal
  double price_;      // proxy cost of a counted gcell's congestion
  bool is_valid_;
  std::vector<std::int32_t> busy_;    // counted gcells, indices into [2, R·C]
  std::vector<double> vertical_block_, horizontal_block_;  // [R, C], [C, R] proxy cost of blocking a whole side
  RoutePrices routes_;
  std::vector<double> congestion_;    // [2, R·C] proxy cost of demand over capacity
  std::vector<double> line_, ranked_; // workspace
};

}  // namespace placement
