// The busiest gcells of both congestion maps from one look at all routes, without the maps: in whole numbers, eight gcells at
// a time. The value itself is worked out only for gcells that may count.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "cost/grid_cost.hpp"
#include "cost/macro_cover.hpp"
#include "cost/routing.hpp"

namespace placement {

class CongestionScan {
 public:
  explicit CongestionScan(const Canvas& canvas);

  // Whether demands of whole tracks, at most `most_demand` in a gcell, are small enough.
  bool fits(double most_demand) const;

  // The blockage changed everywhere, or in `box`.
  void all_changed() { limit_ = std::numeric_limits<double>::quiet_NaN(); }
  void block_changed(const CellBox& box);

  // Writes the values from `limit` on to `to`, the vertical map's first, each map's line by line; returns how many. `to` has
  // space for all. The values are GridCost's, bit for bit, where the demands fit.
  int find(const WholeRouteSteps& steps, const MacroCover& cover, double limit, double* to);
  // Writes all values as of the last find(): the vertical map [R, C], then the horizontal one [C, R].
  void write(double* maps) const;

 private:
  struct Side {  // the vertical or the horizontal map, its lines filled up to `padded` gcells
    GridAxis axis;
    int padded;
    std::vector<std::int32_t> shares;  // [padded]
    std::vector<std::int32_t> beyond;  // [lines, padded] in units; a gcell whose sum is not more is below the limit
    std::vector<double> blocked;       // [lines, padded] of the capacity
    std::vector<std::int32_t> shared;  // some lines with `reach` empty gcells and more on each side
    std::vector<std::int32_t> sums;    // [lines, padded] demand, smoothed, in units
    std::vector<std::uint8_t> marks;   // [lines · padded / 8, rounded up to 8] bit i: the sum i of the eight may reach the limit
  };

  Side make_side(const GridAxis& axis) const;
  void take_limit(const MacroCover& cover, double limit);
  void take_block(Side& side, const double* block, int line, int first, int last) const;
  template <int kReach>
  void sum_up(Side& side, const std::int32_t* steps);
  int pick(const Side& side, double limit, double* to) const;

  int reach_;
  Side sides_[2];
  double limit_ = std::numeric_limits<double>::quiet_NaN();  // of beyond
  std::vector<CellBox> changed_;
  std::vector<std::int32_t> running_;  // a line
};

}  // namespace placement
