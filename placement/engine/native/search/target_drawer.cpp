#include "search/target_drawer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace placement {
namespace {

constexpr Softness kSoftness = {0.016F, 0.031F, 1.0F, 1.0F};
constexpr float kUnlikely = 12;  // temperatures above the cheapest; not worth a weight beyond

}  // namespace

TargetDrawer::TargetDrawer(const IncrementalCost& cost, std::vector<std::int32_t> soft)
    : cost_(cost),
      design_(cost.design()),
      soft_(std::move(soft)),
      number_of_(design_.nodes(), -1),
      boxes_(design_.nodes()),
      maps_(design_, cost.weights()),
      nets_(cost.shared_design(), soft_, cost.weights().wirelength),
      window_(cost.shared_design()) {
  for (std::size_t i = 0; i < soft_.size(); ++i) number_of_[soft_[i]] = static_cast<std::int32_t>(i);
}

SoftBox TargetDrawer::box_of(const NodeMove& at) const {
  SoftBox box(design_.canvas, design_.width_of(at.node, at.orientation), design_.height_of(at.node, at.orientation));
  box.x = static_cast<float>(at.x);
  box.y = static_cast<float>(at.y);
  return box;
}

void TargetDrawer::reset() {
  nets_.set_standing(cost_.x().data(), cost_.y().data(), cost_.orientation().data());
  for (int node = 0; node < design_.nodes(); ++node) {
    const Kind kind = design_.kind_of(node);
    if (kind == Kind::hard || kind == Kind::soft) boxes_[node] = box_of(cost_.at(node));
    if (number_of_[node] >= 0) nets_.stand(number_of_[node], boxes_[node].x, boxes_[node].y);
  }
  refresh();
}

void TargetDrawer::refresh() {
  maps_.load(cost_.density_map(), cost_.vertical_map(), cost_.horizontal_map());
  maps_.set_thresholds();
  maps_.set_prices(kSoftness);
}

void TargetDrawer::moved(const NodeMove& to) {
  SoftBox& box = boxes_[to.node];
  box.add_density(design_.canvas, maps_, -1);
  box = box_of(to);
  box.add_density(design_.canvas, maps_, 1);
  if (number_of_[to.node] >= 0) {
    nets_.stand(number_of_[to.node], box.x, box.y);
  } else {
    nets_.stand_node(to.node, to.x, to.y, to.orientation);
  }
}

bool TargetDrawer::draw(int soft, double temperature, Random& random, int* column, int* row) {
  SoftBox& box = boxes_[soft_[soft]];
  box.add_density(design_.canvas, maps_, -1);
  window_.price(soft, box, nets_, maps_, kSoftness);
  box.add_density(design_.canvas, maps_, 1);
  const float least = window_.least(), dearest = least + kUnlikely * static_cast<float>(temperature);
  likely_.clear();
  double sum = 0;
  for (int r = 0; r < window_.rows(); ++r) {
    const float* prices = window_.prices(r);
    for (int c = 0; c < window_.columns(); ++c) {
      if (prices[c] > dearest) continue;
      if (temperature > 0) sum += std::exp((least - prices[c]) / temperature);
      else sum += 1;
      likely_.emplace_back(sum, r * PricedWindow::kMost + c);
    }
  }
  const double at = random.fraction() * sum;
  std::size_t chosen = 0;
  while (chosen + 1 < likely_.size() && likely_[chosen].first <= at) ++chosen;
  *row = window_.first_row() + likely_[chosen].second / PricedWindow::kMost;
  *column = window_.first_column() + likely_[chosen].second % PricedWindow::kMost;
  return *row != design_.canvas.row_of(box.y) || *column != design_.canvas.column_of(box.x);
}

}  // namespace placement
