#include "cost.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace placement {
namespace {

constexpr double kPartial = 1e-5;  // µm: a gcell's side covered to within this is covered whole
// Shares of a gcell (of its area or of a side) are kept in multiples of this, so that their sums are exact.
const Rounder kShare(256.0);

// Sum of the `count` largest of `values`, which are reordered.
double sum_of_largest(std::vector<double>& values, int count) {
  std::nth_element(values.begin(), values.begin() + (count - 1), values.end(), std::greater<double>());
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i];
  return sum;
}

// µm of [low, high] over each gcell of `size` µm from `first` to `last`.
void cover(double low, double high, double size, int first, int last, double* covered) {
  for (int i = first; i <= last; ++i) {
    covered[i] = std::max(0.0, std::min(high, (i + 1) * size) - std::max(low, i * size));
  }
}

}  // namespace

CostEvaluator::CostEvaluator(std::shared_ptr<const Design> design)
    : design_(std::move(design)),
      nets_(*design_),
      wire_rounder_(nets_.total_weight * (design_->canvas.width + design_->canvas.height)) {
  const int cells = design_->canvas.cells();
  places_.resize(nets_.points());
  stamp_.assign(cells, -1);
  distinct_.resize(nets_.points() + 1);
  for (auto* map : {&horizontal_steps_, &vertical_steps_, &horizontal_block_, &vertical_block_, &density_}) {
    map->assign(cells, 0.0);
  }
  congestion_.assign(2 * cells, 0.0);
  sorted_.reserve(2 * cells);
  line_.resize(std::max(design_->canvas.columns, design_->canvas.rows));
  smooth_.resize(line_.size() + 1);
  cover_x_.resize(design_->canvas.columns);
  cover_y_.resize(design_->canvas.rows);
}

Costs CostEvaluator::evaluate(const double* x, const double* y, const std::int8_t* orientation,
                              const Weights& weights) {
  const Canvas& canvas = design_->canvas;
  for (auto* map : {&horizontal_steps_, &vertical_steps_, &horizontal_block_, &vertical_block_, &density_}) {
    std::fill(map->begin(), map->end(), 0.0);
  }
  Costs costs;
  place_points(x, y, orientation);
  costs.wirelength = route_nets();
  costs.wirelength_cost =
      nets_.total_weight > 0 ? costs.wirelength / ((canvas.width + canvas.height) * nets_.total_weight) : 0.0;

  cover_cells(x, y, orientation);
  sorted_.assign(density_.begin(), density_.end());
  const int largest = canvas.cells() / 10;  // both the densest tenth and, of twice the cells, the busiest twentieth
  if (largest > 0) {
    costs.density_cost = 0.5 * sum_of_largest(sorted_, largest) / largest;
  } else {
    const auto occupied = std::count_if(density_.begin(), density_.end(), [](double value) { return value > 0; });
    double sum = 0;
    for (const double value : density_) sum += value;
    costs.density_cost = occupied > 0 ? 0.5 * sum / static_cast<double>(occupied) : 0.0;
  }

  sum_congestion();
  sorted_.assign(congestion_.begin(), congestion_.end());
  costs.congestion_cost = sum_of_largest(sorted_, std::max(largest, 1)) / std::max(largest, 1);
  costs.proxy_cost = weights.wirelength * costs.wirelength_cost + weights.density * costs.density_cost +
                     weights.congestion * costs.congestion_cost;
  return costs;
}

void CostEvaluator::horizontal_map(double* map) const {
  const int columns = design_->canvas.columns, rows = design_->canvas.rows;
  const double* horizontal = congestion_.data() + columns * rows;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) map[row * columns + column] = horizontal[column * rows + row];
  }
}

void CostEvaluator::place_points(const double* x, const double* y, const std::int8_t* orientation) {
  const Canvas& canvas = design_->canvas;
  for (int node = 0; node < design_->nodes(); ++node) {
    const bool turned = design_->kind_of(node) == Kind::hard;
    const auto& turn = kTurn[turned ? orientation[node] : 0];
    for (int point = nets_.point_start[node]; point < nets_.point_start[node + 1]; ++point) {
      const double dx = nets_.point_dx[point], dy = nets_.point_dy[point];
      PointPlace& place = places_[point];
      place.x = x[node] + (turn[0] * dx + turn[1] * dy);
      place.y = y[node] + (turn[2] * dx + turn[3] * dy);
      place.column = canvas.column_of(place.x);
      place.row = canvas.row_of(place.y);
      place.cell = place.row * canvas.columns + place.column;
    }
  }
}

double CostEvaluator::route_nets() {
  double wirelength = 0;
  for (int net = 0; net < nets_.nets(); ++net) {
    const std::int32_t* points = nets_.net_points.data() + nets_.net_start[net];
    const int count = nets_.net_start[net + 1] - nets_.net_start[net];
    double min_x = places_[points[0]].x, max_x = min_x, min_y = places_[points[0]].y, max_y = min_y;
    for (int i = 1; i < count; ++i) {
      const PointPlace& place = places_[points[i]];
      min_x = std::min(min_x, place.x);
      max_x = std::max(max_x, place.x);
      min_y = std::min(min_y, place.y);
      max_y = std::max(max_y, place.y);
    }
    wirelength += wire_rounder_(nets_.wire_weight[net] * ((max_x - min_x) + (max_y - min_y)));
    route_net(points, count, nets_.route_weight[net]);
  }
  return wirelength;
}

void CostEvaluator::segment_horizontal(int row, int from, int to, double weight) {
  const int rows = design_->canvas.rows;
  horizontal_steps_[std::min(from, to) * rows + row] += weight;
  horizontal_steps_[std::max(from, to) * rows + row] -= weight;
}

void CostEvaluator::segment_vertical(int column, int from, int to, double weight) {
  const int columns = design_->canvas.columns;
  vertical_steps_[std::min(from, to) * columns + column] += weight;
  vertical_steps_[std::max(from, to) * columns + column] -= weight;
}

void CostEvaluator::route_net(const std::int32_t* points, int count, double weight) {
  if (++epoch_ == INT32_MAX) {
    std::fill(stamp_.begin(), stamp_.end(), -1);
    epoch_ = 0;
  }
  int distinct = 0;
  for (int i = 0; i < count; ++i) {
    const std::int32_t cell = places_[points[i]].cell;
    distinct_[distinct] = cell;
    distinct += stamp_[cell] != epoch_;
    stamp_[cell] = epoch_;
  }
  if (distinct == 3) return route_three(weight);
  const int columns = design_->canvas.columns;
  const int row = distinct_[0] / columns, column = distinct_[0] % columns;
  for (int i = 1; i < distinct; ++i) {
    const int to_row = distinct_[i] / columns, to_column = distinct_[i] % columns;
    segment_horizontal(row, column, to_column, weight);
    segment_vertical(to_column, row, to_row, weight);
  }
}

void CostEvaluator::route_three(double weight) {
  const int columns = design_->canvas.columns;
  struct Cell {
    int x, y;
  } a[3];
  for (int i = 0; i < 3; ++i) a[i] = {distinct_[i] % columns, distinct_[i] / columns};
  std::sort(a, a + 3, [](const Cell& p, const Cell& q) { return p.x != q.x ? p.x < q.x : p.y < q.y; });
  if (a[0].x < a[1].x && a[1].x < a[2].x && std::min(a[0].y, a[2].y) < a[1].y && a[1].y < std::max(a[0].y, a[2].y)) {
    segment_horizontal(a[0].y, a[0].x, a[1].x, weight);
    segment_horizontal(a[1].y, a[1].x, a[2].x, weight);
    segment_vertical(a[1].x, a[0].y, a[1].y, weight);
    segment_vertical(a[2].x, a[1].y, a[2].y, weight);
  } else if (a[1].x == a[2].x && a[0].x < a[1].x && a[0].y < std::min(a[1].y, a[2].y)) {
    segment_horizontal(a[0].y, a[0].x, a[1].x, weight);
    segment_vertical(a[1].x, a[0].y, std::max(a[1].y, a[2].y), weight);
  } else if (a[1].y == a[2].y) {
    segment_horizontal(a[0].y, a[0].x, a[1].x, weight);
    segment_horizontal(a[1].y, a[1].x, a[2].x, weight);
    segment_vertical(a[1].x, a[0].y, a[1].y, weight);
  } else {
    std::sort(a, a + 3, [](const Cell& p, const Cell& q) { return p.y != q.y ? p.y < q.y : p.x < q.x; });
    segment_horizontal(a[1].y, std::min({a[0].x, a[1].x, a[2].x}), std::max({a[0].x, a[1].x, a[2].x}), weight);
    segment_vertical(a[0].x, a[0].y, a[1].y, weight);
    segment_vertical(a[2].x, a[1].y, a[2].y, weight);
  }
}

void CostEvaluator::cover_cells(const double* x, const double* y, const std::int8_t* orientation) {
  const Canvas& canvas = design_->canvas;
  const double cell_width = canvas.cell_width(), cell_height = canvas.cell_height();
  for (int node = 0; node < design_->nodes(); ++node) {
    const Kind kind = design_->kind_of(node);
    if (kind != Kind::hard && kind != Kind::soft) continue;
    const double half_width = design_->width_of(node, orientation[node]) / 2;
    const double half_height = design_->height_of(node, orientation[node]) / 2;
    const double left = x[node] - half_width, right = x[node] + half_width;
    const double bottom = y[node] - half_height, top = y[node] + half_height;
    if (right <= 0 || top <= 0 || left >= canvas.width || bottom >= canvas.height) continue;
    const int first_column = canvas.column_of(left), last_column = canvas.column_of(right);
    const int first_row = canvas.row_of(bottom), last_row = canvas.row_of(top);
    cover(left, right, cell_width, first_column, last_column, cover_x_.data());
    cover(bottom, top, cell_height, first_row, last_row, cover_y_.data());
    for (int row = first_row; row <= last_row; ++row) {
      const double height_share = cover_y_[row] / (cell_width * cell_height);
      for (int column = first_column; column <= last_column; ++column) {
        density_[row * canvas.columns + column] += kShare(cover_x_[column] * height_share);
      }
    }
    if (kind == Kind::hard) block_routes(first_column, last_column, first_row, last_row);
  }
}

void CostEvaluator::block_routes(int first_column, int last_column, int first_row, int last_row) {
  const Canvas& canvas = design_->canvas;
  const double cell_width = canvas.cell_width(), cell_height = canvas.cell_height();
  auto partial = [](double covered, double side) { return std::abs(covered - side) > kPartial; };
  // The top row's vertical and the right column's horizontal blockage are left out where an end is partly covered.
  const bool cut_top = first_row != last_row &&
                       (partial(cover_y_[first_row], cell_height) || partial(cover_y_[last_row], cell_height));
  const bool cut_right = first_column != last_column &&
                         (partial(cover_x_[first_column], cell_width) || partial(cover_x_[last_column], cell_width));
  for (int row = first_row; row <= last_row; ++row) {
    if (cover_y_[row] <= 0) continue;
    for (int column = first_column; column <= last_column; ++column) {
      if (cover_x_[column] <= 0) continue;
      if (!(cut_top && row == last_row)) {
        vertical_block_[row * canvas.columns + column] += kShare(cover_x_[column] / cell_width);
      }
      if (!(cut_right && column == last_column)) {
        horizontal_block_[column * canvas.rows + row] += kShare(cover_y_[row] / cell_height);
      }
    }
  }
}

void CostEvaluator::sum_congestion() {
  const Canvas& canvas = design_->canvas;
  // Both maps alike: `lines` lines of `length` gcells; demand accumulates from line to line, smoothing runs along one.
  auto sum_map = [this, &canvas](const std::vector<double>& steps, const std::vector<double>& block, int lines,
                                 int length, double capacity, double block_share, double* map) {
    std::fill(smooth_.begin(), smooth_.end(), 0.0);
    std::fill(line_.begin(), line_.end(), 0.0);
    const int reach = canvas.smoothing;
    for (int line = 0; line < lines; ++line) {
      for (int i = 0; i < length; ++i) line_[i] += steps[line * length + i];
      double* out = map + line * length;
      if (reach == 0) {
        for (int i = 0; i < length; ++i) out[i] = line_[i] / capacity;
      } else {
        std::fill(out, out + length, 0.0);
        for (int i = 0; i < length; ++i) {
          const int first = std::max(0, i - reach), last = std::min(length - 1, i + reach);
          const double share = line_[i] / capacity / (last - first + 1);
          for (int j = first; j <= last; ++j) out[j] += share;
        }
      }
      for (int i = 0; i < length; ++i) out[i] += block[line * length + i] * block_share;
    }
  };
  sum_map(vertical_steps_, vertical_block_, canvas.rows, canvas.columns, canvas.cell_width() * canvas.routes_vertical,
          canvas.macro_routes_vertical / canvas.routes_vertical, congestion_.data());
  sum_map(horizontal_steps_, horizontal_block_, canvas.columns, canvas.rows,
          canvas.cell_height() * canvas.routes_horizontal, canvas.macro_routes_horizontal / canvas.routes_horizontal,
          congestion_.data() + canvas.cells());
}

}  // namespace placement
