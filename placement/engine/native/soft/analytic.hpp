// Soft macros by coordinate descent on the proxy cost itself, from the quadratic wirelength optimum.
//
// In each sweep, each soft macro moves to the gcell of least cost for it while all others do not move. Its cost in all
// gcells is computed at once (PricedWindow): wirelength is a sum of a function of the column and one of the row; routes
// run straight, so that with priced gcells (PriceMaps) their cost is a difference of prefix sums; density is a look-up.
// Early sweeps price softly, which spreads the macros as a smooth density penalty does; late ones price nearly exactly.
// Between the first sweeps, springs along the nets pull the macros together again while holding them ever tighter to
// where the sweep has spread them: this moves connected macros together, which a sweep cannot do. Finally, macros move
// within their gcells.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cost/cost.hpp"
#include "soft/analytic_maps.hpp"
#include "soft/analytic_nets.hpp"
#include "soft/analytic_window.hpp"
#include "soft/soft_placer.hpp"
#include "soft/soft_springs.hpp"

namespace placement {

// Equilibrium of springs along the nets alone: the optimum of the quadratic wirelength.

// Solves (Laplacian of the springs) · position = (pull of the fixed pins) on both axes by conjugate gradients with
// Jacobi preconditioning. The matrix depends on the design alone; the hard macros only change the right-hand side.
class QuadraticStart {
 public:
  // Positions are µm from the canvas centre.
  struct Pair {
    float x = 0, y = 0;
  };

  QuadraticStart(std::shared_ptr<const Design> design, int iterations);

  // Reads the positions of the hard macros, ports and fixed nodes: x, y [N] µm.
  void set_fixed(const double* x, const double* y, const std::int8_t* orientation);

  // The equilibrium positions [S]; with `hold` above 0, each soft macro is also tied to `from` [S] by a spring of
  // `hold` times the weight of all its others. Valid until the next call.
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

struct AnalyticOptions {
  int solver_iterations = 10;  // in the quadratic start and in each pull
  int sweeps = 14;
  int pulls = 7;               // between the first sweeps
  float hold = 0.066F, hold_growth = 2;  // relative stiffness of the ties in the first pull; factor from pull to pull
  int wide_sweeps = 14;        // number of first sweeps over the widest window of PricedWindow; the others use half of
                               // it
  int refining_sweeps = 2;     // within the gcells
  Softness first = {6.0F, 0.25F, 2.6F, 0.47F}, last = {0.016F, 0.031F, 0.5F, 1.4F};  // geometric in between
  // Prices and thresholds are updated after this many moves, but not before one macro in so many has moved, because
  // both visit every gcell, and designs with more macros have more gcells.
  int moves_per_pricing = 32, moves_per_threshold = 128, macros_per_pricing = 48, macros_per_threshold = 12;
  Weights weights;
};

// The same at less than half the time, some 0.005 of proxy cost worse on Ariane.
AnalyticOptions fast_analytic_options();

class Analytic : public SoftPlacer {
 public:
  explicit Analytic(std::shared_ptr<const Design> design, AnalyticOptions options = {});
  void place(double* x, double* y, const std::int8_t* orientation) override;

 private:
  void gather(double* x, double* y, const std::int8_t* orientation, float hold);
  void sweep();
  bool improve(int soft);
  void refine(int soft);
  void refine_on_axis(int soft, bool across);

  std::shared_ptr<const Design> design_;
  AnalyticOptions options_;
  CostEvaluator evaluator_;
  PriceMaps maps_;
  QuadraticStart start_;
  SoftNets nets_;
  PricedWindow window_;
  Softness softness_;
  std::vector<SoftBox> boxes_;                // [S]
  std::vector<QuadraticStart::Pair> centres_;  // [S] µm from the canvas centre
};

}  // namespace placement
