// Which cost is computed, and the weights of its terms.
#pragma once

#include <stdexcept>
#include <string>

namespace placement {

enum class CostName { proxy, chip };

// Throws std::invalid_argument where `name` is none.
inline CostName cost_name(const std::string& name) {
  if (name == "proxy") return CostName::proxy;
  if (name == "chip") return CostName::chip;
  throw std::invalid_argument("cost '" + name + "' must be proxy or chip");
}

struct Weights {
  double wirelength = 1.0, density = 0.5, congestion = 0.5;
  CostName name = CostName::proxy;
  double tidy = 0.0;
};

}  // namespace placement
