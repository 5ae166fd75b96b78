// From the maps to the density and the congestion cost.
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
  int lines, length;   // the demand runs on from line to line; smoothing is along a line
  double block_share;  // of the capacity that a macro over the whole side takes
  std::vector<double> shares;  // [length] what each of the gcells that share a gcell's demand gets of it, in units
  double per_unit;     // demand over capacity of one unit
  bool whole_shares;   // the shares are whole numbers, so that sums of whole demands are exact
};

// Gcells on each side that share a gcell's demand.
int smoothing_reach(const Canvas& canvas);
GridAxis vertical_axis(const Canvas& canvas);
GridAxis horizontal_axis(const Canvas& canvas);

// Smooths a line: map[i] = what the gcells within `reach` of i share with it, and what is blocked there. shared[i] is what
// gcell i − reach shares, in units, 0 beyond the line; map, blocked [count].
void smooth_line(const double* shared, int reach, const GridAxis& axis, const double* blocked, int count, double* map);

// How many gcells count: of the densest, and of the busiest of both congestion maps.
int counted_gcells(const Canvas& canvas);
// The density cost of a grid of fewer than ten gcells. density [R, C].
double density_cost_of_few(const std::vector<double>& density);

// Owns its workspace; a pure function of what it is given: it works out anew only what differs from the last call's.
class GridCost {
 public:
  explicit GridCost(const Canvas& canvas);

  // density [R, C].
  double density_cost(const std::vector<double>& density);
  double congestion_cost(const RouteSteps& steps, const MacroCover& cover);

  // Demand over capacity as of the last congestion_cost: vertical [R, C], horizontal [C, R].
  const double* vertical() const { return congestion_.data(); }
  const double* horizontal() const { return congestion_.data() + cells_; }

 private:
  void fill(const GridAxis& axis, const double* steps, const double* block, int at);

  int cells_, reach_;
  GridAxis vertical_axis_, horizontal_axis_;
  DensestMean densest_;
  LargestMean busiest_;
  std::vector<double> congestion_;
  std::vector<double> demand_, blocked_;  // that congestion_ was made of
  bool is_filled_ = false;
  std::vector<double> running_;   // one line
  std::vector<double> shared_;    // one line with `reach_` empty gcells on each side
};

}  // namespace placement
