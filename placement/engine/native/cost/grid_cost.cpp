#include "cost/grid_cost.hpp"

#include <algorithm>

namespace placement {
namespace {

// Both the densest tenth of the gcells and, of the two congestion maps, the busiest twentieth.
int counted(int cells) { return std::max(1, cells / 10); }

}  // namespace

GridCost::GridCost(const Canvas& canvas)
    : cells_(canvas.cells()),
      reach_(std::min(canvas.smoothing, std::max(canvas.columns, canvas.rows))),
      vertical_axis_{canvas.rows, canvas.columns, 1.0 / (canvas.cell_width() * canvas.routes_vertical),
                     canvas.macro_routes_vertical / canvas.routes_vertical},
      horizontal_axis_{canvas.columns, canvas.rows, 1.0 / (canvas.cell_height() * canvas.routes_horizontal),
                       canvas.macro_routes_horizontal / canvas.routes_horizontal},
      densest_(cells_, counted(cells_)),
      busiest_(2 * cells_, counted(cells_)),
      congestion_(2 * cells_, 0.0),
      running_(std::max(canvas.columns, canvas.rows)),
      shared_(running_.size() + 2 * reach_) {}

double GridCost::density_cost(const std::vector<double>& density) {
  if (cells_ >= 10) return 0.5 * densest_(density.data());
  int occupied = 0;
  double sum = 0;
  for (const double value : density) {
    sum += value;
    occupied += value > 0;
  }
  return occupied > 0 ? 0.5 * sum / occupied : 0.0;
}

double GridCost::congestion_cost(const RouteSteps& steps, const MacroCover& cover) {
  fill(vertical_axis_, steps.vertical().data(), cover.vertical_block().data(), congestion_.data());
  fill(horizontal_axis_, steps.horizontal().data(), cover.horizontal_block().data(), congestion_.data() + cells_);
  return busiest_(congestion_.data());
}

void GridCost::fill(const Axis& axis, const double* steps, const double* block, double* map) {
  double* running = running_.data();
  const double per_capacity = axis.per_capacity, block_share = axis.block_share;
  std::fill(running_.begin(), running_.end(), 0.0);
  for (int line = 0; line < axis.lines; ++line) {
    for (int i = 0; i < axis.length; ++i) running[i] += steps[i];
    if (reach_ == 0) {
      for (int i = 0; i < axis.length; ++i) map[i] = running[i] * per_capacity + block[i] * block_share;
    } else {
      smooth(axis, running, map);
      for (int i = 0; i < axis.length; ++i) map[i] += block[i] * block_share;
    }
    steps += axis.length;
    block += axis.length;
    map += axis.length;
  }
}

// Shares each gcell's demand out evenly over those within reach.
void GridCost::smooth(const Axis& axis, const double* demand, double* map) {
  double* shared = shared_.data() + reach_;
  std::fill(shared_.begin(), shared_.end(), 0.0);
  for (int i = 0; i < axis.length; ++i) {
    const int sharers = std::min(axis.length - 1, i + reach_) - std::max(0, i - reach_) + 1;
    shared[i] = demand[i] * axis.per_capacity / sharers;
  }
  std::fill(map, map + axis.length, 0.0);
  for (int offset = -reach_; offset <= reach_; ++offset) {
    for (int i = 0; i < axis.length; ++i) map[i] += shared[i + offset];
  }
}

}  // namespace placement
