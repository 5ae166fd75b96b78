// Where hard macros may stand: inside the canvas, clear of each other and of obstacles, where their constraints let them.
// Off the grid of gcells; for the search.
#pragma once

#include <cstdint>
#include <vector>

#include "common/design.hpp"
#include "cost/incremental.hpp"
#include "cost/legality.hpp"

namespace placement {

struct Blockage {
  double left, low, right, high;  // µm
};

// Not smaller for a macro of zero size. One per thread.
class HardRoom {
 public:
  // `spacing`: µm that hard macros keep from each other and from blockages, beside their halos; 0: they may touch.
  // `blockages`: beside those of the design's constraints.
  HardRoom(const Design& design, double spacing, const std::vector<Blockage>& blockages);

  // Takes in where all hard macros stand: x, y [N] µm, orientation [N].
  void stand(const double* x, const double* y, const std::int8_t* orientation);
  // A hard macro has moved.
  void stand(const NodeMove& move);

  // Whether macros can stand as `moves` says, all at once, the others staying. Moves of soft macros are passed over.
  // Orientations and the snapping grid are the mover's to keep to.
  bool fits(const NodeMove* moves, int count) const;
  // Whether every movable hard macro stands where it may, as it may.
  bool all_fit() const;
  // µm that two hard macros are to keep between them on an axis.
  double gap(const NodeMove& a, const NodeMove& b, bool across) const;
  // Whether a point lies on a blockage, where soft macros' centres do not go.
  bool on_blockage(double x, double y) const;
  // How far a macro at `at` can go along an axis before it meets another or the edge, µm ≥ 0.
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
  int conflicts(const Box& box) const;
  bool conflict(const Box& box, std::size_t other) const;
  // The same where macros have halos.
  HardBox hard_box_of(const NodeMove& move) const {
    return hard_box(design_, move.node, move.x, move.y, move.orientation);
  }
  HardBox standing(std::size_t i) const { return {x_[i], y_[i], width_[i], height_[i], halo_x_[i], halo_y_[i]}; }
  bool off_limits(const NodeMove& move) const;
  bool fits_with_halos(const NodeMove* moves, int count) const;
  bool fits_with_halos(const NodeMove& move, const NodeMove* moves, int count, int before) const;

  const Design& design_;
  double slack_;                       // µm by which intervals, each longer by the spacing, may share
  std::vector<std::int32_t> index_of_; // [N] -1: no hard macro
  // Hard macros, then blockages.
  std::vector<double> x_, y_, width_, height_;
  std::vector<std::uint8_t> movable_;
  // Of hard macros: halos as they are turned, orientations, nodes; blockages have none.
  double spacing_;
  bool halos_;
  std::size_t macros_ = 0;
  std::vector<double> halo_x_, halo_y_;
  std::vector<std::int8_t> orientation_;
  std::vector<std::int32_t> node_;
};

}  // namespace placement
