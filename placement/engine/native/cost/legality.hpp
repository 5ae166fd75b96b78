// Legal positions of a hard macro: inside the canvas, clear of other macros by halos and spacing, clear of keep-outs,
// in an allowed orientation, on the snapping grid, and without gaps that are too narrow for a channel. All of the
// engine shares this rule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/design.hpp"

namespace placement {

// Tolerance of length comparisons, µm.
inline constexpr double kLengthTolerance = 1e-6;

struct Legality {
  int overlaps = 0;  // pairs of hard macros that overlap by more than the threshold in both directions
  int outside = 0;   // hard macros that extend beyond the canvas
};

// Whether two intervals given by centre and length overlap by more than `threshold`.
inline bool intervals_overlap(double centre_a, double length_a, double centre_b, double length_b, double threshold) {
  const double shared = std::min({(length_a + length_b) / 2 - std::abs(centre_a - centre_b), length_a, length_b});
  return shared > threshold + kLengthTolerance;
}

// Whether an interval extends beyond [0, extent].
inline bool reaches_beyond(double centre, double length, double extent) {
  return centre - length / 2 < -kLengthTolerance || centre + length / 2 > extent + kLengthTolerance;
}

// Allowed overlap in µm of two intervals that require a gap of `gap` µm: negative if the gap is positive.
inline double allowed_share(double gap, double threshold) { return gap > 0 ? -gap : threshold; }

// A hard macro in its current orientation, µm.
struct HardBox {
  double x, y, width, height;
  Halo halo;
};
inline HardBox hard_box(const Design& design, int node, double x, double y, std::int8_t orientation) {
  return {x, y, design.width_of(node, orientation), design.height_of(node, orientation),
          design.constraints.halo_of(node, orientation)};
}

// Gap in µm that the halos of two hard macros require if the first is to the left of the other, or below it.
inline double halos_across(const Halo& left, const Halo& right) { return left.x + right.x + (left.shift_x - right.shift_x); }
inline double halos_up(const Halo& low, const Halo& high) { return low.y + high.y + (low.shift_y - high.shift_y); }
// The same for two boxes at their positions.
inline double halos_across(const HardBox& a, const HardBox& b) {
  return a.x <= b.x ? halos_across(a.halo, b.halo) : halos_across(b.halo, a.halo);
}
inline double halos_up(const HardBox& a, const HardBox& b) {
  return a.y <= b.y ? halos_up(a.halo, b.halo) : halos_up(b.halo, a.halo);
}

// Whether two hard macros are closer on both axes than their halos or `spacing` allow; if neither requires a gap,
// whether they overlap by more than `threshold`.
inline bool too_close(const HardBox& a, const HardBox& b, double spacing, double threshold) {
  return intervals_overlap(a.x, a.width, b.x, b.width,
                           allowed_share(std::max(spacing, halos_across(a, b)), threshold)) &&
         intervals_overlap(a.y, a.height, b.y, b.height,
                           allowed_share(std::max(spacing, halos_up(a, b)), threshold));
}

// Maximum excess, in µm, of an abutment's gap over the required one: a few pitches on a snapping grid, because both
// sizes and halos may be off the grid.
inline double abutment_slack(double pitch) { return std::max(kLengthTolerance, 3 * pitch - kLengthTolerance); }

// Whether `gap` µm is more than an abutment, which needs `needed` µm, and less than a channel.
inline bool too_narrow(double gap, double needed, double channel, double pitch) {
  return gap > std::max(needed, 0.0) + abutment_slack(pitch) && gap < channel - kLengthTolerance;
}

inline double gap_between(double centre_a, double length_a, double centre_b, double length_b) {
  return std::abs(centre_a - centre_b) - (length_a + length_b) / 2;
}

// Whether two hard macros face each other across a gap that is neither an abutment nor a channel. All pairs count,
// including those with a third macro in between.
inline bool breaks_channel(const HardBox& a, const HardBox& b, const Channel& channel, const SnapGrid& grid) {
  return (intervals_overlap(a.y, a.height, b.y, b.height, 0) &&
          too_narrow(gap_between(a.x, a.width, b.x, b.width), halos_across(a, b), channel.x, grid.pitch_x)) ||
         (intervals_overlap(a.x, a.width, b.x, b.width, 0) &&
          too_narrow(gap_between(a.y, a.height, b.y, b.height), halos_up(a, b), channel.y, grid.pitch_y));
}

// The same for a hard macro and the canvas edges. Halos may extend over an edge.
inline bool breaks_channel_at_edge(const HardBox& box, const Canvas& canvas, const Channel& channel,
                                   const SnapGrid& grid) {
  const auto breaks = [](double at, double length, double extent, double least, double pitch) {
    return too_narrow(at - length / 2, 0, least, pitch) || too_narrow(extent - at - length / 2, 0, least, pitch);
  };
  return breaks(box.x, box.width, canvas.width, channel.x, grid.pitch_x) ||
         breaks(box.y, box.height, canvas.height, channel.y, grid.pitch_y);
}

// Calls visit(x, y, reach_x, reach_y) for open rectangles of centres at which a box of some sides and halo breaks the
// channel rule beside `other`.
template <typename Visit>
void for_channel_bands(double width, double height, const Halo& halo, const HardBox& other, const Channel& channel,
                       const SnapGrid& grid, Visit visit) {
  const double half_x = (width + other.width) / 2, half_y = (height + other.height) / 2;
  const bool faces_y = std::min(height, other.height) > kLengthTolerance;
  const bool faces_x = std::min(width, other.width) > kLengthTolerance;
  const double slack_x = abutment_slack(grid.pitch_x) - kLengthTolerance;
  const double slack_y = abutment_slack(grid.pitch_y) - kLengthTolerance;
  for (const int side : {-1, 1}) {
    const double halos_x = side < 0 ? halos_across(halo, other.halo) : halos_across(other.halo, halo);
    const double halos_y = side < 0 ? halos_up(halo, other.halo) : halos_up(other.halo, halo);
    const double low_x = std::max(halos_x, 0.0) + slack_x, low_y = std::max(halos_y, 0.0) + slack_y;
    if (faces_y && channel.x - low_x > 2 * kLengthTolerance) {
      visit(other.x + side * (half_x + (low_x + channel.x) / 2), other.y, (channel.x - low_x) / 2, half_y);
    }
    if (faces_x && channel.y - low_y > 2 * kLengthTolerance) {
      visit(other.x, other.y + side * (half_y + (low_y + channel.y) / 2), half_x, (channel.y - low_y) / 2);
    }
  }
}

// The same for the canvas edges.
template <typename Visit>
void for_channel_edges(double width, double height, const Canvas& canvas, const Channel& channel, const SnapGrid& grid,
                       Visit visit) {
  const double low_x = abutment_slack(grid.pitch_x) - kLengthTolerance;
  const double low_y = abutment_slack(grid.pitch_y) - kLengthTolerance;
  if (channel.x - low_x > 2 * kLengthTolerance) {
    const double at = (width + low_x + channel.x) / 2, reach = (channel.x - low_x) / 2;
    for (const double x : {at, canvas.width - at}) visit(x, canvas.height / 2, reach, canvas.height);
  }
  if (channel.y - low_y > 2 * kLengthTolerance) {
    const double at = (height + low_y + channel.y) / 2, reach = (channel.y - low_y) / 2;
    for (const double y : {at, canvas.height - at}) visit(canvas.width / 2, y, canvas.width, reach);
  }
}

// Whether a box overlaps a keep-out; `spacing` applies to blockages only.
inline bool stands_on(const HardBox& box, const KeepOut& off, double spacing) {
  const double share = allowed_share(off.kind == KeepOutKind::blockage ? spacing : 0, 0);
  return intervals_overlap(box.x, box.width, off.x, off.width, share) &&
         intervals_overlap(box.y, box.height, off.y, off.height, share);
}

// The number of whole pitches from the grid's offset to a corner, rounded down.
inline double pitches_below(double corner, double pitch, double offset) {
  return std::floor((corner - offset + kLengthTolerance) / pitch);
}
inline bool on_grid(double corner, double pitch, double offset) {
  if (!(pitch > 0)) return true;
  return std::abs(corner - offset - pitch * std::round((corner - offset) / pitch)) <= kLengthTolerance;
}
inline bool on_grid(const HardBox& box, const SnapGrid& grid) {
  return on_grid(box.x - box.width / 2, grid.pitch_x, grid.offset_x) &&
         on_grid(box.y - box.height / 2, grid.pitch_y, grid.offset_y);
}

// x, y [N] µm, orientation [N].
inline Legality check_legality(const Design& design, const double* x, const double* y,
                               const std::int8_t* orientation) {
  std::vector<int> hard;
  for (int node = 0; node < design.nodes(); ++node) {
    if (design.kind_of(node) == Kind::hard) hard.push_back(node);
  }
  Legality result;
  const Canvas& canvas = design.canvas;
  for (std::size_t i = 0; i < hard.size(); ++i) {
    const int a = hard[i];
    const double width = design.width_of(a, orientation[a]), height = design.height_of(a, orientation[a]);
    result.outside += reaches_beyond(x[a], width, canvas.width) || reaches_beyond(y[a], height, canvas.height);
    for (std::size_t j = 0; j < i; ++j) {
      const int b = hard[j];
      result.overlaps +=
          intervals_overlap(x[a], width, x[b], design.width_of(b, orientation[b]), canvas.overlap_threshold) &&
          intervals_overlap(y[a], height, y[b], design.height_of(b, orientation[b]), canvas.overlap_threshold);
    }
  }
  return result;
}

// Hard macros, including fixed ones, that violate a constraint; for halos, pairs that are too close without
// overlapping; for channels, pairs, and macros at an edge.
struct Violations {
  int halos = 0, blockages = 0, regions = 0, orientations = 0, grid = 0, port_keepout = 0, channels = 0;
};

// x, y [N] µm, orientation [N].
inline Violations check_constraints(const Design& design, const double* x, const double* y,
                                    const std::int8_t* orientation) {
  Violations result;
  const Constraints& constraints = design.constraints;
  if (!constraints.any) return result;
  std::vector<HardBox> boxes;
  const double threshold = design.canvas.overlap_threshold;
  for (int node = 0; node < design.nodes(); ++node) {
    if (design.kind_of(node) != Kind::hard) continue;
    const HardBox box = hard_box(design, node, x[node], y[node], orientation[node]);
    bool on[3] = {false, false, false};
    constraints.for_keep_outs(node, [&](const KeepOut& off) {
      on[static_cast<int>(off.kind)] |= stands_on(box, off, 0);
    });
    result.blockages += on[static_cast<int>(KeepOutKind::blockage)];
    result.regions += on[static_cast<int>(KeepOutKind::region)];
    result.port_keepout += on[static_cast<int>(KeepOutKind::port)];
    result.orientations += !constraints.allows(node, orientation[node]);
    result.grid += !on_grid(box, constraints.grid_of(node, orientation[node]));
    const Channel& channel = constraints.channel;
    result.channels += channel.is_set() && breaks_channel_at_edge(box, design.canvas, channel, constraints.coarsest);
    HardBox bare = box;
    bare.halo = {};
    for (const HardBox& other : boxes) {
      HardBox bare_other = other;
      bare_other.halo = {};
      result.halos += too_close(box, other, 0, threshold) && !too_close(bare, bare_other, 0, threshold);
      result.channels += channel.is_set() && breaks_channel(box, other, channel, constraints.coarsest);
    }
    boxes.push_back(box);
  }
  return result;
}

}  // namespace placement
