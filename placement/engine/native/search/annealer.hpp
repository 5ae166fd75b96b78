// Simulated annealing on the exact proxy cost.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cost/incremental.hpp"
#include "search/search_moves.hpp"
#include "soft/soft_placer.hpp"

namespace placement {

using PerKind = std::array<double, kMoveKinds>;

// What became of the moves of each kind.
struct MoveTally {
  std::array<std::int64_t, kMoveKinds> drawn{}, evaluated{}, accepted{};
  PerKind saved{};  // proxy cost, summed over the accepted moves that lowered it
};

// All that the next move depends on, beside the placement: with both, a search goes on as if it had never stopped.
struct AnnealerState {
  std::uint64_t random = 0;
  std::int64_t moves = 0;      // drawn so far
  PerKind reach{};             // gcells' sides
  PerKind share{};             // of the draws
  PerKind recent_drawn{}, recent_accepted{}, recent_worth{};
};

// One per thread. The same start, options, seed and calls give the same moves.
class Annealer {
 public:
  Annealer(const Annealer&) = delete;
  Annealer& operator=(const Annealer&) = delete;
  // Throws std::invalid_argument where a movable hard macro of the start overlaps another or leaves the canvas.
  Annealer(std::shared_ptr<const Design> design, const double* x, const double* y, const std::int8_t* orientation,
           const Weights& weights, const MoveOptions& options, std::uint64_t seed);

  // How often each kind is drawn, up to a common factor; kinds of weight 0 never are. `adaptive`: kinds that are worth
  // more are drawn more often, within a factor.
  void set_mix(const PerKind& weights, bool adaptive);

  // Draws so many moves while the temperature, in proxy cost, goes from `hot` to `cold` geometrically (0: only what
  // does not cost).
  void run(std::int64_t moves, double hot, double cold);

  // Goes on from another placement; the best so far stays unless this one is better. Throws as the constructor does.
  void restart(const double* x, const double* y, const std::int8_t* orientation);
  // Has the placer place the soft macros anew; keeps that only if it is better. Returns whether.
  bool replace_soft(SoftPlacer& placer);

  const IncrementalCost& cost() const { return cost_; }
  double best_cost() const { return best_cost_; }
  const std::vector<double>& best_x() const { return best_x_; }
  const std::vector<double>& best_y() const { return best_y_; }
  const std::vector<std::int8_t>& best_orientation() const { return best_orientation_; }

  const MoveTally& tally() const { return tally_; }
  AnnealerState state() const;
  void set_state(const AnnealerState& state);

 private:
  void require_legal() const;
  void keep_if_best();
  void mark(int node);
  MoveKind pick();
  void adapt();
  void set_cumulative();

  std::shared_ptr<const Design> design_;
  IncrementalCost cost_;
  MoveDrawer drawer_;
  Random random_;
  std::int64_t moves_ = 0;
  PerKind base_{}, share_{}, cumulative_{};
  bool adaptive_ = false;
  PerKind recent_drawn_{}, recent_accepted_{}, recent_worth_{};
  MoveTally tally_;

  double best_cost_;
  std::vector<double> best_x_, best_y_;
  std::vector<std::int8_t> best_orientation_;
  std::vector<std::int32_t> changed_;     // nodes that may stand elsewhere than in the best
  std::vector<std::uint8_t> is_changed_;  // [N]
};

}  // namespace placement
