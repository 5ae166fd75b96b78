// The legal position nearest to where a box was, among boxes that are placed: the legaliser's inner loop.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace placement {

// Placed boxes, [count] each, µm: their centres, and how far on each axis another box's centre is from theirs when
// the two touch.
struct PlacedBoxes {
  std::size_t count;
  const double *x, *y, *reach_x, *reach_y;
};

// The centre inside [low, high] (µm, by axis) with the least distance |Δx| + |Δy| from `start` at which a box comes
// nearer to none of the others than touching; nothing where there is none. Where several are as near, the one that is
// nearest across.
std::optional<std::array<double, 2>> nearest_legal_position(const std::array<double, 2>& start, const std::array<double, 2>& low,
                                                   const std::array<double, 2>& high, const PlacedBoxes& boxes);

}  // namespace placement
