// Placers of soft macros (clusters of standard cells) around placed hard macros.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/design.hpp"

namespace placement {

// Owns its workspace: one instance per thread. The result is a pure function of the hard macros, ports and fixed nodes;
// previous positions of soft macros have no influence.
class SoftPlacer {
 public:
  virtual ~SoftPlacer() = default;

  // x, y [N] µm (centres), orientation [N]: every hard macro, port and fixed node is placed and does not move; writes
  // the centres of the movable soft macros, each with its rectangle inside the canvas (centred on an axis on which it
  // is larger than the canvas). No centre lies on a blockage that it can leave over one edge.
  virtual void place(double* x, double* y, const std::int8_t* orientation) = 0;
};

// Names accepted by make_soft_placer, the default first.
const std::vector<std::string>& soft_placer_names();

// Throws std::invalid_argument, which lists the choices, if `name` is unknown.
std::unique_ptr<SoftPlacer> make_soft_placer(const std::string& name, std::shared_ptr<const Design> design);

}  // namespace placement
