// Macros that may stand over each other a little while an episode lasts are moved apart at its end.
// Axes: T macros to place, S boxes that stand: fixed macros and keep-outs; lengths in µm.
#pragma once

#include <cstdint>
#include <vector>

#include "env/episode_plan.hpp"

namespace placement {

// Every two boxes in each other's way are kept apart on one axis, in the order in which they are: on the axis on which they
// overlap less. Where that leaves no room on an axis, some of the pairs that fill it go to the other one. Then each macro
// moves as little as the others let it, one axis at a time. Owns workspace: one per thread.
class OverlapRemover {
 public:
  // `plan` must outlive it.
  explicit OverlapRemover(const EpisodePlan& plan);

  // Moves the plan's macros [T], in its order, to legal places. False where it finds none: then nothing has moved.
  bool remove(std::vector<Obstacle>& placed);

 private:
  struct Standing {
    double at[2], size[2], halo[2];  // by axis
    std::int32_t keep_out;           // its number; -1: a fixed macro, which all macros keep off
  };
  struct Pair {
    int macro, other;  // other: a macro, or T + a box that stands
  };

  int count() const { return static_cast<int>(plan_->macros.size()); }
  int every() const { return count() + static_cast<int>(standing_.size()); }
  double size_of(int macro, int axis) const {
    return axis == 0 ? plan_->macros[macro].width : plan_->macros[macro].height;
  }
  std::uint8_t* axes_of(int macro) { return axis_.data() + static_cast<std::size_t>(macro) * every(); }
  const std::uint8_t* axes_of(int macro) const { return axis_.data() + static_cast<std::size_t>(macro) * every(); }
  void gather_standing();
  void begin(const std::vector<Obstacle>& placed);
  // How far the centres must be apart on an axis where the pair is kept apart there; 0: the two are never in the way.
  double reach(int macro, int other, int axis) const;
  double start_of(int other, int axis) const {
    return other < count() ? start_[axis][other] : standing_[other - count()].at[axis];
  }
  bool comes_before(int other, int macro, int axis) const;
  void choose_axes();
  bool make_room();
  void find_bounds(int axis);
  int most_crowded(int axis) const;
  bool ease(int macro, int axis);
  void settle(int axis);
  double nearest(int macro, int axis, const std::vector<double>& at) const;
  bool is_apart(const std::vector<double>& x, const std::vector<double>& y) const;

  const EpisodePlan* plan_;
  std::vector<Standing> standing_;         // [S]
  std::vector<std::uint8_t> concerns_;     // [T, S] whether a macro keeps off a box that stands
  double pitch_[2], offset_[2];            // of the snapping grid; pitch 0: none

  // Of one call.
  std::vector<double> start_[2], low_[2], high_[2];  // [T] where a macro was, and the canvas's limits of its centre
  std::vector<std::int32_t> order_[2], rank_[2];     // [T] macros by where they were, and each one's place in that
  std::vector<std::uint8_t> axis_;                   // [T, T+S] 0, 1: the axis a pair is kept apart on; see the source
  std::vector<double> least_, most_;                 // [T] bounds by all that is before, behind
  std::vector<std::int32_t> before_, behind_;        // [T] what sets them, -1: the canvas
  std::vector<double> at_[2], other_way_;            // [T]
};

}  // namespace placement
