// Soft macros by coordinate descent on the proxy cost itself, from the quadratic wirelength optimum.
//
// Sweep after sweep, each soft macro goes to the gcell of least cost for it while all others stay. Its cost in every
// gcell comes at once (PricedWindow): wirelength is a sum of a function of the column and one of the row; routes run
// straight, so that with priced gcells (PriceMaps) their cost is a difference of running sums; density is a look-up.
// Early sweeps price softly, which spreads the macros as a smooth density penalty does; late ones price nearly exactly.
// Between the first sweeps, springs along the nets pull the macros together again while holding them near where the
// sweep has spread them to, ever tighter: what a sweep cannot do, moving connected macros together. At last, macros move
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

// Where springs along the nets pull the soft macros if nothing pushes: the optimum of the quadratic wirelength.

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

struct AnalyticOptions {
  int solver_iterations = 10;  // of the quadratic start and of each pull
  int sweeps = 14;
  int pulls = 7;               // between the first sweeps
  float hold = 0.066F, hold_growth = 2;  // stiffness of the ties, relative to the springs, of the first pull; from pull to pull
  int wide_sweeps = 14;        // the first that look as far as PricedWindow can; the others look half as far
  int refining_sweeps = 2;     // within the gcells
  Softness first = {6.0F, 0.25F, 2.6F, 0.47F}, last = {0.016F, 0.031F, 0.5F, 1.4F};  // geometric between
  // After so many moves prices, thresholds are brought up to date; but not before one macro in so many has moved, for
  // both look at every gcell, and designs with more macros have more gcells.
  int moves_per_pricing = 32, moves_per_threshold = 128, macros_per_pricing = 48, macros_per_threshold = 12;
  Weights weights;
};

// The same, some 0.005 of proxy cost worse on Ariane in under half the time.
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
