// The proxy cost, exactly: wirelength, density and congestion of a placement.
#pragma once

#include <cstdint>
#include <memory>

#include "design.hpp"

namespace placement {

struct Weights {
  double wirelength = 1.0, density = 0.5, congestion = 0.5;
};

struct Costs {
  double wirelength = 0;  // µm, weighted half-perimeter sum
  double wirelength_cost = 0, density_cost = 0, congestion_cost = 0, proxy_cost = 0;
};

}  // namespace placement
