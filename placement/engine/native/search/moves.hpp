// Random moves of hard and soft macros. Every move meets the design's constraints, and moves of hard macros are legal by
// construction. A move is a row of the table in hard_moves.cpp or soft_moves.cpp, with the function that proposes it.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/random.hpp"
#include "cost/incremental.hpp"
#include "search/legal_positions.hpp"
#include "search/target_drawer.hpp"

namespace placement {

class MoveProposer;

struct Move {
  const char* name;
  double weight;       // relative frequency of proposals before the mix adapts
  // Whether the design has the macros that the move needs.
  bool (*possible)(const MoveProposer&);
  // Adds the macros to be moved with MoveProposer::add; returns false if it found no move.
  bool (*propose)(MoveProposer&, Random&);
  double reach = 1.0;  // initial distance by which it moves a macro, in gcell sides: MoveProposer::reach_x
  bool adapts_reach = false;  // so that a fixed share of its proposals is accepted
  // If not null, called every few hundred proposals to update the move's prepared data; `whole`: all positions, too.
  void (*refresh)(MoveProposer&, bool whole) = nullptr;
  double weight_on_chip = -1;  // for the chip cost; negative: the same
};

// All moves: those of hard macros, those that straighten them, those of soft macros.
const std::vector<Move>& all_moves();
const std::vector<Move>& hard_moves();
const std::vector<Move>& tidy_moves();
const std::vector<Move>& soft_moves();

using PerMove = std::vector<double>;  // one number per move

struct MoveOptions {
  double spacing = 0;      // minimum distance of hard macros in µm, if their halos need less
  bool rotate = false;     // allow orientations that swap width and height
  bool moves_soft = true;  // move soft macros, too
};

// Proposes moves of the placement in an IncrementalCost. Not thread-safe. No allocation per move once the workspace has
// grown.
class MoveProposer {
 public:
  MoveProposer(const IncrementalCost& cost, const MoveOptions& options);

  // Writes a move to `proposal` and returns the number of macros moved; 0: none was found.
  int propose(int move, Random& random);
  std::vector<NodeMove> proposal;
  bool possible(int move) const { return all_moves()[move].possible(*this); }

  // Updates its state after an accepted proposal, or from the whole placement.
  void accepted(int count);
  void reset();
  // Finds the congested rows and columns. Call cost.refresh_maps() first.
  void find_congested();

  double temperature = 0;  // in units of the cost
  PerMove reach;           // in gcell sides; the annealer adapts some
  static constexpr double kLeastReach = 0.05;

  // Access for the moves.
  const Design& design() const { return design_; }
  const IncrementalCost& cost() const { return cost_; }
  const LegalPositions& legal() const { return legal_; }
  const std::vector<std::int32_t>& hard() const { return hard_; }  // movable
  const std::vector<std::int32_t>& soft() const { return soft_; }
  NodeMove random_hard(Random& random) const { return cost_.at(hard_[random.below(static_cast<std::uint32_t>(hard_.size()))]); }
  NodeMove random_soft(Random& random) const { return cost_.at(soft_[random.below(static_cast<std::uint32_t>(soft_.size()))]); }
  double width(const NodeMove& at) const { return design_.width_of(at.node, at.orientation); }
  double height(const NodeMove& at) const { return design_.height_of(at.node, at.orientation); }
  // Whether orientations that swap width and height are allowed.
  bool rotates() const { return rotates_; }
  double cell_width() const { return cell_width_; }
  double cell_height() const { return cell_height_; }
  // Reach of the current move, µm.
  double reach_x() const { return reach[move_] * cell_width_; }
  double reach_y() const { return reach[move_] * cell_height_; }
  // A factor between 2^-6 and 1, log-uniform: most moves are short.
  static double random_scale(Random& random) { return std::exp2(-6 * random.fraction()); }
  // Moves a macro to a point around (x, y) within the reach; may keep the position on one of the axes.
  void go_near(NodeMove& macro, double x, double y, Random& random) const;
  // A pin of another node on a random net of the node, µm; returns whether there is one.
  bool neighbour(int node, Random& random, double* x, double* y) const;
  bool on_blockage(const NodeMove& at) const { return blocks_ && legal_.on_blockage(at.x, at.y); }
  // Moves the whole rectangle into the canvas.
  void clamp(NodeMove& macro) const;
  // Adds a macro, inside the canvas, to the proposal.
  bool add(NodeMove macro) {
    clamp(macro);
    proposal.push_back(macro);
    return true;
  }
  // Adds the hard macro at the first legal position that `change(macro)` finds within `attempts`; `change` returns
  // false if it has none.
  template <typename Change>
  bool add_legal(const NodeMove& from, int attempts, Change change) {
    for (int i = 0; i < attempts; ++i) {
      NodeMove to = from;
      if (!change(to)) continue;
      clamp(to);
      if (!lands(&to, 1)) continue;
      proposal.push_back(to);
      return true;
    }
    return false;
  }
  // Snaps the macros of the proposal to the snapping grid, if there is one; returns whether they are then legal.
  bool lands() { return lands(proposal.data(), static_cast<int>(proposal.size())); }
  // Created on first use.
  TargetDrawer& targets() {
    if (!targets_) targets_ = make_target_drawer(cost_, soft_);
    return *targets_;
  }
  // One entry for each of the most congested gcells.
  const std::vector<std::int32_t>& congested_rows() const { return congested_rows_; }
  const std::vector<std::int32_t>& congested_columns() const { return congested_columns_; }

  std::vector<NodeMove> line;  // workspace of hard_roll and the moves that straighten
  std::vector<double> pushed;  // workspace of tidy_part, [N] zeros between two moves
  std::array<std::vector<std::pair<double, double>>, 2> ends;  // workspace of soft_median

 private:
  bool lands(NodeMove* moves, int count) const;
  void snap(NodeMove& move) const;

  const IncrementalCost& cost_;
  std::unique_ptr<TargetDrawer> targets_;
  const Design& design_;
  LegalPositions legal_;
  bool rotates_, snaps_;  // orientations may swap width and height; corners of hard macros lie on a grid
  bool blocks_ = false;  // there are blockages, where no centre of a soft macro may be
  double cell_width_, cell_height_;
  std::vector<std::int32_t> hard_, soft_;
  int move_ = 0;  // the current move
  std::vector<std::int32_t> congested_rows_, congested_columns_;
};

}  // namespace placement
