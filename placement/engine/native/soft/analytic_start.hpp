// Where springs along the nets pull the soft macros if nothing pushes: the optimum of the quadratic wirelength.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "soft/soft_springs.hpp"

namespace placement {

// Solves (Laplacian of the springs) · position = (pull of the fixed pins) on both axes by conjugate gradients with
// Jacobi preconditioning. The matrix depends on the design alone; the hard macros only change the right-hand side.
class QuadraticStart {
 public:
  // Positions are µm from the canvas centre.
  struct Pair {
    float x = 0, y = 0;
  };

  QuadraticStart(std::shared_ptr<const Design> design, int iterations);

  // Takes in where the hard macros, ports and fixed nodes are: x, y [N] µm.
  void set_fixed(const double* x, const double* y, const std::int8_t* orientation);

  // The positions [S] that the springs pull to; with `hold` above 0, when each soft macro is also tied to `from` [S] by a
  // spring of `hold` times the weight of all its others. Valid until the next call.
  const std::vector<Pair>& solve(const std::vector<Pair>& from, float hold);

  const std::vector<std::int32_t>& nodes() const { return springs_->node; }

 private:
  void multiply(const std::vector<Pair>& values, std::vector<Pair>& product) const;
  void start(const std::vector<Pair>& from, float hold);

  std::shared_ptr<const Design> design_;
  int iterations_;
  std::shared_ptr<const SoftSprings> springs_;
  float anchor_ = 1;                                             // stiffness that ties each macro to the centre
  std::vector<float> diagonal_;                                  // [S]
  std::vector<Pair> pull_;                                       // [S] µm·weight
  std::vector<Pair> solution_, residual_, direction_, product_;  // [S]
};

}  // namespace placement
