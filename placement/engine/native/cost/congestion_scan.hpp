// The busiest gcells of both congestion maps from one look at all routes, without the maps: in whole numbers, eight gcells at
// a time, and only for those that may count the value itself.
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
  // room for all and eight more. The values are GridCost's, bit for bit, where the demands fit.
  int find(const WholeRouteSteps& steps, const MacroCover& cover, double limit, double* to);

 private:
  struct Side {  // the vertical or the horizontal map, its lines filled up to `padded` gcells
    GridAxis axis;
    int padded;
    std::vector<std::int32_t> shares;  // [padded]
    std::vector<std::int32_t> beyond;  // [lines, padded] what a gcell reaches the limit with is more than this, in parts
    std::vector<double> blocked;       // [lines, padded] of the capacity; NaN in gcells that are not there
    std::vector<std::int32_t> shared;  // some lines with `reach` empty gcells and more on each side
  };

  Side make_side(const GridAxis& axis) const;
  void take_limit(const MacroCover& cover, double limit);
  void take_block(Side& side, const double* block, int line, int first, int last) const;
  template <int kReach>
  int find_in(Side& side, const std::int32_t* steps, double limit, double* to);

  int reach_;
  Side sides_[2];
  double limit_ = std::numeric_limits<double>::quiet_NaN();  // of beyond
  std::vector<CellBox> changed_;
  std::vector<std::int32_t> running_;  // a line
};

}  // namespace placement
