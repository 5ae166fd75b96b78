// The constant data of a design's episodes, made once and shared by all its environments. Axes: T macros in placing
// order, D incidences of macros and nets, A nets that an episode can lengthen, R, C grid.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/design.hpp"
#include "cost/compact_nets.hpp"
#include "cost/legality.hpp"

namespace placement {

// Thrown for a design of which no episode can be played.
struct UnplayableDesign : std::invalid_argument {
  UnplayableDesign(int node_, const std::string& reason) : std::invalid_argument(reason), node(node_) {}
  int design = 0;  // its index in a list of designs
  int node;        // the node that causes it, or -1
};

// Thrown if a macro fits on no gcell centre; it may fit between them.
struct GridTooCoarse : UnplayableDesign {
  using UnplayableDesign::UnplayableDesign;
};

// Bounding box of the placed pins of a net, µm; empty if low > high.
struct Box {
  double low_x = std::numeric_limits<double>::infinity(), high_x = -low_x;
  double low_y = low_x, high_y = high_x;

  bool empty() const { return low_x > high_x; }
  void include(double left, double right, double bottom, double top) {
    low_x = std::min(low_x, left);
    high_x = std::max(high_x, right);
    low_y = std::min(low_y, bottom);
    high_y = std::max(high_y, top);
  }
};

// The pins of a macro on a net: the span of their oriented offsets from the macro's centre, µm.
struct MacroNet {
  std::int32_t net;
  double weight;
  double left, right, bottom, top;
};

// A macro to be placed, in the orientation of the design's initial placement.
struct MacroToPlace {
  std::int32_t node;
  double width, height;                                        // µm
  Halo halo;
  SnapGrid grid;                                               // grid of its lower left corner
  std::int32_t keep_set;                                       // of keep-outs, see Constraints
  std::int32_t first_net, last_net;                            // its incidences: [first_net, last_net)
  double wire_scale;                                           // 1 / ((W + H) · summed weight of all its nets), or 0
  std::int32_t shape;                                          // macros that fit in the same positions share a shape
  std::int32_t first_column, last_column, first_row, last_row;  // range inside the canvas; unused off the grid
};

// Distance in gcells, along each axis, at which two macros on gcell centres still overlap or are too close; -1 if they
// never are. On a snapping grid macros are up to a pitch off the centres, so it may be one gcell too large.
struct CellReach {
  std::int32_t left = -1, right = -1, below = -1, above = -1;  // of the other macro
};

// A placed hard macro.
struct Obstacle {
  double x, y, width, height;  // µm
  std::int32_t node;
};

struct EpisodePlan {
  // Throws UnplayableDesign if there is no macro to place, one lies inside the canvas at no gcell centre, a port, cell
  // or fixed node has no position, or constraints leave a macro no gcell or forbid its orientation.
  explicit EpisodePlan(std::shared_ptr<const Design> design);

  int steps() const { return static_cast<int>(macros.size()); }

  // Centre, µm, of a macro of a shape on a gcell: the gcell's own, or the nearest below it with the macro's lower left
  // corner on the snapping grid.
  double x_of(int shape, int column) const {
    return snapped_x.empty() ? column_x[column] : snapped_x[shape * column_x.size() + column];
  }
  double y_of(int shape, int row) const {
    return snapped_y.empty() ? row_y[row] : snapped_y[shape * row_y.size() + row];
  }

  // Gap in µm between two macros, at least one of them of the episode, the first to the left of the other, or below it.
  double gap_across(const Halo& left, const Halo& right) const { return std::max(spacing, halos_across(left, right)); }
  double gap_up(const Halo& low, const Halo& high) const { return std::max(spacing, halos_up(low, high)); }

  // Removes the gcells on which a macro would break the channel rule beside a hard macro from a set [R, words]. On a
  // snapping grid macros are up to a pitch off the centres, so it may remove some too many.
  void block_channels(const MacroToPlace& macro, const HardBox& other, std::uint64_t* cells) const;

  std::shared_ptr<const Design> design;
  Canvas canvas;                           // with the action grid, R rows and C columns of cells
  double cell_width, cell_height;          // µm
  std::vector<double> column_x, row_y;     // [C], [R] centres of the cells, µm
  // Minimum gap in µm around a macro of an episode if halos need less: the design's spacing, so that no pocket of rows
  // is closed. It is 0 if that gap in whole cells takes up most of the canvas, so that episodes would not finish, or if
  // it leaves a macro no position beside fixed macros.
  double spacing = 0;
  std::vector<MacroToPlace> macros;        // [T]
  std::vector<MacroNet> macro_nets;        // [D]
  std::vector<Box> given_boxes;         // [A] bounding boxes of pins on ports, cells and fixed nodes
  std::vector<Obstacle> fixed_macros;      // fixed hard macros
  std::vector<double> given_occupancy;  // [R, C] fraction of the gcell under fixed hard macros
  std::vector<double> given_density;    // [R, C] the same including fixed soft macros
  int shapes = 0;                          // number S of shapes: macros that fit in different positions
  std::vector<double> snapped_x, snapped_y;  // [S, C], [S, R] µm, or empty without a snapping grid
  int words;                               // 64-bit words in a row of a set of gcells
  std::vector<CellReach> reaches;          // [S, S]; unused off the grid
  std::vector<std::uint64_t> free_cells;   // [S, R, words] gcells free of fixed macros and constraints; likewise
  Rounder share;                           // makes sums of shares exact, so that removing reverses adding
  std::uint64_t fingerprint;               // of the design

 private:
  void block_band(double x, double y, double reach_x, double reach_y, std::uint64_t* cells) const;
  bool is_given(int node) const;
  void plan_nets();
  void plan_macro(int node);
  void span_inside(MacroToPlace& macro) const;
  void plan_given();
  void plan_shapes();
  // Finds the positions of each shape before an episode begins; returns a macro that has none, or null.
  const MacroToPlace* plan_places(const std::vector<const MacroToPlace*>& examples);
  void plan_spacing();
  void plan_reaches(const std::vector<const MacroToPlace*>& examples);
  void plan_free_cells(const std::vector<const MacroToPlace*>& examples);
};

// Calls visit(cell, share) for every gcell that the rectangle covers, with its rounded covered share.
template <typename Visit>
void for_covered_cells(const EpisodePlan& plan, double x, double y, double width, double height, Visit visit) {
  const Canvas& canvas = plan.canvas;
  const double left = x - width / 2, right = x + width / 2, bottom = y - height / 2, top = y + height / 2;
  if (right <= 0 || top <= 0 || left >= canvas.width || bottom >= canvas.height) return;
  const int first_column = canvas.column_of(left), last_column = canvas.column_of(right);
  const int first_row = canvas.row_of(bottom), last_row = canvas.row_of(top);
  const double cell_width = plan.cell_width, cell_height = plan.cell_height;
  const double inverse_area = 1 / (cell_width * cell_height);
  for (int row = first_row; row <= last_row; ++row) {
    const double covered_y = std::min(top, (row + 1) * cell_height) - std::max(bottom, row * cell_height);
    if (covered_y <= 0) continue;
    for (int column = first_column; column <= last_column; ++column) {
      const double covered_x = std::min(right, (column + 1) * cell_width) - std::max(left, column * cell_width);
      if (covered_x > 0) visit(row * canvas.columns + column, plan.share(covered_x * covered_y * inverse_area));
    }
  }
}

// Index of the first of `count` gcell centres beyond `at` µm, within one of rounding; in [0, count].
inline int first_beyond(double at, double inverse_size, int count) {
  return static_cast<int>(std::clamp(std::floor(at * inverse_size - 0.5) + 1, 0.0, static_cast<double>(count)));
}

// First and last index of the centres at which a macro of `own` µm would overlap the interval (centre, length); first >
// last if none would.
inline std::pair<int, int> blocked_by(const std::vector<double>& centres, double inverse_size, double own, double centre,
                               double length, double threshold) {
  const double reach = (own + length) / 2 - threshold - kLengthTolerance;
  if (reach <= 0 || std::min(own, length) <= threshold + kLengthTolerance) return {0, -1};
  const int count = static_cast<int>(centres.size());
  const auto overlaps = [&](int i) { return intervals_overlap(centres[i], own, centre, length, threshold); };
  int first = first_beyond(centre - reach, inverse_size, count);
  int last = first_beyond(centre + reach, inverse_size, count) - 1;
  // The guesses are off by at most one if a centre lies within rounding of the edge: the shared rule decides.
  if (first > 0 && overlaps(first - 1)) --first;
  if (first <= last && !overlaps(first)) ++first;
  if (last + 1 < count && overlaps(last + 1)) ++last;
  if (first <= last && !overlaps(last)) --last;
  return {first, last};
}

// Bits [first, last] of a word; bits outside [0, 64) are dropped.
inline std::uint64_t bits(int first, int last) {
  first = std::max(first, 0);
  last = std::min(last, 63);
  if (first > last) return 0;
  return (~std::uint64_t{0} >> (63 - last)) & (~std::uint64_t{0} << first);
}

// Removes the gcells of a rectangle, which may be empty, from a set [R, words].
inline void block_cells(std::uint64_t* cells, int words, int first_row, int last_row, int first_column,
                        int last_column) {
  if (first_column > last_column) return;
  for (int word = first_column / 64; word <= last_column / 64; ++word) {
    const std::uint64_t free = ~bits(first_column - 64 * word, last_column - 64 * word);
    for (int row = first_row; row <= last_row; ++row) cells[row * words + word] &= free;
  }
}

}  // namespace placement
