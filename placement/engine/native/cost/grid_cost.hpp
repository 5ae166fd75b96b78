// Density and congestion cost from the maps.
#pragma once

#include <vector>

#include "common/design.hpp"
#include "cost/densest.hpp"
#include "cost/largest.hpp"
#include "cost/macro_cover.hpp"
#include "cost/routing.hpp"

namespace placement {

// One of the two maps of demand.
struct GridAxis {
  int lines, length;   // the demand runs across the lines; smoothing is along a line
  double block_share;  // share of the capacity that a macro over the whole side blocks
  std::vector<double> shares;  // [length] share of a gcell's demand for each gcell within reach, in units
  double per_unit;     // demand over capacity of one unit
  bool whole_shares;   // the shares are integers, so that sums of integer demands are exact
};

// Number of gcells on each side that share a gcell's demand.
int smoothing_reach(const Canvas& canvas);
GridAxis vertical_axis(const Canvas& canvas);
GridAxis horizontal_axis(const Canvas& canvas);

// Smooths a line: map[i] = shares from the gcells within `reach` of i, plus the blockage there. shared[i] is the share
// from gcell i − reach, in units, 0 beyond the line; map, blocked [count].
void smooth_line(const double* shared, int reach, const GridAxis& axis, const double* blocked, int count, double* map);

// Number of gcells that count: of the densest, and of the busiest of both congestion maps.
int counted_gcells(const Canvas& canvas);
// Density cost of a grid of fewer than ten gcells. density [R, C].
double density_cost_of_few(const std::vector<double>& density);

// Owns its workspace; a pure function of its arguments that recomputes only what differs from the last call.
class GridCost {
 public:
  explicit GridCost(const Canvas& canvas);

  // density [R, C].
  double density_cost(const std::vector<double>& density);
  double congestion_cost(const RouteSteps& steps, const MacroCover& cover);

  // Demand over capacity at the last congestion_cost: vertical [R, C], horizontal [C, R].
  const double* vertical() const { return congestion_.data(); }
  const double* horizontal() const { return congestion_.data() + cells_; }

 private:
  void fill(const GridAxis& axis, const double* steps, const double* block, int at);

  int cells_, reach_;
  GridAxis vertical_axis_, horizontal_axis_;
  DensestMean densest_;
  LargestMean busiest_;
  std::vector<double> congestion_;
  std::vector<double> demand_, blocked_;  // inputs of congestion_
  bool is_filled_ = false;
  std::vector<double> running_;   // workspace of one line
  std::vector<double> shared_;    // one line with `reach_` empty gcells on each side
};

}  // namespace placement
