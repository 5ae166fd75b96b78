// Weighted-average wirelength and its gradient (Hsu, Chang, Balabanov: "TSV-aware analytical placement for 3D IC
// designs", 2011), for all nets at once. Axis legend: N nodes, E nets, L net-pin incidences.
#pragma once
#include <cstdint>

namespace placement::flat {

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
