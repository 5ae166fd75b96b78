// The legal position nearest to the original one of a box, among placed boxes: the legaliser's inner loop.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace placement {

// Open rectangles closed to the centre of a box, [count] each, µm.
struct TakenAreas {
  std::size_t count;
  const double *x_low, *y_low, *x_high, *y_high;
};

// The centre inside [low, high] (µm, by axis) and outside all taken areas with the least distance |Δx| + |Δy| from
// `start`; empty if there is none. Ties go to the nearest across, then to the left.
std::optional<std::array<double, 2>> nearest_legal_position(const std::array<double, 2>& start,
                                                            const std::array<double, 2>& low,
                                                            const std::array<double, 2>& high, const TakenAreas& taken);

}  // namespace placement
