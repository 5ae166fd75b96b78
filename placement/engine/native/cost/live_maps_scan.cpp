// The maps from one look at all gcells, for proposals that change many of them.
#include <algorithm>
#include <limits>

#include "cost/live_maps.hpp"

namespace placement {

void LiveMaps::update_all(const RouteSteps& steps, const MacroCover& cover) {
  is_scan_ = true;
  congestion_.swap(old_congestion_);
  scan(sides_[0], steps.vertical().data(), cover.vertical_block().data());
  scan(sides_[1], steps.horizontal().data(), cover.horizontal_block().data());
}

// Works out all gcells of a map. What stood is kept whole.
void LiveMaps::scan(Side& side, const double* steps, const double* block) {
  const int length = side.axis.length;
  for (const std::int32_t place : side.places) {
    side.first[place] = std::numeric_limits<std::int32_t>::max();
    side.last[place] = -1;
  }
  side.places.clear();
  side.demand.swap(side.old_demand);
  std::fill(side.changed.begin(), side.changed.end(), 0);
  double* demand = side.demand.data();
  for (int i = 0; i < length; ++i) demand[i] = 0.0 + steps[i];
  for (int i = length; i < cells_; ++i) demand[i] = demand[i - length] + steps[i];
  double* map = congestion_.data() + side.at;
  const double share = side.axis.block_share;
  if (reach_ == 0) {
    const double per_capacity = side.axis.per_capacity;
    for (int i = 0; i < cells_; ++i) map[i] = demand[i] * per_capacity + block[i] * share;
    return;
  }
  const double* weights = side.axis.weights.data();
  double* shared = shared_.data() + reach_;
  std::fill_n(shared + length, reach_, 0.0);  // the other axis' lines may be longer
  for (int line = 0; line < side.axis.lines; ++line, demand += length, block += length, map += length) {
    for (int i = 0; i < length; ++i) shared[i] = demand[i] * weights[i];
    smooth_line(shared_.data(), reach_, block, share, length, map);
  }
}

}  // namespace placement
