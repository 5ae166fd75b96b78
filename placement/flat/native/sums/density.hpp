// Rectangles on a grid of bins: their area per bin, and the mean of maps under them.
// Axis legend: N rectangles, X bins across, Y bins up. Lengths are in bins.
#pragma once
#include <cstdint>

namespace placement::flat {

struct Rectangles {
  std::int64_t count;          // N
  const float* x;              // [N], centres, in bins
  const float* y;              // [N]
  const float* half_width;     // [N]
  const float* half_height;    // [N]
};

struct Bins {
  std::int64_t across, up;
};

// map [X, Y] += charge [N] per rectangle, spread over the bins in proportion to the area it has in each. What lies
// outside of the grid is left out.
void spread(const Rectangles& rectangles, const float* charge, const Bins& bins, float* map);

// mean_x, mean_y [N]: the maps' [X, Y] means under each rectangle, times its charge.
void gather(const Rectangles& rectangles, const float* charge, const Bins& bins, const float* map_x, const float* map_y,
            float* mean_x, float* mean_y);

}  // namespace placement::flat
