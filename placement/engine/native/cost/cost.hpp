// Exact cost of a placement: wirelength, density and congestion of the proxy or the chip cost.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/design.hpp"
#include "cost/chip_cost.hpp"
#include "cost/compact_nets.hpp"
#include "cost/grid_cost.hpp"
#include "cost/macro_cover.hpp"
#include "cost/net_router.hpp"
#include "cost/routing.hpp"
#include "cost/tidiness.hpp"

namespace placement {

// The cost to compute, and the weights of its terms.

enum class CostName { proxy, chip };

// Throws std::invalid_argument if `name` is unknown.
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

struct Costs {
  double wirelength = 0;  // µm, weighted half-perimeter sum
  double wirelength_cost = 0, density_cost = 0, congestion_cost = 0;
  double tidy_cost = 0;  // computed if its weight is not 0
  double total = 0;  // weighted sum, of the cost that the weights name
};

inline double weighted_sum(const Costs& costs, const Weights& weights) {
  return weights.wirelength * costs.wirelength_cost + weights.density * costs.density_cost +
         weights.congestion * costs.congestion_cost + weights.tidy * costs.tidy_cost;
}

// A pure function of design, placement and weights. Owns its workspace: one evaluator per thread; no allocation per
// call.
class CostEvaluator {
 public:
  explicit CostEvaluator(std::shared_ptr<const Design> design);

  // x, y [N] µm, orientation [N]; finite for every node.
  Costs evaluate(const double* x, const double* y, const std::int8_t* orientation, const Weights& weights);

  // Maps of the last evaluation of the proxy cost. Density [R, C]: area of macros over the gcell's area. Congestion: routing demand over
  // capacity, vertical [R, C], horizontal [C, R], column by column.
  const std::vector<double>& density_map() const { return cover_.density(); }
  const double* vertical_map() const { return grid_.vertical(); }
  const double* horizontal_map() const { return grid_.horizontal(); }

  // The chip cost's terms and maps at its last evaluation; null before the first.
  ChipCost* chip() const { return chip_.get(); }

  const Design& design() const { return *design_; }

 private:
  // Without the wirelength cost and the total.
  Costs evaluate_proxy(const double* x, const double* y, const std::int8_t* orientation);
  Costs evaluate_chip(const double* x, const double* y, const std::int8_t* orientation);
  double tidy_cost(const double* x, const double* y, const std::int8_t* orientation);

  std::shared_ptr<const Design> design_;
  std::shared_ptr<const CompactNets> nets_;
  PointPlacer placer_;
  std::vector<std::int32_t> macros_;  // hard and soft
  std::vector<PointPlace> places_;    // [Q]
  NetRouter router_;
  RouteSteps steps_;
  MacroCover cover_;
  GridCost grid_;
  std::unique_ptr<ChipCost> chip_;  // created on first use
  std::unique_ptr<Tidiness> tidiness_;  // created on first use
};

}  // namespace placement
