// Draws where a soft macro goes: every gcell of a window around it is priced at once, and a gcell is drawn with its
// Boltzmann weight at the annealing temperature. The prices are those of the proxy cost, some proposals old and without the
// steps of small nets' routes, so that a target is to be confirmed by the exact cost.
#pragma once

#include <cstdint>
#include <vector>

#include "common/random.hpp"
#include "cost/incremental.hpp"
#include "soft/analytic_maps.hpp"
#include "soft/analytic_nets.hpp"
#include "soft/analytic_window.hpp"

namespace placement {

class TargetDrawer {
 public:
  // `soft`: the movable soft macros. The placement is that in `cost`.
  TargetDrawer(const IncrementalCost& cost, std::vector<std::int32_t> soft);

  // Takes in the whole placement.
  void reset();
  // Takes in the maps as they stand. Between two calls, density follows moves and routes do not.
  void refresh();
  // A macro has moved.
  void moved(const NodeMove& to);

  // Draws a gcell for soft macro number `soft` at a temperature in proxy cost; returns whether it is another than the one
  // where it stands, and then its column and row.
  bool draw(int soft, double temperature, Random& random, int* column, int* row);

 private:
  SoftBox box_of(const NodeMove& at) const;

  const IncrementalCost& cost_;
  const Design& design_;
  std::vector<std::int32_t> soft_;       // [S]
  std::vector<std::int32_t> number_of_;  // [N] of a movable soft macro, or −1
  std::vector<SoftBox> boxes_;           // [N] of macros
  PriceMaps maps_;
  SoftNets nets_;
  PricedWindow window_;
  std::vector<std::pair<double, std::int32_t>> likely_;  // workspace: sums of weights, gcells of the window
};

}  // namespace placement
