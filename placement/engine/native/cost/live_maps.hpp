// Density and congestion maps while macros move: a proposal costs time for the gcells that it changes, or for one pass
// over all of them, and can be undone. Values and costs are bit-identical to those of GridCost.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/congestion_scan.hpp"
#include "cost/grid_cost.hpp"
#include "cost/largest.hpp"
#include "cost/macro_cover.hpp"
#include "cost/routing.hpp"

namespace placement {

class LiveMaps {
 public:
  explicit LiveMaps(const Canvas& canvas);

  // Whether integer demands of at most `most_demand` per gcell can be scanned as integers.
  bool scans_whole(double most_demand) const { return scan_.fits(most_demand); }

  // Restarts from other steps and another cover.
  void reset(const RouteSteps& steps, const MacroCover& cover);
  // Begins a proposal and accepts the previous one.
  void begin();
  // The cover changed in `box`, by a proposal or its undoing.
  void cover_changed(const CellBox& box);
  // A proposal changed the blockage in `box`.
  void block_changed(const CellBox& box);
  // Applies the changes since begin(): the steps' log, and the cover's boxes.
  void update(const RouteSteps& steps, const MacroCover& cover);
  // The same from all steps without a log: faster if most of them changed.
  void update_all(const RouteSteps& steps, const MacroCover& cover);
  // The same in integers: finds only the values that count. draw() then updates the maps.
  void update_all(const WholeRouteSteps& steps, const MacroCover& cover);
  void draw();
  // draw() does not update the demands: call this with the steps before a proposal that update() applies.
  void take_demands(const RouteSteps& steps);
  // Restores the state at begin(), except for the cover.
  void undo();

  double density_cost(const MacroCover& cover);
  double congestion_cost();
  // Demand over capacity: vertical [R, C], horizontal [C, R].
  const double* vertical() const { return congestion_.data(); }
  const double* horizontal() const { return congestion_.data() + cells_; }

 private:
  struct Side {  // the vertical or the horizontal map
    GridAxis axis;
    int at;                       // offset of the map in congestion_
    int words;                    // words of 64 gcells per line
    std::vector<double> demand;      // [lines, length]
    std::vector<double> old_demand;  // before draw()
    std::vector<std::uint64_t> changed;     // [lines, words] gcells whose congestion must be recomputed
    std::vector<std::int32_t> first, last;  // [length] range of lines in which the demand at a position may change
    std::vector<std::int32_t> places;       // those positions
  };
  struct OldDemand {
    std::int32_t side, index;
    double demand;
  };
  struct OldRun {  // values of congestion_ from `start` on
    std::int32_t start, count;
  };

  Side make_side(GridAxis axis, int at) const;
  void mark(Side& side, int line, int first, int last);
  int find_places(Side& side, const StepLog& log, const double* steps);
  void run_demand(int side, const double* steps);
  void set_demand(int side, int line, int place, double demand);
  void draw_side(Side& side, const double* block);
  void sum_up(Side& side, const double* steps);
  void forget_changes();
  void refill(Side& side, const double* block);
  void refill_run(Side& side, const double* block, int line, int first, int end);

  int columns_, cells_, reach_;
  Side sides_[2];
  DensestMean densest_;
  LargestMean busiest_, scanned_, found_;  // of the changed gcells, of all gcells, of all by scan_
  std::vector<double> congestion_, old_congestion_;  // [2, R·C]; before draw()
  // Of the proposal, in the order of change; each gcell at most once, so the space suffices for all.
  std::vector<OldDemand> old_demand_;
  std::vector<OldRun> old_runs_;
  std::vector<double> old_values_;  // of the runs, concatenated
  int demands_ = 0, runs_ = 0, values_ = 0;
  std::vector<CellBox> blocks_;  // changed by the proposal
  CongestionScan scan_;
  double found_congestion_ = 0;  // result of update_all() in integers
  bool is_scan_ = false;         // the proposal used update_all()
  bool is_whole_ = false;        // the proposal used update_all() in integers
  bool is_drawn_ = false;        // the same, and draw() updated the maps
  std::vector<double> shared_;   // shares of the gcells of a line for each neighbour, between `reach` zeros on either
                                 // side
};

}  // namespace placement
