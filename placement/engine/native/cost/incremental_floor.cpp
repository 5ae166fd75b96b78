// Whether a proposal is sure to cost more than a limit, before anything is changed.
#include <algorithm>
#include <cmath>

#include "cost/incremental.hpp"

namespace placement {
namespace {

constexpr int kAhead = 6;            // nets whose records are fetched meanwhile
// Proposals evaluated in vain before the floor's gcells are taken anew, and one more for so many gcells: about what that costs.
constexpr int kLeastWasted = 2, kGcellsPerWasted = 1000;

}  // namespace

void IncrementalCost::renew_floor() {
  if (floor_) floor_->renew(*maps_);
  if (chip_) standing_excess_ = chip_->wires().renew_floor();
  accepted_ = wasted_ = 0;
  is_excess_behind_ = false;
  is_floor_standing_ = false;
}

bool IncrementalCost::is_sure_above(const NodeMove* moves, int count, double limit) {
  if (!floor_) return false;
  if (accepted_ > 0 && wasted_ > kLeastWasted + design_->canvas.cells() / kGcellsPerWasted) renew_floor();
  if (!is_floor_standing_) {
    standing_floor_ = floor_->standing(*maps_);
    is_floor_standing_ = true;
  }
  double floor = standing_floor_ + weights_.wirelength * costs_.wirelength_cost + weights_.density * costs_.density_cost;
  for (int i = 0; i < count && blocks_changed_; ++i) {
    if (design_->kind_of(moves[i].node) == Kind::hard) floor += floor_of_block(moves[i]) - floor_of_block(at(moves[i].node));
  }
  for (int i = 0; i < count; ++i) mark_points(moves[i].node, 1);
  floor += floor_of_nets();
  for (int i = 0; i < count; ++i) mark_points(moves[i].node, 0);
  return is_surely_above(floor, limit);
}

double IncrementalCost::floor_of_block(const NodeMove& macro) const {
  const double width = design_->width_of(macro.node, macro.orientation), height = design_->height_of(macro.node, macro.orientation);
  return floor_->block(cover_, macro.x, macro.y, width, height);
}

// What the nets of the moved nodes cost more at least.
double IncrementalCost::floor_of_nets() {
  const int count = static_cast<int>(touched_.size());
  const bool some_routed = !all_routed_ && !routed_.empty();  // then they are stamped with this epoch
  double length = 0;
  for (int i = 0; i < count; ++i) {
    __builtin_prefetch(&net_records_[touched_[std::min(i + kAhead, count - 1)]]);
    const std::int32_t net = touched_[i];
    const bool routed = all_routed_ || (some_routed && net_stamp_[net] == epoch_);
    switch (net_records_[net].count) {
      case 2: length += floor_of_net<2>(net, routed); break;
      case 3: length += floor_of_net<3>(net, routed); break;
      case 4: length += floor_of_net<4>(net, routed); break;
      case 5: length += floor_of_net<5>(net, routed); break;
      case 6: length += floor_of_net<6>(net, routed); break;
      default: length += floor_of_net<0>(net, routed);
    }
  }
  return weights_.wirelength * nets_->per_wirelength * length + floor_->routes().take();
}

// How much longer the net gets, weighted; adds the price of its new route. kPoints 0: of any number.
template <int kPoints>
double IncrementalCost::floor_of_net(int net, bool routed) {
  const NetRecord& record = net_records_[net];
  const int count = kPoints > 0 ? kPoints : record.count;
  const std::int32_t* points = nets_->net_points.data() + record.start;
  const PointPlace *few_before[kPoints + 1], *few_after[kPoints + 1];
  const PointPlace** before = kPoints > 0 ? few_before : before_.data();
  const PointPlace** after = kPoints > 0 ? few_after : after_.data();
  Pair low = Pair::of(INFINITY, INFINITY), high = Pair::of(-INFINITY, -INFINITY);
  bool same = true;  // gcells
  for (int i = 0; i < count; ++i) {
    const int point = points[i];
    before[i] = &places_[point];
    after[i] = (moved_[point] ? new_places_.data() : places_.data()) + point;
    const Pair at = Pair::load(&after[i]->x);
    low = least(low, at);
    high = largest(high, at);
    same &= before[i]->cell == after[i]->cell;
  }
  const double longer = record.wire_weight * (high - low).sum() - record.length;
  if (!routed || same) return longer;
  RoutePrices& prices = floor_->routes();
  if constexpr (kPoints == 2) {
    prices.add_two(*before[0], *before[1], -record.route_weight);
    prices.add_two(*after[0], *after[1], record.route_weight);
  } else if constexpr (kPoints > 0) {
    const PointPlace *before_cells[kPoints + 1], *after_cells[kPoints + 1];
    const int count_before = find_distinct<kPoints>(before, before_cells);
    const int count_after = find_distinct<kPoints>(after, after_cells);
    prices.change<false>(before_cells, count_before, after_cells, count_after, record.route_weight);
  } else {
    const int count_before = distinct_.find(before, count, before_cells_.data());
    const int count_after = distinct_.find(after, count, after_cells_.data());
    prices.change<false>(before_cells_.data(), count_before, after_cells_.data(), count_after, record.route_weight);
  }
  return longer;
}

}  // namespace placement
