// A partial placement: hard macros are put on gcell centres, or off the grid, one by one; the legal gcells, wire mask
// and maps for the next macro are maintained or computed in microseconds. Axes as in episode_plan.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "env/episode_plan.hpp"
#include "env/off_grid.hpp"

namespace placement {

// Why a macro may not be centred on a gcell.
enum class Verdict : std::int8_t {
  legal = 0, out_of_range, outside_canvas, overlaps, all_placed, too_close, on_blockage, off_region, near_port, off_lines,
  narrow_channel
};

class PlacementState {
 public:
  explicit PlacementState(std::shared_ptr<const EpisodePlan> plan);

  // Removes all placed macros.
  void reset();

  // Centres the current macro on the gcell, or off the grid where it fits; the gcell must be legal (is_legal). No
  // allocation.
  void place(int row, int column);

  // Removes the last macro and restores the previous state bit for bit. Needs step() > 0.
  void undo();

  int step() const { return step_; }
  bool complete() const { return step_ == plan_->steps(); }
  const EpisodePlan& plan() const { return *plan_; }

  // Legal gcells for the centre of the current macro: it lies inside the canvas, overlaps no fixed or placed hard macro
  // by more than the threshold in both directions at once, and meets its constraints. None when complete.
  bool is_legal(int row, int column) const {
    return (legal_[row * words_ + column / 64] >> (column % 64)) & 1;
  }
  int legal_cells() const { return legal_cells_; }
  // Row and column of the n-th legal gcell, row by row; 0 <= n < legal_cells().
  std::pair<int, int> nth_legal(int n) const;

  // Why the current macro may not be placed there. For overlaps, too_close and narrow_channel, `obstacle` becomes the
  // obstructing node; it is not changed for the canvas edge.
  Verdict judge(int row, int column, int* obstacle) const;

  // Centre of the t-th macro in placing order, µm; t < step().
  double x(int t) const { return placed_[t].x; }
  double y(int t) const { return placed_[t].y; }
  int cell(int t) const { return cells_[t].row * plan_->canvas.columns + cells_[t].column; }

  // [R, C]: summed shares of the gcell under fixed and placed hard macros; the same with fixed soft macros.
  const std::vector<double>& occupancy() const { return occupancy_; }
  const std::vector<double>& density() const { return density_; }

  // float32 [2, R, C]: occupancy (at most 1) and density as in observations.
  const std::vector<float>& shown() const { return shown_; }

  // Wirelength that the current macro adds when centred on (row, column): column_wire[column] + row_wire[row], times
  // its wire_scale. Written to [C] and [R] arrays, weighted µm; zeros when complete.
  void wire_mask(double* column_wire, double* row_wire) const;

  // uint8 [R, C] with `stride` bytes from row to row: 1 where legal.
  void write_mask(std::uint8_t* mask, int stride) const;

 private:
  // The cell of a placed macro and its shape in the plan, which every later step reads for all macros before it.
  struct PlacedCell {
    std::int32_t row, column, shape;
  };

  Verdict why_not(int row, int column, int* obstacle) const;
  void find_legal();
  void find_legal_off_grid();
  HardBox placed_box(int t) const;
  void add_area(const Obstacle& macro, double sign);
  void show(std::size_t cell) {
    shown_[cell] = static_cast<float>(std::min(occupancy_[cell], 1.0));
    shown_[occupancy_.size() + cell] = static_cast<float>(density_[cell]);
  }

  std::shared_ptr<const EpisodePlan> plan_;
  int step_ = 0;
  int words_;                           // 64-bit words in a row of the legal mask
  int legal_cells_ = 0;
  std::vector<std::uint64_t> legal_;    // [R, words]
  std::vector<Obstacle> placed_;        // [T]
  std::vector<PlacedCell> cells_;       // [T]
  std::vector<Box> boxes_;              // [A]
  std::vector<Box> saved_boxes_;        // [D] box of each net of a macro before the macro was placed
  std::vector<double> occupancy_, density_;  // [R, C]
  std::vector<float> shown_;                 // [2, R, C]
  mutable std::vector<double> hinges_;  // workspace of wire_mask
  std::optional<OffGrid> off_grid_;     // of the current macro; empty on the grid
};

}  // namespace placement
