#include "cost.hpp"

#include <utility>

namespace placement {

CostEvaluator::CostEvaluator(std::shared_ptr<const Design> design)
    : design_(std::move(design)),
      nets_(*design_),
      placer_(*design_, nets_),
      places_(nets_.points()),
      distinct_(design_->canvas, nets_.points()),
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
  steps_.clear();
  cover_.clear();
  for (const int node : macros_) {
    cover_.add(x[node], y[node], design_->width_of(node, orientation[node]),
               design_->height_of(node, orientation[node]), design_->kind_of(node) == Kind::hard, 1.0);
  }
  Costs costs;
  costs.wirelength = route_nets();
  costs.wirelength_cost = costs.wirelength * nets_.per_wirelength;
  costs.density_cost = grid_.density_cost(cover_.density());
  costs.congestion_cost = grid_.congestion_cost(steps_, cover_);
  costs.proxy_cost = weights.wirelength * costs.wirelength_cost + weights.density * costs.density_cost +
                     weights.congestion * costs.congestion_cost;
  return costs;
}

double CostEvaluator::route_nets() {
  const PointPlace* places = places_.data();
  double wirelength = 0;
  const std::int32_t* points = nets_.net_points.data();
  int net = 0;
  for (; net < nets_.two_point_nets; ++net, points += 2) {
    wirelength += nets_.weighted_length(net, half_perimeter(places, points, 2));
    steps_.add_two(places[points[0]], places[points[1]], nets_.route_weight[net]);
  }
  for (; net < nets_.nets(); ++net) {
    const int count = nets_.net_start[net + 1] - nets_.net_start[net];
    wirelength += nets_.weighted_length(net, half_perimeter(places, points, count));
    const int distinct = distinct_.find(places, points, count);
    steps_.add(places, distinct_.points(), distinct, nets_.route_weight[net]);
    points += count;
  }
  return wirelength;
}

}  // namespace placement
