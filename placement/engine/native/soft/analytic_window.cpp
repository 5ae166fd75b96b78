#include "soft/analytic_window.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace placement {
namespace {

constexpr float kOverhang = 1e-3F;  // fraction of a gcell's side by which a macro may protrude from the gcell

// values[i] += factor · amounts[i], for whole lanes.
inline void add_scaled(float* values, const float* amounts, float factor, int lanes) {
  const Lanes by = Lanes::all(factor);
  for (int i = 0; i < lanes; i += Lanes::kCount) {
    (Lanes::load(values + i) + Lanes::load(amounts + i) * by).store(values + i);
  }
}

// values[i] += factor · |amounts[i] − zero|.
template <int kCount>
inline void add_distances(Lanes (&values)[kCount], const float* amounts, float zero, float factor) {
  const Lanes by = Lanes::all(factor), from = Lanes::all(zero);
  for (int i = 0; i < kCount; ++i) {
    const Lanes here = Lanes::load(amounts + i * Lanes::kCount);
    values[i] = values[i] + max(here - from, from - here) * by;
  }
}

// Share of a gcell's side that an interval covers, and the area shares of a rectangle in its own gcells.
float overlap(float low, float high, float cell, int index) {
  const auto start = static_cast<float>(index) * cell;
  return std::max(0.0F, std::min(high, start + cell) - std::max(low, start)) / cell;
}

}  // namespace

SoftBox::SoftBox(const Canvas& canvas, double box_width, double box_height)
    : width(static_cast<float>(box_width)), height(static_cast<float>(box_height)) {
  const double margin_x = std::min(box_width, canvas.width) / 2, margin_y = std::min(box_height, canvas.height) / 2;
  low_x = static_cast<float>(margin_x);
  high_x = std::max(low_x, static_cast<float>(canvas.width - margin_x));
  low_y = static_cast<float>(margin_y);
  high_y = std::max(low_y, static_cast<float>(canvas.height - margin_y));
  first_column = canvas.column_of(low_x);
  last_column = canvas.column_of(high_x);
  first_row = canvas.row_of(low_y);
  last_row = canvas.row_of(high_y);
}

void SoftBox::add_density(const Canvas& canvas, PriceMaps& maps, float sign) const {
  const auto cell_width = static_cast<float>(canvas.cell_width());
  const auto cell_height = static_cast<float>(canvas.cell_height());
  const float left = x - width / 2, right = x + width / 2, low = y - height / 2, high = y + height / 2;
  const int first = canvas.column_of(left), last = canvas.column_of(right), top = canvas.row_of(high);
  for (int r = canvas.row_of(low); r <= top; ++r) {
    const float up = sign * overlap(low, high, cell_height, r);
    float* density = maps.density_row(r);
    for (int c = first; c <= last; ++c) density[c] += up * overlap(left, right, cell_width, c);
  }
}

PricedWindow::PricedWindow(std::shared_ptr<const Design> design)
    : design_(std::move(design)),
      sinks_in_column_(design_->canvas.columns),
      drivers_in_row_(design_->canvas.rows) {}

void PricedWindow::price(int soft, const SoftBox& box, SoftNets& nets, const PriceMaps& maps, const Softness& softness) {
  lay(box);
  price_nets(soft, nets, maps);
  price_rows(maps);
  price_columns(maps);
  price_density(box, maps, softness);
}

PricedWindow::Gcell PricedWindow::best(int soft, const SoftBox& box, SoftNets& nets, const PriceMaps& maps,
                                       const Softness& softness) {
  price(soft, box, nets, maps, softness);
  return cheapest(box);
}

// Lays the window over the reachable gcells around the macro.
void PricedWindow::lay(const SoftBox& box) {
  const Canvas& canvas = design_->canvas;
  const auto span = [this](int here, int first, int last, int& start, int& count) {
    count = std::min(most_, last - first + 1);
    start = std::clamp(here - count / 2, first, last - count + 1);
  };
  span(canvas.column_of(box.x), box.first_column, box.last_column, column_, columns_);
  span(canvas.row_of(box.y), box.first_row, box.last_row, row_, rows_);
  lanes_ = round_up_to_lanes(columns_);
  row_lanes_ = round_up_to_lanes(rows_);
  const auto cell_width = static_cast<float>(canvas.cell_width());
  const auto cell_height = static_cast<float>(canvas.cell_height());
  for (int i = 0; i < lanes_; ++i) x_[i] = box.clamp_x((static_cast<float>(column_ + i) + 0.5F) * cell_width);
  for (int i = 0; i < row_lanes_; ++i) y_[i] = box.clamp_y((static_cast<float>(row_ + i) + 0.5F) * cell_height);
}

// Wirelength, and the terms of the routes' prices that depend on the column or the row alone. Collects the columns of
// the sinks it drives and the rows of its drivers for the rest. The sums are kept in registers, hence their number.
template <int kColumns, int kRows>
void PricedWindow::price_nets_in(int soft, SoftNets& nets, const PriceMaps& maps) {
  std::fill(sinks_in_column_.begin(), sinks_in_column_.end(), 0.0F);
  std::fill(drivers_in_row_.begin(), drivers_in_row_.end(), 0.0F);
  sinks_weight_ = drivers_weight_ = 0;
  Lanes by_column[kColumns] = {}, by_row[kRows] = {};
  for (const SoftNets::Incidence *net = nets.begin(soft), *end = nets.end(soft); net != end; ++net) {
    const SoftNets::Extent extent = nets.extent(*net);
    add_excess(by_column, x_, extent.left - net->low_dx, extent.right - net->high_dx, net->wire_price);
    add_excess(by_row, y_, extent.low - net->low_dy, extent.high - net->high_dy, net->wire_price);
    const float weight = net->route_weight;
    if (!net->drives) {  // along the driver's row, then along the own column
      const SoftNets::Spot& driver = nets.other(net->others_start);
      const float* sums = maps.horizontal_sum_row(driver.row);
      add_distances(by_column, sums + column_, sums[driver.column], weight);
      drivers_in_row_[driver.row] += weight;
      drivers_weight_ += weight;
      continue;
    }
    nets.new_visit();
    for (int k = net->others_start; k < net->others_end; ++k) {  // along the own row, then along the sink's column
      const SoftNets::Spot& sink = nets.other(k);
      if (!nets.first_visit(sink.cell)) continue;
      const float* sums = maps.vertical_sum_column(sink.column);
      add_distances(by_row, sums + row_, sums[sink.row], weight);
      sinks_in_column_[sink.column] += weight;
      sinks_weight_ += weight;
    }
  }
  for (int i = 0; i < kColumns; ++i) by_column[i].store(by_column_ + i * Lanes::kCount);
  for (int i = 0; i < kRows; ++i) by_row[i].store(by_row_ + i * Lanes::kCount);
}

void PricedWindow::price_nets(int soft, SoftNets& nets, const PriceMaps& maps) {
  using Window = PricedWindow;
  using Method = void (Window::*)(int, SoftNets&, const PriceMaps&);
  static constexpr Method kMethods[4][4] = {
      {&Window::price_nets_in<1, 1>, &Window::price_nets_in<1, 2>, &Window::price_nets_in<1, 3>,
       &Window::price_nets_in<1, 4>},
      {&Window::price_nets_in<2, 1>, &Window::price_nets_in<2, 2>, &Window::price_nets_in<2, 3>,
       &Window::price_nets_in<2, 4>},
      {&Window::price_nets_in<3, 1>, &Window::price_nets_in<3, 2>, &Window::price_nets_in<3, 3>,
       &Window::price_nets_in<3, 4>},
      {&Window::price_nets_in<4, 1>, &Window::price_nets_in<4, 2>, &Window::price_nets_in<4, 3>,
       &Window::price_nets_in<4, 4>}};
  static_assert(kMost == 4 * Lanes::kCount);
  (this->*kMethods[lanes_ / Lanes::kCount - 1][row_lanes_ / Lanes::kCount - 1])(soft, nets, maps);
}

// Routes along the own row to the sinks' columns, and the terms that depend on the row alone.
void PricedWindow::price_rows(const PriceMaps& maps) {
  // Price of reaching all sinks from the window's first column, row by row.
  float beyond = sinks_weight_;
  for (int c = 0; c < maps.columns(); ++c) {
    beyond -= sinks_in_column_[c];
    const float crossing = c < column_ ? sinks_weight_ - beyond : beyond;
    if (crossing != 0) add_scaled(by_row_, maps.horizontal_price_column(c) + row_, crossing, row_lanes_);
  }
  // A step of one column to the right approaches the sinks beyond and moves away from the others.
  float behind = 0;
  for (int c = 0; c < column_; ++c) behind += sinks_in_column_[c];
  for (int c = 0; c < columns_; ++c) {
    behind += sinks_in_column_[column_ + c];
    const Lanes slope = Lanes::all(2 * behind - sinks_weight_);
    const float* prices = maps.horizontal_price_column(column_ + c) + row_;
    for (int r = 0; r < row_lanes_; r += Lanes::kCount) {
      const Lanes so_far = Lanes::load(by_row_ + r);
      so_far.store(turned_[c] + r);
      (so_far + Lanes::load(prices + r) * slope).store(by_row_ + r);
    }
  }
  for (int c = 0; c < lanes_; c += Lanes::kCount) {
    for (int r = 0; r < row_lanes_; r += Lanes::kCount) {
      transpose_lanes(turned_[c] + r, kMost, total_[r] + c, kMost);
    }
  }
}

// Routes along the own column from the drivers' rows, and the terms that depend on the column alone.
void PricedWindow::price_columns(const PriceMaps& maps) {
  float beyond = drivers_weight_;
  for (int r = 0; r < maps.rows(); ++r) {
    beyond -= drivers_in_row_[r];
    const float crossing = r < row_ ? drivers_weight_ - beyond : beyond;
    if (crossing != 0) add_scaled(by_column_, maps.vertical_price_row(r) + column_, crossing, lanes_);
  }
  float behind = 0;
  for (int r = 0; r < row_; ++r) behind += drivers_in_row_[r];
  for (int r = 0; r < rows_; ++r) {
    behind += drivers_in_row_[row_ + r];
    const Lanes slope = Lanes::all(2 * behind - drivers_weight_);
    const float* prices = maps.vertical_price_row(row_ + r) + column_;
    float* total = total_[r];
    for (int c = 0; c < lanes_; c += Lanes::kCount) {
      const Lanes so_far = Lanes::load(by_column_ + c);
      (Lanes::load(total + c) + so_far).store(total + c);
      (so_far + Lanes::load(prices + c) * slope).store(by_column_ + c);
    }
  }
}

// In the middle of any gcell, the macro covers the same shares of the surrounding gcells.
void PricedWindow::price_density(const SoftBox& box, const PriceMaps& maps, const Softness& softness) {
  const auto width = static_cast<float>(design_->canvas.cell_width());
  const auto height = static_cast<float>(design_->canvas.cell_height());
  if (box.width <= width * (1 + kOverhang) && box.height <= height * (1 + kOverhang)) {
    add_density(0, 0, box.width * box.height / (width * height), maps, softness);
    return;
  }
  const auto share = [](float size, float cell, int shift) {
    return overlap((cell - size) / 2, (cell + size) / 2, cell, shift);
  };
  const auto reach = [](float cells, int most) { return static_cast<int>(std::min(cells, static_cast<float>(most))); };
  const int reach_x = reach(box.width / width / 2 + 0.5F, PriceMaps::kPad - 1);
  const int reach_y = reach(box.height / height / 2 + 0.5F, maps.rows());  // there is no row beyond
  for (int i = -reach_y; i <= reach_y; ++i) {
    for (int j = -reach_x; j <= reach_x; ++j) {
      const float covered = share(box.height, height, i) * share(box.width, width, j);
      if (covered > 0) add_density(i, j, covered, maps, softness);
    }
  }
}

// Price of `share` more density in the gcell this many rows and columns away from each of the window.
void PricedWindow::add_density(int row_shift, int column_shift, float share, const PriceMaps& maps,
                               const Softness& softness) {
  const DensityPrice price = maps.density_price(softness);
  const Lanes start = Lanes::all(price.start), bend = Lanes::all(price.bend), area = Lanes::all(share);
  const Lanes curve = Lanes::all(price.curve), slope = Lanes::all(price.slope), zero = Lanes::all(0);
  for (int r = 0; r < rows_; ++r) {
    const int row = row_ + r + row_shift;
    if (row < 0 || row >= maps.rows()) continue;
    const float* density = maps.density_row(row) + column_ + column_shift;
    float* total = total_[r];
    for (int c = 0; c < lanes_; c += Lanes::kCount) {
      const Lanes before = Lanes::load(density + c) - start, after = before + area;
      const Lanes ramp_before = max(min(before, bend), zero), ramp_after = max(min(after, bend), zero);
      const Lanes above_before = max(before - bend, zero), above_after = max(after - bend, zero);
      (Lanes::load(total + c) + curve * (ramp_after * ramp_after - ramp_before * ramp_before) +
       slope * (above_after - above_before))
          .store(total + c);
    }
  }
}

PricedWindow::Gcell PricedWindow::cheapest(const SoftBox& box) const {
  alignas(32) float least[kMost];  // minimum in each column
  for (int c = 0; c < lanes_; c += Lanes::kCount) {
    Lanes lowest = Lanes::load(total_[0] + c);
    for (int r = 1; r < rows_; ++r) lowest = min(lowest, Lanes::load(total_[r] + c));
    lowest.store(least + c);
  }
  const int column = static_cast<int>(std::min_element(least, least + columns_) - least);
  int row = 0;
  while (row + 1 < rows_ && total_[row][column] != least[column]) ++row;
  const int here_row = design_->canvas.row_of(box.y) - row_, here_column = design_->canvas.column_of(box.x) - column_;
  return {column_ + column, row_ + row, total_[here_row][here_column] - least[column]};
}

}  // namespace placement
