// The quadratic wirelength optimum of the soft macros: where springs along the nets pull them if nothing pushes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "soft_springs.hpp"

namespace placement {

// Solves (Laplacian of the springs) · position = (pull of the standing pins) for both axes by conjugate gradients with
// Jacobi preconditioning. The matrix depends on the design alone; hard macros only change the right-hand side.
class QuadraticStart {
 public:
  QuadraticStart(std::shared_ptr<const Design> design, int iterations);

  // Writes the centres, µm, of the movable soft macros into x, y [N]; they may lie outside the canvas.
  void place(double* x, double* y, const std::int8_t* orientation);

  const std::vector<std::int32_t>& nodes() const { return springs_.node; }

 private:
  struct Pair {
    float x = 0, y = 0;
  };
  void multiply(const std::vector<Pair>& values, std::vector<Pair>& product) const;

  std::shared_ptr<const Design> design_;
  int iterations_;
  SoftSprings springs_;
  std::vector<float> diagonal_;                                      // [S]
  std::vector<Pair> solution_, residual_, direction_, product_;  // [S]
};

}  // namespace placement
