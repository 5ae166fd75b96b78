// The maps from one look at all gcells, for proposals that change most of them.
#include <algorithm>
#include <cstring>

#include "cost/live_maps.hpp"

namespace placement {

void LiveMaps::update_all(const RouteSteps& steps, const MacroCover& cover) {
  is_scan_ = true;
  busiest_.touch_all();
  if (reach_ == 0) {
    congestion_.swap(old_values_);
    scan_unsmoothed(sides_[0], steps.vertical().data(), cover.vertical_block().data());
    scan_unsmoothed(sides_[1], steps.horizontal().data(), cover.horizontal_block().data());
    return;
  }
  run_all(0, steps.vertical().data());
  run_all(1, steps.horizontal().data());
  refill(sides_[0], cover.vertical_block().data());
  refill(sides_[1], cover.horizontal_block().data());
}

// Works out all gcells of a map that is not smoothed: sooner done than looking for what changed. What stood is kept whole.
void LiveMaps::scan_unsmoothed(Side& side, const double* steps, const double* block) {
  const int length = side.axis.length;
  side.demand.swap(side.old_demand);
  std::fill(side.changed.begin(), side.changed.end(), 0);
  double* demand = side.demand.data();
  double* map = congestion_.data() + side.at;
  const double per_capacity = side.axis.per_capacity, share = side.axis.block_share;
  for (int i = 0; i < length; ++i) demand[i] = 0.0 + steps[i];
  for (int i = length; i < cells_; ++i) demand[i] = demand[i - length] + steps[i];
  for (int i = 0; i < cells_; ++i) map[i] = demand[i] * per_capacity + block[i] * share;
}

void LiveMaps::run_all(int number, const double* steps) {
  const Side& side = sides_[number];
  const int length = side.axis.length;
  double* running = running_.data();
  std::fill_n(running, length, 0.0);
  for (int line = 0; line < side.axis.lines; ++line, steps += length) {
    const double* demand = side.demand.data() + line * length;
    for (int i = 0; i < length; ++i) running[i] += steps[i];
    if (std::memcmp(running, demand, length * sizeof(double)) == 0) continue;
    int first = 0, end = length;
    while (first < end && running[first] == demand[first]) ++first;
    while (end > first && running[end - 1] == demand[end - 1]) --end;
    if (first < end) set_demands(number, line, first, end, running);
  }
}

// demand [length]
void LiveMaps::set_demands(int number, int line, int first, int end, const double* demand) {
  Side& side = sides_[number];
  const int length = side.axis.length, count = end - first, index = line * length + first;
  const int shared_index = line * (length + 2 * reach_) + reach_ + first;
  old_lines_[lines_++] = {number, index, shared_index, count};
  double* now = side.demand.data() + index;
  double* shared = side.shared.data() + shared_index;
  std::copy_n(now, count, old_line_demand_.data() + line_values_);
  std::copy_n(shared, count, old_line_shared_.data() + line_values_);
  line_values_ += count;
  std::copy_n(demand + first, count, now);
  const double* sharers = side.axis.sharers.data() + first;
  for (int i = 0; i < count; ++i) shared[i] = now[i] * side.axis.per_capacity / sharers[i];
  mark(side, line, std::max(0, first - reach_), std::min(length - 1, end - 1 + reach_));
}

}  // namespace placement
