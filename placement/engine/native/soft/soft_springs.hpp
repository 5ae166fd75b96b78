// The design as seen from its movable soft macros: driver-sink connections merged into springs between soft macros and
// springs to fixed pins. Depends on the design alone, so it is built once and shared by every placement. Axis legend: S
// movable soft macros, K springs between them (both directions), F springs to fixed pins.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/design.hpp"

namespace placement {

struct SoftSprings {
  std::vector<std::int32_t> node;             // [S] design node of each movable soft macro
  std::vector<std::int32_t> start;            // [S+1]
  std::vector<std::int32_t> other;            // [K] movable soft macro at the far end
  std::vector<float> weight;                  // [K] summed net weights
  std::vector<float> pull_x, pull_y;          // [S] µm·weight, contribution of the soft macros' pin offsets
  std::vector<std::int32_t> fixed_start;   // [S+1]
  std::vector<std::int32_t> fixed_pin;     // [F] design pin
  std::vector<float> fixed_weight;         // [F]
  std::vector<float> total_weight;            // [S] of all its springs

  int count() const { return static_cast<int>(node.size()); }
};

// Conversion of a net into springs: `star`, one of the net's weight from the driver to each sink; `clique`, one between
// any two pins, of the net's weight over the number of pins less one. Nets of more than 256 pins are always stars.
enum class SpringModel { star, clique };

// `io_factor` multiplies the weight of every spring that ends in a port.
SoftSprings make_soft_springs(const Design& design, SpringModel model, double io_factor = 1);
// The design's own springs if the factor is 1, made at the first call. The design must be complete by then.
std::shared_ptr<const SoftSprings> shared_soft_springs(const Design& design, SpringModel model, double io_factor = 1);

// Position of pin `pin` if its node is at (x, y). Pins turn with hard macros, not with soft macros.
struct Point {
  double x = 0, y = 0;
};
inline Point pin_position(const Design& design, int pin, const double* x, const double* y,
                          const std::int8_t* orientation) {
  const int node = design.pin_node[pin];
  const double dx = design.pin_dx[pin], dy = design.pin_dy[pin];
  if (design.kind_of(node) != Kind::hard) return {x[node] + dx, y[node] + dy};
  const auto& turn = kTurn[orientation[node]];
  return {x[node] + turn[0] * dx + turn[1] * dy, y[node] + turn[2] * dx + turn[3] * dy};
}

}  // namespace placement
