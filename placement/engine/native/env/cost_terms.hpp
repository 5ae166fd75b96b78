// Cost terms of libraries that were built apart from the engine (placement/engine/include/placement_cost_term.hpp).
#pragma once

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../include/placement_cost_term.hpp"
#include "common/design.hpp"

namespace placement {

struct WeightedTerm {
  const placement_cost_term* term;  // of a library that stays loaded
  double weight;
};

// The terms made for one design; owns their workspace, so one per thread.
class CostTerms {
 public:
  // Throws std::invalid_argument where a term cannot be used on the design.
  CostTerms(std::shared_ptr<const Design> design, const std::vector<WeightedTerm>& terms) : design_(std::move(design)) {
    const Design& d = *design_;
    const placement_design shown = {d.nodes(), d.pins(), d.nets(), d.canvas.columns, d.canvas.rows,
                                    d.canvas.width, d.canvas.height, d.kind.data(), d.node_width.data(),
                                    d.node_height.data(), d.pin_node.data(), d.pin_dx.data(), d.pin_dy.data(),
                                    d.net_weight.data(), d.net_start.data(), d.net_pins.data()};
    for (const WeightedTerm& one : terms) {
      made_.push_back({one, {one.term->make(&shown), one.term->destroy}});
      if (!made_.back().state) {
        throw std::invalid_argument("cost term '" + std::string(one.term->name) + "' cannot be used on this design");
      }
    }
  }

  // Their weighted sum; x, y [N] µm. Throws std::runtime_error where one is not finite.
  double operator()(const double* x, const double* y, const std::int8_t* orientation) const {
    double sum = 0;
    for (const Made& one : made_) {
      const double value = one.weighted.term->evaluate(one.state.get(), x, y, orientation);
      if (!std::isfinite(value)) {
        throw std::runtime_error("cost term '" + std::string(one.weighted.term->name) + "' gave no finite number");
      }
      sum += one.weighted.weight * value;
    }
    return sum;
  }

 private:
  struct Made {
    WeightedTerm weighted;
    std::unique_ptr<void, void (*)(void*)> state;
  };
  std::shared_ptr<const Design> design_;
  std::vector<Made> made_;
};

}  // namespace placement
