// Which hard macros overlap and which stand beyond the canvas: the one rule that everything in the engine shares.
#pragma once

#include <cstdint>
#include <vector>

#include "common/design.hpp"

namespace placement {

// Lengths that are equal but for the rounding of sums are equal, µm.
inline constexpr double kLengthTolerance = 1e-6;

struct Legality {
  int overlaps = 0;  // pairs of hard macros that overlap by more than the threshold in both directions
  int outside = 0;   // hard macros that reach beyond the canvas
};

// Whether two intervals given by centre and length overlap by more than `threshold`.
inline bool intervals_overlap(double centre_a, double length_a, double centre_b, double length_b, double threshold) {
  const double shared = std::min({(length_a + length_b) / 2 - std::abs(centre_a - centre_b), length_a, length_b});
  return shared > threshold + kLengthTolerance;
}

// Whether an interval reaches beyond [0, extent].
inline bool reaches_beyond(double centre, double length, double extent) {
  return centre - length / 2 < -kLengthTolerance || centre + length / 2 > extent + kLengthTolerance;
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

}  // namespace placement
