// Draws a target position for a soft macro: positions all over a window around it are priced at once, and one is drawn
// with its Boltzmann weight at the annealing temperature. Prices omit some of the cost, so a target has to be confirmed
// by the exact cost.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/random.hpp"
#include "cost/incremental.hpp"
#include "soft/analytic_nets.hpp"

namespace placement {

class TargetDrawer {
 public:
  TargetDrawer(const TargetDrawer&) = delete;
  TargetDrawer& operator=(const TargetDrawer&) = delete;
  virtual ~TargetDrawer() = default;

  // Reads the whole placement.
  virtual void reset();
  // Updates the prices of gcells; call it every few hundred moves.
  virtual void refresh() {}
  // Called after a macro has moved.
  virtual void moved(const NodeMove& to);

  // Draws a position in µm for soft macro number `soft` at a temperature in units of the cost; returns whether it
  // differs from the macro's position.
  virtual bool draw(int soft, double temperature, Random& random, double* x, double* y) = 0;

 protected:
  // `soft`: the movable soft macros. The placement is that in `cost`.
  TargetDrawer(const IncrementalCost& cost, std::vector<std::int32_t> soft);

  // Draws one of prices [rows, stride], in the first `columns`, by its Boltzmann weight.
  std::pair<int, int> draw_column_and_row(const float* prices, int stride, int columns, int rows, double temperature,
                                          Random& random);

  const IncrementalCost& cost_;
  const Design& design_;
  std::vector<std::int32_t> soft_;       // [S]
  std::vector<std::int32_t> number_of_;  // [N] of a movable soft macro, or −1
  SoftNets nets_;

 private:
  std::vector<std::pair<double, std::int32_t>> likely_;  // workspace: cumulative weights, positions
};

// Creates the drawer for the cost of `cost`.
std::unique_ptr<TargetDrawer> make_target_drawer(const IncrementalCost& cost, std::vector<std::int32_t> soft);

}  // namespace placement
