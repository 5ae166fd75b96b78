// The maps from one look at all gcells, for proposals that change many of them.
#include <algorithm>
#include <limits>

#include "cost/live_maps.hpp"

namespace placement {

void LiveMaps::update_all(const RouteSteps& steps, const MacroCover& cover) {
  is_scan_ = true;
  forget_changes();
  draw_all(steps, cover);
}

void LiveMaps::update_all(const WholeRouteSteps& steps, const MacroCover& cover) {
  is_scan_ = true;
  forget_changes();
  found_congestion_ = found_.found_by([&](double limit, double* to) { return scan_.find(steps, cover, limit, to); });
}

void LiveMaps::draw(const WholeRouteSteps& steps, const MacroCover& cover) {
  if (is_scan_ && !is_drawn_) draw_all(steps, cover);
}

double LiveMaps::congestion_cost() {
  if (!is_scan_) return busiest_.kept(congestion_.data());
  return is_drawn_ ? scanned_(congestion_.data()) : found_congestion_;
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

template <typename Steps>
void LiveMaps::draw_all(const Steps& steps, const MacroCover& cover) {
  is_drawn_ = true;
  congestion_.swap(old_congestion_);
  draw_side(sides_[0], steps.vertical().data(), cover.vertical_block().data());
  draw_side(sides_[1], steps.horizontal().data(), cover.horizontal_block().data());
}

// Works out all gcells of a map. What stood is kept whole.
template <typename Step>
void LiveMaps::draw_side(Side& side, const Step* steps, const double* block) {
  const int length = side.axis.length;
  side.demand.swap(side.old_demand);
  double* demand = side.demand.data();
  for (int i = 0; i < length; ++i) demand[i] = 0.0 + steps[i];
  for (int i = length; i < cells_; ++i) demand[i] = demand[i - length] + steps[i];
  double* map = congestion_.data() + side.at;
  if (reach_ == 0) {
    const double per_part = side.axis.per_part, share = side.axis.block_share;
    for (int i = 0; i < cells_; ++i) map[i] = demand[i] * per_part + block[i] * share;
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
