// The density and congestion maps while macros move: a proposal costs what the gcells cost that it changes, or what one
// look at all of them costs, and can be taken back. The values and the costs are those of GridCost, bit for bit.
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

  // Whether demands of whole tracks, at most `most_demand` in a gcell, can be scanned as whole numbers.
  bool scans_whole(double most_demand) const { return scan_.fits(most_demand); }

  // Starts anew from other steps and another cover.
  void reset(const RouteSteps& steps, const MacroCover& cover);
  // Begins a proposal; what came before stays.
  void begin();
  // The cover changed in `box`, be it by a proposal or by taking one back.
  void cover_changed(const CellBox& box);
  // A proposal changed the blockage in `box`.
  void block_changed(const CellBox& box);
  // Takes in what changed since begin(): the steps' log, and the cover's boxes.
  void update(const RouteSteps& steps, const MacroCover& cover);
  // The same from all steps, which need no log: sooner done where most of them changed.
  void update_all(const RouteSteps& steps, const MacroCover& cover);
  // The same in whole numbers: finds only what counts. The maps follow if draw() is called.
  void update_all(const WholeRouteSteps& steps, const MacroCover& cover);
  void draw();
  // The demands do not follow draw(): call this with the steps before a proposal that update() takes in.
  void take_demands(const RouteSteps& steps);
  // Goes back to begin(), but for the cover.
  void undo();

  double density_cost(const MacroCover& cover);
  double congestion_cost();
  // Demand over capacity: vertical [R, C], horizontal [C, R].
  const double* vertical() const { return congestion_.data(); }
  const double* horizontal() const { return congestion_.data() + cells_; }

 private:
  struct Side {  // the vertical or the horizontal map
    GridAxis axis;
    int at;                       // of the map in congestion_
    int words;                    // of 64 gcells in a line
    std::vector<double> demand;      // [lines, length]
    std::vector<double> old_demand;  // before the maps were drawn
    std::vector<std::uint64_t> changed;     // [lines, words] gcells whose congestion is to be worked out anew
    std::vector<std::int32_t> first, last;  // [length] lines between which the demand of a place in the line may change
    std::vector<std::int32_t> places;       // those places
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
  LargestMean busiest_, scanned_, found_;  // of what changed, of all gcells, of all by scan_
  std::vector<double> congestion_, old_congestion_;  // [2, R·C]; before the maps were drawn
  // Of the proposal, in the order of change; each gcell at most once, so there is space for all.
  std::vector<OldDemand> old_demand_;
  std::vector<OldRun> old_runs_;
  std::vector<double> old_values_;  // of the runs, one after the other
  int demands_ = 0, runs_ = 0, values_ = 0;
  std::vector<CellBox> blocks_;  // that the proposal changed
  CongestionScan scan_;
  double found_congestion_ = 0;  // by update_all() in whole numbers
  bool is_scan_ = false;         // by update_all()
  bool is_whole_ = false;        // that, in whole numbers
  bool is_drawn_ = false;        // that, and the maps are of the proposal
  std::vector<double> shared_;   // what the gcells of a line share with each near them, after and before `reach` zeros
};

}  // namespace placement
