// Random moves of hard and soft macros. Every move meets the design's constraints; moves of hard macros are legal by
// construction.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "search/hard_room.hpp"
#include "search/target_drawer.hpp"
#include "cost/incremental.hpp"
#include "common/random.hpp"

namespace placement {

enum class MoveKind : int {
  hard_shift,    // by a short distance, to any point
  hard_slide,    // along an axis, up to the next obstacle
  hard_align,    // to the centre of a block of gcells near by
  hard_jump,     // anywhere
  hard_pull,     // near another pin of one of its nets
  hard_abut,     // beside another hard macro
  hard_swap,     // exchanges two positions
  hard_permute,  // exchanges three or four positions cyclically
  hard_roll,     // moves one along its row or column; those in between close the gap
  hard_mirror,   // mirrors one (or rotates it, if allowed)
  hard_trade,    // exchanges places with the soft macros there
  soft_shift,    // by a short distance
  soft_step,     // to a neighbouring gcell
  soft_median,   // into the median interval of its nets
  soft_pull,     // near another pin of one of its nets
  soft_swap,     // exchanges two positions
  soft_hot,      // out of a congested gcell row or column
  soft_draw,     // to a place drawn by what those all around would cost
};
inline constexpr int kMoveKinds = 18;
const std::array<const char*, kMoveKinds>& move_names();

struct MoveOptions {
  double spacing = 0;     // least distance of hard macros in µm, where their halos ask for less
  bool rotate = false;    // allow orientations that swap width and height
  std::vector<Blockage> blockages;  // in addition to those of the design's constraints
};

// Proposes moves of the placement in an IncrementalCost. Not thread-safe. Allocates nothing per move once grown.
class MoveDrawer {
 public:
  MoveDrawer(const IncrementalCost& cost, const MoveOptions& options);

  // Whether the design has macros that this kind moves.
  bool possible(MoveKind kind) const;

  // Writes a move to moves() and returns how many macros it moves; 0: none was found.
  int draw(MoveKind kind, Random& random);
  const NodeMove* moves() const { return moves_.data(); }

  // Applies an accepted move, or reads the whole placement anew.
  void accepted(int count);
  void reset();
  // Finds the congested rows and columns. Call cost.refresh_maps() first.
  void find_hot();
  // For soft_draw, every some hundred moves: brings its prices up to date. `whole`: and where everything stands.
  void price(bool whole);

  double temperature = 0;  // of soft_draw, in units of the cost

  // Range of shifts in gcell sides; the annealer adapts it.
  std::array<double, kMoveKinds> reach;
  static constexpr double kLeastReach = 0.05;
  static constexpr double kFinest = -6;  // shifts are between 2^kFinest and 1 times the reach

  const HardRoom& room() const { return room_; }

 private:
  struct Interval {
    double low, high;
  };
  using Numbers = std::vector<std::pair<double, double>>;

  std::int32_t random_hard(Random& random) const { return hard_[random.below(static_cast<std::uint32_t>(hard_.size()))]; }
  std::int32_t random_soft(Random& random) const { return soft_[random.below(static_cast<std::uint32_t>(soft_.size()))]; }
  void clamp(NodeMove& move) const;
  bool lands(NodeMove* moves, int count) const;
  void snap(NodeMove& move) const;
  // A pin of another node on a random net of the node, µm.
  bool neighbour(int node, Random& random, double* x, double* y) const;

  bool hard_shift(Random& random);
  bool hard_slide(Random& random);
  bool hard_align(Random& random);
  bool hard_jump(Random& random);
  bool hard_pull(Random& random);
  bool hard_abut(Random& random);
  bool hard_ring(Random& random, int count);
  bool hard_roll(Random& random);
  bool hard_mirror(Random& random);
  bool hard_trade(Random& random);
  void bring_back(const NodeMove& from, const NodeMove& to);
  bool soft_near(Random& random);
  bool soft_step(Random& random);
  bool soft_median(Random& random);
  bool soft_pull(Random& random);
  bool soft_swap(Random& random);
  bool soft_hot(Random& random);
  bool soft_draw(Random& random);
  void find_ends(int node);
  Interval median(Numbers& ends, double here) const;
  double scale_x(MoveKind kind) const { return reach[static_cast<int>(kind)] * cell_width_; }
  double scale_y(MoveKind kind) const { return reach[static_cast<int>(kind)] * cell_height_; }

  const IncrementalCost& cost_;
  std::unique_ptr<TargetDrawer> targets_;  // once it is asked for
  const Design& design_;
  HardRoom room_;
  bool rotate_;
  bool snaps_;           // corners of hard macros lie on a grid
  bool blocks_ = false;  // there are blockages, which centres of soft macros stay off
  double cell_width_, cell_height_;
  std::vector<std::int32_t> hard_, soft_;  // movable
  std::vector<NodeMove> moves_;
  std::vector<NodeMove> line_;             // workspace of hard_roll
  Numbers ends_[2];                        // workspace of soft_median: (place, weight) on both axes
  double ends_weight_ = 0;                 // of half of them
  std::vector<std::int32_t> hot_rows_, hot_columns_;  // one entry for each of the busiest gcells
};

}  // namespace placement
