// The inner sums of the electrostatic placer.
#pragma once
#include <cstdint>

namespace placement::flat {

// Rectangles on a grid of bins: their area per bin, and the mean of maps under them.
// Axis legend: N rectangles, X bins across, Y bins up. Lengths are in bins.

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

// Weighted-average wirelength and its gradient (Hsu, Chang, Balabanov: "TSV-aware analytical placement for 3D IC
// designs", 2011), for all nets at once. Axis legend: N nodes, E nets, L net-pin incidences.

// The nets as arrays. A fixed pin belongs to node N at the origin: its offset is its position.
struct Nets {
  std::int64_t nodes;             // N, without the one at the origin
  std::int64_t nets;              // E
  const std::int32_t* net_start;  // [E+1]
  const std::int32_t* pin_node;   // [L], of [0, N]
  const float* pin_offset_x;      // [L], µm
  const float* pin_offset_y;      // [L], µm
  const float* net_weight;        // [E]
  const std::int32_t* node_start;  // [N+1]
  const std::int32_t* node_pins;   // the incidences of each node
};

// Writes the gradient of the weighted-average wirelength with respect to the nodes' positions.
// x, y: [N+1], µm, the last one 0. per_gamma: 1/µm. gradient_x, gradient_y: [N].
// Returns the weighted half-perimeter wirelength, µm.
double weighted_average(const Nets& nets, const float* x, const float* y, float per_gamma, float* gradient_x,
                        float* gradient_y);

}  // namespace placement::flat
