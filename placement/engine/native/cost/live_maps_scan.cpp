// The maps from one look at all gcells, for proposals that change many of them.
#include <algorithm>
#include <limits>

#include "cost/live_maps.hpp"

namespace placement {

void LiveMaps::update_all(const RouteSteps& steps, const MacroCover& cover) {
  is_scan_ = is_drawn_ = true;
  forget_changes();
  congestion_.swap(old_congestion_);
  const double* all_steps[2] = {steps.vertical().data(), steps.horizontal().data()};
  const double* blocks[2] = {cover.vertical_block().data(), cover.horizontal_block().data()};
  for (int i = 0; i < 2; ++i) {
    sides_[i].demand.swap(sides_[i].old_demand);
    sum_up(sides_[i], all_steps[i]);
    draw_side(sides_[i], blocks[i]);
  }
}

void LiveMaps::update_all(const WholeRouteSteps& steps, const MacroCover& cover) {
  is_scan_ = is_whole_ = true;
  forget_changes();
  found_congestion_ = found_.found_by([&](double limit, double* to) { return scan_.find(steps, cover, limit, to); });
}

void LiveMaps::draw() {
  if (!is_whole_ || is_drawn_) return;
  is_drawn_ = true;
  congestion_.swap(old_congestion_);
  scan_.write(congestion_.data());
}

void LiveMaps::take_demands(const RouteSteps& steps) {
  sum_up(sides_[0], steps.vertical().data());
  sum_up(sides_[1], steps.horizontal().data());
}

double LiveMaps::congestion_cost() {
  if (is_whole_) return found_congestion_;
  return is_scan_ ? scanned_(congestion_.data()) : busiest_.kept(congestion_.data());
}

// What changed is not followed gcell by gcell.
void LiveMaps::forget_changes() {
  for (Side& side : sides_) {
    for (const std::int32_t place : side.places) {
      side.first[place] = std::numeric_limits<std::int32_t>::max();
      side.last[place] = -1;
    }
    side.places.clear();
    std::fill(side.changed.begin(), side.changed.end(), 0);
  }
}

void LiveMaps::sum_up(Side& side, const double* steps) {
  const int length = side.axis.length;
  double* demand = side.demand.data();
  for (int i = 0; i < length; ++i) demand[i] = 0.0 + steps[i];
  for (int i = length; i < cells_; ++i) demand[i] = demand[i - length] + steps[i];
}

// Works out all gcells of a map from the demands.
void LiveMaps::draw_side(Side& side, const double* block) {
  const int length = side.axis.length;
  const double* demand = side.demand.data();
  double* map = congestion_.data() + side.at;
  if (reach_ == 0) {
    const double per_unit = side.axis.per_unit, share = side.axis.block_share;
    for (int i = 0; i < cells_; ++i) map[i] = demand[i] * per_unit + block[i] * share;
    return;
  }
  const double* shares = side.axis.shares.data();
  double* shared = shared_.data() + reach_;
  std::fill_n(shared + length, reach_, 0.0);  // the other axis' lines may be longer
  for (int line = 0; line < side.axis.lines; ++line, demand += length, block += length, map += length) {
    for (int i = 0; i < length; ++i) shared[i] = demand[i] * shares[i];
    smooth_line(shared_.data(), reach_, side.axis, block, length, map);
  }
}

}  // namespace placement
