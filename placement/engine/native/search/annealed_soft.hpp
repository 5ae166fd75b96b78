// Soft macros that end where the cost wants them: the fast analytic placement, then moves that lower the exact cost.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/design.hpp"
#include "cost/cost.hpp"
#include "search/annealer.hpp"
#include "soft/soft_placer.hpp"

namespace placement {

class AnnealedSoft final : public SoftPlacer {
 public:
  // `weights`: of the cost that is lowered.
  AnnealedSoft(std::shared_ptr<const Design> design, const Weights& weights);

  void place(double* x, double* y, const std::int8_t* orientation) override;

 private:
  std::shared_ptr<const Design> held_;  // the design with its hard macros fixed
  Weights weights_;
  std::int64_t moves_ = 0;
  std::unique_ptr<SoftPlacer> start_;
  std::unique_ptr<Annealer> annealer_;
  AnnealerState initial_;  // of the annealer: no placement may depend on those before it
};

// As make_soft_placer, but knows "annealed" as well.
std::unique_ptr<SoftPlacer> make_soft_placer(const std::string& name, std::shared_ptr<const Design> design,
                                             const Weights& weights);

}  // namespace placement
