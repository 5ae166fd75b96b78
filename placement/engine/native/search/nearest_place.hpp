// The free place nearest to where a box was, among boxes that stand: what the legaliser asks for again and again.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace placement {

// Boxes that stand, [count] each, µm: their centres, and how far on each axis another box's centre is from theirs when
// the two touch.
struct StandingBoxes {
  std::size_t count;
  const double *x, *y, *reach_x, *reach_y;
};

// The centre inside [low, high] (µm, by axis) with the least distance |Δx| + |Δy| from `start` at which a box comes
// nearer to none of the others than touching; nothing where there is none. Where several are as near, the one that is
// nearest across.
std::optional<std::array<double, 2>> nearest_place(const std::array<double, 2>& start, const std::array<double, 2>& low,
                                                   const std::array<double, 2>& high, const StandingBoxes& boxes);

}  // namespace placement
