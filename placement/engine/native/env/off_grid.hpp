// Macros placed anywhere in the cell of their action, not only on its centre: where they touch placed macros or the
// canvas edges on the most axes, else nearest to the centre. A macro thus abuts where possible, and no whitespace is
// lost between macros whose sides are not multiples of a cell's. Axes: R, C action grid; lengths in µm.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "env/episode_plan.hpp"

namespace placement {

// Legal positions of a macro in the cells of a grid, given the placed macros. Owns workspace: one per thread.
class OffGrid {
 public:
  // `plan` must outlive it.
  explicit OffGrid(const EpisodePlan& plan);

  // Begins with a macro of the plan and the canvas edges; no other macro is placed.
  void begin(const MacroToPlace& macro);
  // Forbids positions too close to a hard macro, and those beside it where a gap would break the channel rule.
  // `spacing`: µm between the two if halos need less.
  void forbid_beside(const MacroToPlace& macro, const HardBox& other, double spacing);
  // Forbids positions that conflict with what is placed before an episode begins.
  void forbid_given(const MacroToPlace& macro);

  // Whether any position in the cell is within the canvas.
  bool reaches(int row, int column) const {
    return rows_.low[row] <= rows_.high[row] && columns_.low[column] <= columns_.high[column];
  }
  // The point nearest to the cell's centre at which the macro is within the canvas; the cell must have one.
  std::array<double, 2> centre(int row, int column) const {
    return {std::clamp(plan_->column_x[column], columns_.low[column], columns_.high[column]),
            std::clamp(plan_->row_y[row], rows_.low[row], rows_.high[row])};
  }
  // Sets bits [R, words] of the cells that hold a legal position; the other bits are cleared.
  void find(std::uint64_t* cells);
  // The legal position in a cell that touches something on the most axes; among these the nearest to the cell's centre
  // (|Δx| + |Δy|, then the lowest x, then y). Empty if the cell has none.
  std::optional<std::array<double, 2>> place(int row, int column);

 private:
  // Range of the macro's centre in each cell of an axis; low > high if it would extend beyond the canvas.
  struct Axis {
    std::vector<double> low, high;
    double first, last;          // the same of the whole canvas
    double size, pitch, offset;  // of the macro; of its snapping grid, pitch 0: none
    void begin(const std::vector<double>& centres, double cell, double own, double extent);
  };
  struct Forbidden {
    double x, y, reach_x, reach_y;
  };
  // Forbids centres closer to x, y than `reach_x` and `reach_y` at once.
  void forbid(double x, double y, double reach_x, double reach_y);
  void forbid_channels(const MacroToPlace& macro, const HardBox& other);
  void doubt_narrow_cells();
  std::optional<int> contacts_at(double x, double y) const;
  void candidates(const Axis& axis, int cell, double centre, bool across, std::vector<double>& out) const;

  const EpisodePlan* plan_;
  Axis columns_, rows_;
  std::vector<Forbidden> forbidden_, near_;
  std::vector<double> xs_, ys_;             // candidates
  std::vector<std::uint64_t> once_;         // [R, words] cells that a forbidden box reaches into
  std::vector<std::uint64_t> doubtful_;     // [R, words] cells that only a check of all boxes decides
};

// Minimum distance on an axis of the centres of two intervals with `gap` µm between them; 0 if it never matters.
double centre_reach(double own, double other, double gap, double threshold);

}  // namespace placement
