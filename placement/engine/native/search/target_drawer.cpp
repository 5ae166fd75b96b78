#include "search/target_drawer.hpp"

#include <algorithm>
#include <cmath>

#include "search/chip_targets.hpp"
#include "search/proxy_targets.hpp"

namespace placement {
namespace {

constexpr float kUnlikely = 12;  // temperatures above the cheapest; the weight of what costs more is negligible

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
