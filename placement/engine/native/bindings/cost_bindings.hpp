// Common code of the cost bindings: checks of whole placements, costs as a tuple.
#pragma once

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "cost/cost.hpp"

namespace placement {

using Vector = InputVector<double>;
using Orientations = InputVector<std::int8_t>;

// The Python interface checks with better messages; this prevents out-of-bounds reads if it misses a case.
inline void require_placement(const Design& design, const Vector& x, const Vector& y, const Orientations& orientation) {
  const auto nodes = static_cast<std::size_t>(design.nodes());
  if (x.shape(0) != nodes || y.shape(0) != nodes || orientation.shape(0) != nodes) {
    throw nanobind::value_error("x, y and orientation must have one value per node");
  }
  for (std::size_t node = 0; node < nodes; ++node) {
    if (orientation.data()[node] < 0 || orientation.data()[node] > 7) {
      throw nanobind::value_error("every orientation must be in [0, 8)");
    }
    if (!std::isfinite(x.data()[node]) || !std::isfinite(y.data()[node])) {
      throw nanobind::value_error("every coordinate must be finite");
    }
  }
}

// Copies a placement of all nodes into NumPy arrays.
inline void write_placement(const std::vector<double>& x, const std::vector<double>& y,
                            const std::vector<std::int8_t>& orientation, OutputVector<double> to_x,
                            OutputVector<double> to_y, OutputVector<std::int8_t> to_orientation) {
  if (to_x.shape(0) != x.size() || to_y.shape(0) != x.size() || to_orientation.shape(0) != x.size()) {
    throw nanobind::value_error("x, y and orientation must have one value per node");
  }
  std::copy(x.begin(), x.end(), to_x.data());
  std::copy(y.begin(), y.end(), to_y.data());
  std::copy(orientation.begin(), orientation.end(), to_orientation.data());
}

// Weights of wirelength, density and congestion, the name of the cost, and the weight of tidiness.
using BoundWeights = std::tuple<double, double, double, std::string, double>;

inline Weights as_weights(const BoundWeights& weights) {
  return {std::get<0>(weights), std::get<1>(weights), std::get<2>(weights), cost_name(std::get<3>(weights)),
          std::get<4>(weights)};
}

using CostTuple = std::tuple<double, double, double, double, double>;

inline CostTuple as_tuple(const Costs& costs) {
  return {costs.wirelength, costs.wirelength_cost, costs.density_cost, costs.congestion_cost, costs.total};
}

}  // namespace placement
