#include "cost/cost.hpp"

#include <utility>

namespace placement {

CostEvaluator::CostEvaluator(std::shared_ptr<const Design> design)
    : design_(std::move(design)),
      nets_(shared_compact_nets(*design_)),
      placer_(*design_, *nets_),
      places_(nets_->points()),
      distinct_(design_->canvas, nets_->points()),
      steps_(design_->canvas),
      cover_(design_->canvas),
      grid_(design_->canvas) {
  for (int node = 0; node < design_->nodes(); ++node) {
    const Kind kind = design_->kind_of(node);
    if (kind == Kind::hard || kind == Kind::soft) macros_.push_back(node);
  }
}

Costs CostEvaluator::evaluate(const double* x, const double* y, const std::int8_t* orientation,
                              const Weights& weights) {
  for (int node = 0; node < design_->nodes(); ++node) {
    placer_.place(node, x[node], y[node], orientation[node], places_.data());
  }
  Costs costs;
  if (weights.name == CostName::chip) {
    costs = evaluate_chip(x, y, orientation);
    costs.total = weighted_sum(costs, weights);
    return costs;
  }
  steps_.clear();
  cover_.clear();
  for (const int node : macros_) {
    cover_.add(x[node], y[node], design_->width_of(node, orientation[node]),
               design_->height_of(node, orientation[node]), design_->kind_of(node) == Kind::hard, 1.0);
  }
  int net = 0;  // they are in order of size
  costs.wirelength = route_nets<2>(net);
  costs.wirelength += route_nets<3>(net);
  costs.wirelength += route_nets<4>(net);
  costs.wirelength += route_nets<5>(net);
  costs.wirelength += route_nets<6>(net);
  costs.wirelength += route_nets<0>(net);
  costs.wirelength_cost = costs.wirelength * nets_->per_wirelength;
  costs.density_cost = grid_.density_cost(cover_.density());
  costs.congestion_cost = grid_.congestion_cost(steps_, cover_);
  costs.total = weighted_sum(costs, weights);
  return costs;
}

Costs CostEvaluator::evaluate_chip(const double* x, const double* y, const std::int8_t* orientation) {
  if (!chip_) chip_ = std::make_unique<ChipCost>(*design_, *nets_);
  chip_->clear();
  for (const int node : macros_) {
    chip_->add_macro(*design_, node, x[node], y[node], orientation[node], 1.0);
  }
  Costs costs;
  for (int net = 0; net < nets_->nets(); ++net) {
    const NetSpread spread = chip_->wires().spread(*nets_, net, places_.data());
    chip_->wires().add(spread, 1.0);
    costs.wirelength += nets_->weighted_length(net, spread.width + spread.height);
  }
  costs.wirelength_cost = costs.wirelength * nets_->per_wirelength;
  costs.density_cost = chip_->density_cost();
  costs.congestion_cost = chip_->congestion_cost();
  return costs;
}

// The sizes that most nets have are compiled each for itself.
template <int size>
double CostEvaluator::route_nets(int& net) {
  const PointPlace* places = places_.data();
  double wirelength = 0;
  for (; net < nets_->nets(); ++net) {
    const std::int32_t* points = nets_->net_points.data() + nets_->net_start[net];
    const int count = nets_->net_start[net + 1] - nets_->net_start[net];
    if (size != 0 && count != size) break;
    const double weight = nets_->route_weight[net];
    wirelength += nets_->weighted_length(net, half_perimeter(places, points, size != 0 ? size : count));
    if constexpr (size == 2) {
      steps_.add_two(places[points[0]], places[points[1]], weight);
    } else if constexpr (size != 0) {
      const PointPlace* cells[size + 1];
      const int distinct = find_distinct<size>(places, points, cells);
      steps_.add(cells, distinct, weight);
    } else {
      const int distinct = distinct_.find(places, points, count);
      steps_.add(distinct_.cells(), distinct, weight);
    }
  }
  return wirelength;
}

}  // namespace placement
