// What the search tries: moves of hard macros, legal by construction, and of soft macros, drawn at random. All keep to
// the design's constraints.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "search/hard_room.hpp"
#include "cost/incremental.hpp"
#include "common/random.hpp"

namespace placement {

enum class MoveKind : int {
  hard_shift,    // a little way, off the grid
  hard_slide,    // along an axis, to any place up to what is in the way
  hard_align,    // to the middle of a block of gcells near by
  hard_jump,     // anywhere
  hard_pull,     // near another point of one of its nets
  hard_abut,     // beside another hard macro
  hard_swap,     // two change places
  hard_permute,  // three or four change places in a ring
  hard_roll,     // one goes some places on in its row or column, those between move up
  hard_mirror,   // turned, keeping its sides (unless rotation is allowed)
  hard_trade,    // to where soft macros stand, which come back the other way
  soft_shift,    // a little way
  soft_step,     // to a gcell beside
  soft_median,   // into the median interval of its nets
  soft_pull,     // near another point of one of its nets
  soft_swap,     // two change places
  soft_hot,      // out of a gcell row or column of much congestion
};
inline constexpr int kMoveKinds = 17;
const std::array<const char*, kMoveKinds>& move_names();

struct MoveOptions {
  double spacing = 0;     // µm between hard macros, where their halos ask for less
  bool rotate = false;    // allow orientations that swap width and height
  std::vector<Blockage> blockages;  // beside those of the design's constraints
};

// Draws moves around a placement that stands in an IncrementalCost. One per thread; no allocation per move once grown.
class MoveDrawer {
 public:
  MoveDrawer(const IncrementalCost& cost, const MoveOptions& options);

  // Whether the design has what this kind moves.
  bool possible(MoveKind kind) const;

  // Writes a move to moves() and returns how many macros it moves; 0 when none was found.
  int draw(MoveKind kind, Random& random);
  const NodeMove* moves() const { return moves_.data(); }

  // Takes in the move that was accepted, or the whole placement anew.
  void accepted(int count);
  void reset();
  // Looks for the rows and columns of much congestion; cost.refresh_maps() comes first.
  void find_hot();

  // How far shifts go, in gcells' sides; adapted by the annealer.
  std::array<double, kMoveKinds> reach;
  static constexpr double kLeastReach = 0.05;

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
  // A point of another node on a random net of the node, µm.
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
  Interval median(int node, bool across);
  double scale_x(MoveKind kind) const { return reach[static_cast<int>(kind)] * cell_width_; }
  double scale_y(MoveKind kind) const { return reach[static_cast<int>(kind)] * cell_height_; }

  const IncrementalCost& cost_;
  const Design& design_;
  HardRoom room_;
  bool rotate_;
  bool snaps_;           // hard macros' corners keep to a grid
  bool blocks_ = false;  // there are blockages that soft macros' centres keep off
  double cell_width_, cell_height_;
  std::vector<std::int32_t> hard_, soft_;  // movable
  std::vector<NodeMove> moves_;
  std::vector<NodeMove> line_;             // workspace of hard_roll
  Numbers ends_;                           // workspace of median: (place, weight)
  std::vector<std::int32_t> hot_rows_, hot_columns_;  // one entry for each of the busiest gcells
};

}  // namespace placement
