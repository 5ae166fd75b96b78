// Legal positions of hard macros for the search: inside the canvas, without overlaps, within their constraints.
// Positions are continuous, not gcells.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/design.hpp"
#include "cost/incremental.hpp"
#include "cost/legality.hpp"

namespace placement {

// The spacing applies to macros of zero size, too. Not thread-safe: one per thread.
class LegalPositions {
 public:
  // `spacing`: minimum distance in µm between hard macros and from blockages if halos need less; 0: they may touch.
  LegalPositions(const Design& design, double spacing);

  // Sets the positions of all hard macros: x, y [N] µm, orientation [N].
  void place(const double* x, const double* y, const std::int8_t* orientation);
  // Updates the position of one hard macro.
  void place(const NodeMove& move);

  // Whether the placement is legal after `moves`, made all at once. Ignores moves of soft macros. The caller checks
  // orientations and the snapping grid.
  bool fits(const NodeMove* moves, int count) const;
  // Whether every movable hard macro is at a legal position in an allowed orientation.
  bool all_fit() const;
  // Minimum gap in µm of two hard macros on an axis, the first to the left of the other, or below it.
  double gap(const NodeMove& first, const NodeMove& second, bool across) const;
  // Whether there is a channel rule.
  bool has_channels() const { return channels_; }
  // Moves a macro whose gaps to others or to an edge break the channel rule to the nearer end of each such gap.
  void settle(NodeMove& move) const;
  // Whether a point lies on a blockage, where no centre of a soft macro may be.
  bool on_blockage(double x, double y) const;
  // Distance in µm (≥ 0) that a macro at `at` can slide along an axis before it meets another or the edge.
  double clearance(const NodeMove& at, bool across, bool forward) const;

 private:
  struct Box {
    double x, y, width, height;  // µm
  };
  Box box_of(const NodeMove& move) const {
    return {move.x, move.y, design_.width_of(move.node, move.orientation),
            design_.height_of(move.node, move.orientation)};
  }
  bool inside(const Box& box) const;
  // Calls visit(i) for a superset of the macros whose boxes are closer than the spacing or their halos to a box around
  // (x, y).
  template <typename Visit>
  void for_near(double x, double half_width, double y, double half_height, Visit visit) const {
    const auto bin = [](double at, double per, int bins) {
      return static_cast<int>(std::clamp(at * per, 0.0, bins - 1.0));
    };
    const double reach_x = half_width + reach_, reach_y = half_height + reach_;
    const int first = bin(x - reach_x, per_width_, columns_), last = bin(x + reach_x, per_width_, columns_);
    const int top = bin(y + reach_y, per_height_, rows_);
    for (int row = bin(y - reach_y, per_height_, rows_); row <= top; ++row) {
      for (int column = first; column <= last; ++column) {
        for (std::int32_t i = first_in_[row * columns_ + column]; i >= 0; i = next_[i]) visit(static_cast<std::size_t>(i));
      }
    }
  }
  void make_bins();
  void file(std::int32_t macro);
  int conflicts(const Box& box) const;
  bool conflict(const Box& box, std::size_t other) const;
  // The box used by `fits`, for macros with halos or channels.
  HardBox hard_box_of(const NodeMove& move) const {
    return hard_box(design_, move.node, move.x, move.y, move.orientation);
  }
  HardBox placed(std::size_t i) const { return {x_[i], y_[i], width_[i], height_[i], halo_[i]}; }
  // Whether two macros are too close, or break the channel rule.
  bool clash(const HardBox& a, const HardBox& b) const {
    return too_close(a, b, spacing_, design_.canvas.overlap_threshold) ||
           (channels_ && breaks_channel(a, b, design_.constraints.channel, design_.constraints.coarsest));
  }
  bool off_limits(const NodeMove& move) const;
  bool fits_with_halos(const NodeMove* moves, int count) const;
  bool fits_with_halos(const NodeMove& move, const NodeMove* moves, int count, int before) const;

  const Design& design_;
  double slack_;                       // µm by which intervals, enlarged by the spacing, may overlap
  std::vector<std::int32_t> index_of_; // [N] -1: not a hard macro
  // Of hard macros.
  std::vector<double> x_, y_, width_, height_;
  std::vector<std::uint8_t> movable_;
  double spacing_;
  bool halos_, channels_;
  std::size_t macros_ = 0;
  // Bins of macros by their centres, so that a neighbour search does not visit all macros.
  int columns_ = 1, rows_ = 1;
  double per_width_ = 0, per_height_ = 0;  // bins per µm
  double reach_ = 0;                       // µm: half of the longest side plus the widest gap
  std::vector<std::int32_t> first_in_;     // [bins] a macro there, or -1
  std::vector<std::int32_t> next_, previous_, bin_;  // of each macro: the others of its bin, -1 at the ends; its bin
  std::vector<Halo> halo_;  // in the current orientation
  std::vector<std::int8_t> orientation_;
  std::vector<std::int32_t> node_;
};

}  // namespace placement
