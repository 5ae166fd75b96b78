// Finds the busiest gcells of both congestion maps in one pass over all routes, without the maps: in integers, eight
// gcells at a time. The value itself is computed only for gcells that may count.
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

  // Whether integer demands of at most `most_demand` per gcell are small enough.
  bool fits(double most_demand) const;

  // The blockage changed everywhere, or in `box`.
  void all_changed() { limit_ = std::numeric_limits<double>::quiet_NaN(); }
  void block_changed(const CellBox& box);

  // Writes the values that are at least `limit` to `to`, those of the vertical map first, each map line by line;
  // returns their number. `to` has space for all. The values are bit-identical to GridCost's if the demands fit.
  int find(const WholeRouteSteps& steps, const MacroCover& cover, double limit, double* to);
  // Writes all values of the last find(): the vertical map [R, C], then the horizontal one [C, R].
  void write(double* maps) const;

 private:
  struct Side {  // the vertical or the horizontal map, lines padded to `padded` gcells
    GridAxis axis;
    int padded;
    std::vector<std::int32_t> shares;  // [padded]
    std::vector<std::int32_t> beyond;  // [lines, padded] in units; a gcell whose sum is not larger is below the limit
    std::vector<double> blocked;       // [lines, padded] share of the capacity
    std::vector<std::int32_t> shared;  // some lines with at least `reach` empty gcells on each side
    std::vector<std::int32_t> sums;    // [lines, padded] demand, smoothed, in units
    std::vector<std::uint8_t> marks;   // [lines · padded / 8, rounded up to 8] bit i: sum i of the eight may count
  };

  Side make_side(const GridAxis& axis) const;
  void take_limit(const MacroCover& cover, double limit);
  void take_block(Side& side, const double* block, int line, int first, int last) const;
  template <int kReach>
  void sum_up(Side& side, const std::int32_t* steps);
  int pick(const Side& side, double limit, double* to) const;

  int reach_;
  Side sides_[2];
  double limit_ = std::numeric_limits<double>::quiet_NaN();  // limit of `beyond`
  std::vector<CellBox> changed_;
  std::vector<std::int32_t> running_;  // workspace of one line
};

}  // namespace placement
