// What places the soft macros (clusters of standard cells) once the hard macros are placed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/design.hpp"

namespace placement {

// Owns its workspace: one instance per thread. The result is a pure function of the hard macros, ports and fixed nodes;
// where the soft macros were before has no influence.
class SoftPlacer {
 public:
  virtual ~SoftPlacer() = default;

  // x, y [N] µm (centres), orientation [N]: every hard macro, port and fixed node is placed and is left untouched; the
  // centres of the movable soft macros are written, each with its rectangle inside the canvas (centred on an axis on
  // which it is larger than the canvas). No centre lies on a blockage that it can leave over one edge.
  virtual void place(double* x, double* y, const std::int8_t* orientation) = 0;
};

// The names that make_soft_placer knows, the default first.
const std::vector<std::string>& soft_placer_names();

// Throws std::invalid_argument, naming the choices, where `name` is none of them.
std::unique_ptr<SoftPlacer> make_soft_placer(const std::string& name, std::shared_ptr<const Design> design);

}  // namespace placement
