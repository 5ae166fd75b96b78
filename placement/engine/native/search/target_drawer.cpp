#include "search/target_drawer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/lanes.hpp"
#include "cost/cell_overflow.hpp"
#include "cost/incremental_chip.hpp"
#include "cost/incremental_proxy.hpp"
#include "soft/analytic_maps.hpp"
#include "soft/analytic_window.hpp"

namespace placement {
namespace {

constexpr float kUnlikely = 12;  // temperatures above the cheapest beyond which the weight is negligible
constexpr double kFinest = -2, kCoarsest = 1;  // log₂ of the distance between points in gcells
constexpr Softness kSoftness = {0.016F, 0.031F, 1.0F, 1.0F};

// Targets priced by the chip cost: wirelength, and the displacement of overflowing area, but not wire beyond the
// tracks.
class ChipTargets : public TargetDrawer {
 public:
  ChipTargets(const ChipIncrementalCost& cost, std::vector<std::int32_t> soft);

  // Draws one of kPoints × kPoints points laid at random around the macro, a quarter of a gcell to two gcells apart.
  bool draw(int soft, double temperature, Random& random, double* x, double* y) override;

 private:
  static constexpr int kPoints = CellOverflow::kMostPoints;
  // Positions of the macro along an axis, including the current one.
  struct Axis {
    int count = 0, own = 0;
    alignas(32) float at[kPoints] = {};      // µm
    alignas(32) float prices[kPoints] = {};  // of the wirelength, in units of the cost
  };
  static void lay(double here, double size, double canvas, double step, Random& random, Axis& axis);
  void price_wires(int soft);

  const ChipCost& chip_;
  Axis across_, up_;
  alignas(32) float total_[kPoints][kPoints] = {};  // [row][column] in units of the cost
};

// Targets priced by the proxy cost. The prices are several proposals old and omit the steps of small nets' routes.
class ProxyTargets : public TargetDrawer {
 public:
  ProxyTargets(const ProxyIncrementalCost& cost, std::vector<std::int32_t> soft);

  void reset() override;
  // Between two calls, moves update the density but not the routes.
  void refresh() override;
  void moved(const NodeMove& to) override;
  // A random position in the drawn gcell.
  bool draw(int soft, double temperature, Random& random, double* x, double* y) override;

 private:
  SoftBox box_of(const NodeMove& at) const;

  const ProxyIncrementalCost& proxy_;
  std::vector<SoftBox> boxes_;  // [N] of macros
  PriceMaps maps_;
  PricedWindow window_;
};

ChipTargets::ChipTargets(const ChipIncrementalCost& cost, std::vector<std::int32_t> soft)
    : TargetDrawer(cost, std::move(soft)), chip_(cost.chip()) {}

// Points `step` apart with a random offset, as many on either side as fit on the canvas; the current position replaces
// the nearest one. Beyond the last point, the current position fills up whole lanes.
void ChipTargets::lay(double here, double size, double canvas, double step, Random& random, Axis& axis) {
  const double margin = std::min(size, canvas) / 2, offset = random.fraction() - 0.5;
  const auto fitting = [&](double length) { return static_cast<int>(std::clamp(length / step, 0.0, kPoints - 1.0)); };
  const int below = fitting(here - margin), above = fitting(canvas - margin - here);
  axis.count = std::min(kPoints, below + 1 + above);
  axis.own = std::clamp(kPoints / 2, axis.count - 1 - above, below);
  std::fill_n(axis.at, kPoints, static_cast<float>(here));
  for (int i = 0; i < axis.count; ++i) {
    if (i != axis.own) axis.at[i] = static_cast<float>(std::clamp(here + (i - axis.own + offset) * step, margin, canvas - margin));
  }
}

void ChipTargets::price_wires(int soft) {
  constexpr int kLanes = kPoints / Lanes::kCount;
  Lanes across[kLanes] = {}, up[kLanes] = {};
  for (const SoftNets::Incidence *net = nets_.begin(soft), *end = nets_.end(soft); net != end; ++net) {
    const SoftNets::Extent extent = nets_.extent(*net);
    add_excess(across, across_.at, extent.left - net->low_dx, extent.right - net->high_dx, net->wire_price);
    add_excess(up, up_.at, extent.low - net->low_dy, extent.high - net->high_dy, net->wire_price);
  }
  for (int i = 0; i < kLanes; ++i) {
    across[i].store(across_.prices + i * Lanes::kCount);
    up[i].store(up_.prices + i * Lanes::kCount);
  }
}

bool ChipTargets::draw(int soft, double temperature, Random& random, double* x, double* y) {
  const NodeMove here = cost_.at(soft_[soft]);
  const Canvas& canvas = design_.canvas;
  const double gcells = std::exp2(kFinest + (kCoarsest - kFinest) * random.fraction());
  lay(here.x, design_.width_of(here.node, here.orientation), canvas.width, gcells * canvas.cell_width(), random, across_);
  lay(here.y, design_.height_of(here.node, here.orientation), canvas.height, gcells * canvas.cell_height(), random, up_);
  price_wires(soft);
  chip_.price_overflow(design_, here.node, here.x, here.y, across_.at, across_.count, up_.at, up_.count, total_[0]);
  const Lanes per_displacement = Lanes::all(static_cast<float>(cost_.weights().density * chip_.density_per_displacement()));
  for (int r = 0; r < up_.count; ++r) {
    const Lanes of_row = Lanes::all(up_.prices[r]);
    for (int c = 0; c < across_.count; c += Lanes::kCount) {
      (Lanes::load(total_[r] + c) * per_displacement + Lanes::load(across_.prices + c) + of_row).store(total_[r] + c);
    }
  }
  const auto [column, row] = draw_column_and_row(total_[0], kPoints, across_.count, up_.count, temperature, random);
  if (column == across_.own && row == up_.own) return false;
  *x = column == across_.own ? here.x : across_.at[column];
  *y = row == up_.own ? here.y : up_.at[row];
  return true;
}

ProxyTargets::ProxyTargets(const ProxyIncrementalCost& cost, std::vector<std::int32_t> soft)
    : TargetDrawer(cost, std::move(soft)),
      proxy_(cost),
      boxes_(design_.nodes()),
      maps_(design_, cost.weights()),
      window_(cost.shared_design()) {}

SoftBox ProxyTargets::box_of(const NodeMove& at) const {
  SoftBox box(design_.canvas, design_.width_of(at.node, at.orientation), design_.height_of(at.node, at.orientation));
  box.x = static_cast<float>(at.x);
  box.y = static_cast<float>(at.y);
  return box;
}

void ProxyTargets::reset() {
  TargetDrawer::reset();
  for (int node = 0; node < design_.nodes(); ++node) {
    const Kind kind = design_.kind_of(node);
    if (kind == Kind::hard || kind == Kind::soft) boxes_[node] = box_of(cost_.at(node));
  }
  refresh();
}

void ProxyTargets::refresh() {
  maps_.load(proxy_.density_map(), cost_.vertical_map(), cost_.horizontal_map());
  maps_.set_thresholds();
  maps_.set_prices(kSoftness);
}

void ProxyTargets::moved(const NodeMove& to) {
  TargetDrawer::moved(to);
  SoftBox& box = boxes_[to.node];
  box.add_density(design_.canvas, maps_, -1);
  box = box_of(to);
  box.add_density(design_.canvas, maps_, 1);
}

bool ProxyTargets::draw(int soft, double temperature, Random& random, double* x, double* y) {
  SoftBox& box = boxes_[soft_[soft]];
  box.add_density(design_.canvas, maps_, -1);
  window_.price(soft, box, nets_, maps_, kSoftness);
  box.add_density(design_.canvas, maps_, 1);
  const auto [in_columns, in_rows] =
      draw_column_and_row(window_.prices(0), PricedWindow::kMost, window_.columns(), window_.rows(), temperature, random);
  const int column = window_.first_column() + in_columns, row = window_.first_row() + in_rows;
  if (row == design_.canvas.row_of(box.y) && column == design_.canvas.column_of(box.x)) return false;
  *x = (column + 0.5 + 0.5 * random.both_ways()) * design_.canvas.cell_width();
  *y = (row + 0.5 + 0.5 * random.both_ways()) * design_.canvas.cell_height();
  return true;
}

}  // namespace

TargetDrawer::TargetDrawer(const IncrementalCost& cost, std::vector<std::int32_t> soft)
    : cost_(cost),
      design_(cost.design()),
      soft_(std::move(soft)),
      number_of_(design_.nodes(), -1),
      nets_(cost.shared_design(), soft_, cost.weights().wirelength) {
  for (std::size_t i = 0; i < soft_.size(); ++i) number_of_[soft_[i]] = static_cast<std::int32_t>(i);
}

void TargetDrawer::reset() {
  nets_.set_fixed(cost_.x().data(), cost_.y().data(), cost_.orientation().data());
  for (std::size_t i = 0; i < soft_.size(); ++i) {
    const NodeMove at = cost_.at(soft_[i]);
    nets_.place(static_cast<int>(i), static_cast<float>(at.x), static_cast<float>(at.y));
  }
}

void TargetDrawer::moved(const NodeMove& to) {
  const std::int32_t number = number_of_[to.node];
  if (number >= 0) nets_.place(number, static_cast<float>(to.x), static_cast<float>(to.y));
  else nets_.place_node(to.node, to.x, to.y, to.orientation);
}

std::pair<int, int> TargetDrawer::draw_column_and_row(const float* prices, int stride, int columns, int rows,
                                                      double temperature, Random& random) {
  float least = prices[0];
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) least = std::min(least, prices[r * stride + c]);
  }
  const float dearest = least + kUnlikely * static_cast<float>(temperature);
  likely_.clear();
  double sum = 0;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const float price = prices[r * stride + c];
      if (price > dearest) continue;
      if (temperature > 0) sum += std::exp((least - price) / temperature);
      else sum += 1;
      likely_.emplace_back(sum, r * stride + c);
    }
  }
  const double at = random.fraction() * sum;
  std::size_t chosen = 0;
  while (chosen + 1 < likely_.size() && likely_[chosen].first <= at) ++chosen;
  return {likely_[chosen].second % stride, likely_[chosen].second / stride};
}

std::unique_ptr<TargetDrawer> make_target_drawer(const IncrementalCost& cost, std::vector<std::int32_t> soft) {
  if (const auto* chip = dynamic_cast<const ChipIncrementalCost*>(&cost)) {
    return std::make_unique<ChipTargets>(*chip, std::move(soft));
  }
  return std::make_unique<ProxyTargets>(dynamic_cast<const ProxyIncrementalCost&>(cost), std::move(soft));
}

}  // namespace placement
