#include "cost/grid_cost.hpp"

#include <algorithm>
#include <cstring>

namespace placement {
namespace {

std::vector<double> sharers(int length, int reach) {
  std::vector<double> counts(length);
  for (int i = 0; i < length; ++i) counts[i] = std::min(length - 1, i + reach) - std::max(0, i - reach) + 1;
  return counts;
}

}  // namespace

int smoothing_reach(const Canvas& canvas) {
  return std::min(canvas.smoothing, std::max(canvas.columns, canvas.rows));
}

GridAxis vertical_axis(const Canvas& canvas) {
  return {canvas.rows, canvas.columns, 1.0 / (canvas.cell_width() * canvas.routes_vertical),
          canvas.macro_routes_vertical / canvas.routes_vertical, sharers(canvas.columns, smoothing_reach(canvas))};
}

GridAxis horizontal_axis(const Canvas& canvas) {
  return {canvas.columns, canvas.rows, 1.0 / (canvas.cell_height() * canvas.routes_horizontal),
          canvas.macro_routes_horizontal / canvas.routes_horizontal, sharers(canvas.rows, smoothing_reach(canvas))};
}

// Both the densest tenth of the gcells and, of the two congestion maps, the busiest twentieth.
int counted_gcells(const Canvas& canvas) { return std::max(1, canvas.cells() / 10); }

double density_cost_of_few(const std::vector<double>& density) {
  int occupied = 0;
  double sum = 0;
  for (const double value : density) {
    sum += value;
    occupied += value > 0;
  }
  return occupied > 0 ? 0.5 * sum / occupied : 0.0;
}

GridCost::GridCost(const Canvas& canvas)
    : cells_(canvas.cells()),
      reach_(smoothing_reach(canvas)),
      vertical_axis_(vertical_axis(canvas)),
      horizontal_axis_(horizontal_axis(canvas)),
      densest_(cells_, counted_gcells(canvas)),
      busiest_(2 * cells_, counted_gcells(canvas)),
      congestion_(2 * cells_, 0.0),
      demand_(2 * cells_, 0.0),
      blocked_(2 * cells_, 0.0),
      running_(std::max(canvas.columns, canvas.rows)),
      shared_(running_.size() + 2 * reach_) {}

double GridCost::density_cost(const std::vector<double>& density) {
  return cells_ >= 10 ? 0.5 * densest_(density.data()) : density_cost_of_few(density);
}

double GridCost::congestion_cost(const RouteSteps& steps, const MacroCover& cover) {
  fill(vertical_axis_, steps.vertical().data(), cover.vertical_block().data(), 0);
  fill(horizontal_axis_, steps.horizontal().data(), cover.horizontal_block().data(), cells_);
  is_filled_ = true;
  return busiest_(congestion_.data());
}

// A line's map follows from its demand and blockage alone, so lines that are as they were last time are left as they are.
void GridCost::fill(const GridAxis& axis, const double* steps, const double* block, int at) {
  double* running = running_.data();
  std::fill(running_.begin(), running_.end(), 0.0);
  const std::size_t line_size = axis.length * sizeof(double);
  for (int line = 0; line < axis.lines; ++line, at += axis.length, steps += axis.length, block += axis.length) {
    double* demand = demand_.data() + at;
    double* blocked = blocked_.data() + at;
    for (int i = 0; i < axis.length; ++i) running[i] += steps[i];
    double* map = congestion_.data() + at;
    if (reach_ == 0) {  // as cheap as looking for what changed
      for (int i = 0; i < axis.length; ++i) map[i] = running[i] * axis.per_capacity + block[i] * axis.block_share;
      continue;
    }
    int first = 0, last = axis.length;
    if (is_filled_) {
      const bool same_demand = std::memcmp(running, demand, line_size) == 0;
      if (same_demand && std::memcmp(block, blocked, line_size) == 0) continue;
      const auto same = [&](int i) { return running[i] == demand[i] && block[i] == blocked[i]; };
      while (first < last && same(first)) ++first;
      while (last > first && same(last - 1)) --last;
      if (first == last) continue;
    }
    std::copy(running + first, running + last, demand + first);
    std::copy(block + first, block + last, blocked + first);
    first = std::max(0, first - reach_);
    last = std::min(axis.length, last + reach_);
    smooth(axis, demand, map, first, last);
    for (int i = first; i < last; ++i) map[i] += blocked[i] * axis.block_share;
  }
}

// Shares each gcell's demand out evenly over those within reach; writes [first, last) of the line.
void GridCost::smooth(const GridAxis& axis, const double* demand, double* map, int first, int last) {
  double* shared = shared_.data() + reach_;
  const double* sharers = axis.sharers.data();
  const int low = std::max(0, first - reach_), high = std::min(axis.length, last + reach_);
  for (int i = low; i < high; ++i) shared[i] = demand[i] * axis.per_capacity / sharers[i];
  if (high == axis.length) std::fill_n(shared + high, reach_, 0.0);  // the other axis' lines may be longer
  if (reach_ == 2) {
    for (int i = first; i < last; ++i) {
      map[i] = 0.0 + shared[i - 2] + shared[i - 1] + shared[i] + shared[i + 1] + shared[i + 2];
    }
    return;
  }
  std::fill(map + first, map + last, 0.0);
  for (int offset = -reach_; offset <= reach_; ++offset) {
    for (int i = first; i < last; ++i) map[i] += shared[i + offset];
  }
}

}  // namespace placement
