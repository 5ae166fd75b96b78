#include "cost/grid_cost.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // the vector calling convention matters across libraries only
#endif

namespace placement {
namespace {

constexpr int kMostUnits = 10000;  // maximum number of units of a gcell's demand; up to a reach of 4 there are 2,520

// Number of gcells that share the demand of gcell i of a line.
int sharers(int length, int reach, int i) { return std::min(length - 1, i + reach) - std::max(0, i - reach) + 1; }

GridAxis make_axis(int lines, int length, int reach, double per_capacity, double block_share) {
  int units = 1;  // least common multiple of the numbers of sharers
  for (int i = 0; i < length && units <= kMostUnits; ++i) units = std::lcm(units, sharers(length, reach, i));
  const bool whole = units <= kMostUnits;
  if (!whole) units = 1;
  GridAxis axis{lines, length, block_share, std::vector<double>(length), per_capacity / units, whole};
  for (int i = 0; i < length; ++i) axis.shares[i] = static_cast<double>(units) / sharers(length, reach, i);
  return axis;
}

// Four doubles; each lane computes the scalar arithmetic.
typedef double Four __attribute__((vector_size(32)));
Four load(const double* from) {
  Four four;
  std::memcpy(&four, from, sizeof four);
  return four;
}

// Five gcells share; the last four values may overlap the previous ones, because their inputs do not change.
void smooth_five(const double* shared, const GridAxis& axis, const double* blocked, int count, double* map) {
  if (count < 4) {
    for (int i = 0; i < count; ++i) {
      const double sum = 0.0 + shared[i] + shared[i + 1] + shared[i + 2] + shared[i + 3] + shared[i + 4];
      map[i] = sum * axis.per_unit + blocked[i] * axis.block_share;
    }
    return;
  }
  const Four zero = {0, 0, 0, 0}, share = zero + axis.block_share, per_unit = zero + axis.per_unit;
  for (int i = 0;; i = std::min(i + 4, count - 4)) {
    const double* at = shared + i;
    const Four sum = zero + load(at) + load(at + 1) + load(at + 2) + load(at + 3) + load(at + 4);
    const Four values = sum * per_unit + load(blocked + i) * share;
    std::memcpy(map + i, &values, sizeof values);
    if (i == count - 4) return;
  }
}

}  // namespace

int smoothing_reach(const Canvas& canvas) {
  return std::min(canvas.smoothing, std::max(canvas.columns, canvas.rows));
}

GridAxis vertical_axis(const Canvas& canvas) {
  return make_axis(canvas.rows, canvas.columns, smoothing_reach(canvas), 1.0 / (canvas.cell_width() * canvas.routes_vertical),
                   canvas.macro_routes_vertical / canvas.routes_vertical);
}

GridAxis horizontal_axis(const Canvas& canvas) {
  return make_axis(canvas.columns, canvas.rows, smoothing_reach(canvas),
                   1.0 / (canvas.cell_height() * canvas.routes_horizontal),
                   canvas.macro_routes_horizontal / canvas.routes_horizontal);
}

// The densest tenth of the gcells, which is also the busiest twentieth of the two congestion maps.
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
      densest_(cells_, counted_gcells(canvas), MacroCover::quantum()),
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

// A line's map depends only on its demand and blockage, so unchanged lines are skipped.
void GridCost::fill(const GridAxis& axis, const double* steps, const double* block, int at) {
  double* running = running_.data();
  std::fill(running_.begin(), running_.end(), 0.0);
  const std::size_t line_size = axis.length * sizeof(double);
  for (int line = 0; line < axis.lines; ++line, at += axis.length, steps += axis.length, block += axis.length) {
    double* demand = demand_.data() + at;
    double* blocked = blocked_.data() + at;
    for (int i = 0; i < axis.length; ++i) running[i] += steps[i];
    double* map = congestion_.data() + at;
    if (reach_ == 0) {  // as fast as searching for changes
      for (int i = 0; i < axis.length; ++i) map[i] = running[i] * axis.per_unit + block[i] * axis.block_share;
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
    double* shared = shared_.data() + reach_;
    const int low = std::max(0, first - reach_), high = std::min(axis.length, last + reach_);
    for (int i = low; i < high; ++i) shared[i] = demand[i] * axis.shares[i];
    if (high == axis.length) std::fill_n(shared + high, reach_, 0.0);  // the other axis' lines may be longer
    smooth_line(shared_.data() + first, reach_, axis, blocked + first, last - first, map + first);
  }
}

void smooth_line(const double* shared, int reach, const GridAxis& axis, const double* blocked, int count, double* map) {
  if (reach == 2) return smooth_five(shared, axis, blocked, count, map);
  for (int i = 0; i < count; ++i) map[i] = 0.0 + shared[i];
  for (int offset = 1; offset <= 2 * reach; ++offset) {
    for (int i = 0; i < count; ++i) map[i] += shared[i + offset];
  }
  for (int i = 0; i < count; ++i) map[i] = map[i] * axis.per_unit + blocked[i] * axis.block_share;
}

}  // namespace placement
