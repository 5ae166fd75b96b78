// The legal position nearest to where a box was, among boxes that are placed: the legaliser's inner loop.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace placement {

// Open rectangles in which the centre of a box may not be, [count] each, µm.
struct TakenAreas {
  std::size_t count;
  const double *x_low, *y_low, *x_high, *y_high;
};

// The centre inside [low, high] (µm, by axis) and in no taken area with the least distance |Δx| + |Δy| from `start`;
// nothing where there is none. Where several are as near, the one that is nearest across, the left one of two.
std::optional<std::array<double, 2>> nearest_legal_position(const std::array<double, 2>& start,
                                                            const std::array<double, 2>& low,
                                                            const std::array<double, 2>& high, const TakenAreas& taken);

}  // namespace placement
