// Simulated annealing on the exact cost.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cost/incremental.hpp"
#include "search/moves.hpp"
#include "soft/soft_placer.hpp"

namespace placement {

// Counts of the proposals of each move.
struct MoveTally {
  explicit MoveTally(std::size_t moves) : drawn(moves), evaluated(moves), accepted(moves), saved(moves) {}
  std::vector<std::int64_t> drawn, evaluated, accepted;
  PerMove saved;  // decrease of the cost, summed over the accepted proposals that lowered it
};

// The next move depends only on this state and the placement: a search restored from both repeats itself exactly.
struct AnnealerState {
  std::uint64_t random = 0;
  std::int64_t moves = 0;      // proposed so far
  PerMove reach;               // in gcell sides
  PerMove share;               // of all proposals, not normalised
  PerMove recent_drawn, recent_accepted, recent_saved;
};

// Not thread-safe: one per thread. Equal start, options, seed and calls give equal moves.
class Annealer {
 public:
  Annealer(const Annealer&) = delete;
  Annealer& operator=(const Annealer&) = delete;
  // Throws std::invalid_argument if a movable hard macro of the start overlaps another or leaves the canvas.
  Annealer(std::shared_ptr<const Design> design, const double* x, const double* y, const std::int8_t* orientation,
           const Weights& weights, const MoveOptions& options, std::uint64_t seed);

  // Sets the relative frequencies of the moves, which replace those of the table of moves; a move of weight 0 is never
  // proposed. Moves that lower the cost more are then proposed more often, within bounds.
  void set_mix(const PerMove& weights);

  // Proposes `moves` moves at a temperature in units of the cost; at 0 only moves that do not raise the cost are
  // accepted. `most`: bound of the cost without tidiness; above it, only moves that lower that cost are accepted.
  void run(std::int64_t moves, double temperature, double most = std::numeric_limits<double>::infinity());

  // Calls Tidiness::grow_clear; the best placement, judged by another rectangle, is replaced by the current one.
  void grow_clear();

  // Continues from another placement; keeps the best one unless this one is better. Throws as the constructor does.
  void restart(const double* x, const double* y, const std::int8_t* orientation);
  // The same, but discards the best placement.
  void begin_anew(const double* x, const double* y, const std::int8_t* orientation);
  // Places the soft macros again; keeps the result only if it is better. Returns whether it is.
  bool replace_soft(SoftPlacer& placer);

  const IncrementalCost& cost() const { return *cost_; }
  double best_cost() const { return best_cost_; }
  const std::vector<double>& best_x() const { return best_x_; }
  const std::vector<double>& best_y() const { return best_y_; }
  const std::vector<std::int8_t>& best_orientation() const { return best_orientation_; }

  const MoveTally& tally() const { return tally_; }
  AnnealerState state() const;
  void set_state(const AnnealerState& state);

 private:
  double plain_cost() const { return cost_->costs().total - cost_->weights().tidy * cost_->costs().tidy_cost; }
  void require_legal() const;
  void keep_if_best();
  void mark(int node);
  int pick();
  void adapt();
  void refresh(bool whole);
  void set_cumulative();

  std::shared_ptr<const Design> design_;
  std::unique_ptr<IncrementalCost> cost_;
  MoveProposer proposer_;
  Random random_;
  std::int64_t moves_ = 0;
  PerMove base_, share_, cumulative_;
  PerMove recent_drawn_, recent_accepted_, recent_saved_;
  MoveTally tally_;

  double best_cost_;
  std::vector<double> best_x_, best_y_;
  std::vector<std::int8_t> best_orientation_;
  std::vector<std::int32_t> changed_;     // nodes that may differ from the best placement
  std::vector<std::uint8_t> is_changed_;  // [N]
};

// Extends make_soft_placer by "annealed", which lowers the cost of these weights.
std::unique_ptr<SoftPlacer> make_soft_placer(const std::string& name, std::shared_ptr<const Design> design,
                                             const Weights& weights);

}  // namespace placement
