#include "search/proxy_targets.hpp"

#include <utility>

namespace placement {
namespace {

constexpr Softness kSoftness = {0.016F, 0.031F, 1.0F, 1.0F};

}  // namespace

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

}  // namespace placement
