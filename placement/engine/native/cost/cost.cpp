#include "cost/cost.hpp"

#include <utility>

namespace placement {

CostEvaluator::CostEvaluator(std::shared_ptr<const Design> design)
    : design_(std::move(design)),
      nets_(shared_compact_nets(*design_)),
      placer_(*design_, *nets_),
      places_(nets_->points()),
      router_(design_->canvas, nets_->points()),
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
  Costs costs = weights.name == CostName::chip ? evaluate_chip(x, y, orientation) : evaluate_proxy(x, y, orientation);
  costs.wirelength_cost = costs.wirelength * nets_->per_wirelength;
  if (weights.tidy > 0) costs.tidy_cost = tidy_cost(x, y, orientation);
  costs.total = weighted_sum(costs, weights);
  return costs;
}

Costs CostEvaluator::evaluate_proxy(const double* x, const double* y, const std::int8_t* orientation) {
  Costs costs;
  steps_.clear();
  cover_.clear();
  for (const int node : macros_) {
    cover_.add(x[node], y[node], design_->width_of(node, orientation[node]),
               design_->height_of(node, orientation[node]), design_->kind_of(node) == Kind::hard, 1.0);
  }
  for (int net = 0; net < nets_->nets();) {  // nets of one size are consecutive
    const int begin = net;
    costs.wirelength += with_size(nets_->size(begin), [&](auto size) {
      double wirelength = 0;
      int at = begin;
      for (; at < nets_->nets() && (size == 0 || nets_->size(at) == size); ++at) {
        const std::int32_t* points = nets_->net_points.data() + nets_->net_start[at];
        const double length = router_.add<size>(places_.data(), points, nets_->size(at), nets_->route_weight[at], steps_);
        wirelength += nets_->weighted_length(at, length);
      }
      net = at;
      return wirelength;
    });
  }
  costs.density_cost = grid_.density_cost(cover_.density());
  costs.congestion_cost = grid_.congestion_cost(steps_, cover_);
  return costs;
}

double CostEvaluator::tidy_cost(const double* x, const double* y, const std::int8_t* orientation) {
  if (!tidiness_) tidiness_ = std::make_unique<Tidiness>(*design_);
  tidiness_->clear();
  for (const int node : macros_) tidiness_->add(node, x[node], y[node], orientation[node]);
  return tidiness_->cost();
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
  costs.density_cost = chip_->density_cost();
  costs.congestion_cost = chip_->congestion_cost();
  return costs;
}

}  // namespace placement
