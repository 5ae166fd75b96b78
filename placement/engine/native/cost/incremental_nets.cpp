// How the nets follow a proposal on the proxy cost: their lengths, and the routes of those that change.
#include "cost/incremental.hpp"

#include <algorithm>
#include <cmath>

namespace placement {
namespace {

constexpr int kGcellsPerPoint = 48;  // gcells of a scan that take as long as a point that moves; measured
constexpr int kAhead = 6;  // nets whose records are fetched meanwhile

}  // namespace

// Moves the macros; the nets' lengths follow, and the routes of those that moved to other gcells. Returns whether any did.
bool IncrementalCost::propose_routes(const NodeMove* moves, int count) {
  const bool any_routed = all_routed_ || !routed_.empty();
  scans_all_ = any_routed && changes_many(moves, count);
  scans_whole_ = scans_all_ && whole_steps_ != nullptr;
  for (int i = 0; i < count; ++i) mark_points(moves[i].node, 1);
  if (scans_whole_) {
    if (is_whole_behind_) whole_steps_->take(steps_);
    is_whole_behind_ = false;
    whole_steps_->begin();
    renew_nets<false>(*whole_steps_);
  } else {
    if (is_behind_) {
      steps_.take(whole_steps_->horizontal(), whole_steps_->vertical());
      maps_->take_demands(steps_);
    }
    is_behind_ = false;
    steps_.begin(!scans_all_);
    if (scans_all_) renew_nets<false>(steps_);
    else renew_nets<true>(steps_);
  }
  for (int i = 0; i < count; ++i) {
    put(moves[i]);
    mark_points(moves[i].node, 0);
  }
  return any_routed;
}

// Whether the routes change so much of the grid that all of it is looked at sooner than what they change.
bool IncrementalCost::changes_many(const NodeMove* moves, int count) const {
  std::int64_t points = 0;
  for (int i = 0; i < count; ++i) points += node_net_points_[moves[i].node];
  return points * kGcellsPerPoint > design_->canvas.cells();
}

void IncrementalCost::mark_points(int node, std::uint8_t moved) {
  std::fill(moved_.begin() + nets_->point_start[node], moved_.begin() + nets_->point_start[node + 1], moved);
}

template <bool kLogged, typename Steps>
void IncrementalCost::renew_nets(Steps& steps) {
  const int count = static_cast<int>(touched_.size());
  const bool some_routed = !all_routed_ && !routed_.empty();  // then they are stamped with this epoch
  for (int i = 0; i < count; ++i) {
    __builtin_prefetch(&net_records_[touched_[std::min(i + kAhead, count - 1)]]);
    __builtin_prefetch(nets_->net_points.data() + net_records_[touched_[std::min(i + kAhead / 2, count - 1)]].start);
    const std::int32_t net = touched_[i];
    const bool routed = all_routed_ || (some_routed && net_stamp_[net] == epoch_);
    switch (net_records_[net].count) {
      case 2: renew_net<2, kLogged>(net, routed, steps); break;
      case 3: renew_net<3, kLogged>(net, routed, steps); break;
      case 4: renew_net<4, kLogged>(net, routed, steps); break;
      case 5: renew_net<5, kLogged>(net, routed, steps); break;
      case 6: renew_net<6, kLogged>(net, routed, steps); break;
      default: renew_net<0, kLogged>(net, routed, steps);
    }
  }
}

// The length, and the route if `routed`, of a net with points that are to move; kPoints 0: of any number.
template <int kPoints, bool kLogged, typename Steps>
void IncrementalCost::renew_net(int net, bool routed, Steps& steps) {
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
  set_length(net, nets_->length_rounder(record.wire_weight * (high - low).sum()));
  if (!routed || same) return;
  if constexpr (kPoints == 2) {
    steps.template add_two<kLogged>(*before[0], *before[1], -record.route_weight);
    steps.template add_two<kLogged>(*after[0], *after[1], record.route_weight);
  } else if constexpr (kPoints > 0) {
    const PointPlace *before_cells[kPoints + 1], *after_cells[kPoints + 1];
    const int count_before = find_distinct<kPoints>(before, before_cells);
    const int count_after = find_distinct<kPoints>(after, after_cells);
    steps.template change<kLogged>(before_cells, count_before, after_cells, count_after, record.route_weight);
  } else {
    const int count_before = distinct_.find(before, count, before_cells_.data());
    const int count_after = distinct_.find(after, count, after_cells_.data());
    steps.template change<kLogged>(before_cells_.data(), count_before, after_cells_.data(), count_after, record.route_weight);
  }
}

void IncrementalCost::gather_nets(const NodeMove* moves, int count) {
  touched_.clear();
  if (count == 1) {  // a node has each net once
    const auto first = node_nets_.begin();
    touched_.assign(first + node_net_start_[moves->node], first + node_net_start_[moves->node + 1]);
    return;
  }
  next_epoch();
  for (int i = 0; i < count; ++i) add_nets_of(moves[i].node, touched_);
}

void IncrementalCost::gather_routed(const NodeMove* moves, int count) {
  routed_.clear();
  int leaving = 0;
  for (int i = 0; i < count; ++i) leaving += leaves(moves[i]);
  all_routed_ = leaving == count;  // as most proposals
  if (all_routed_) return;
  if (leaving > 0) {
    next_epoch();
    for (int i = 0; i < count; ++i) {
      if (leaves(moves[i])) add_nets_of(moves[i].node, routed_);
    }
  }
}

void IncrementalCost::next_epoch() {
  if (++epoch_ != 0) return;
  std::fill(net_stamp_.begin(), net_stamp_.end(), 0);
  epoch_ = 1;
}

// Those that this epoch has not met.
void IncrementalCost::add_nets_of(int node, std::vector<std::int32_t>& nets) {
  for (int j = node_net_start_[node]; j < node_net_start_[node + 1]; ++j) {
    const std::int32_t net = node_nets_[j];
    if (net_stamp_[net] != epoch_) nets.push_back(net);
    net_stamp_[net] = epoch_;
  }
}

// Whether the move takes one of the node's points to another gcell.
bool IncrementalCost::leaves(const NodeMove& move) {
  const int start = nets_->point_start[move.node], end = nets_->point_start[move.node + 1];
  placer_.place(move.node, move.x, move.y, move.orientation, new_places_.data());
  bool left = false;
  for (int point = start; point < end; ++point) left |= places_[point].cell != new_places_[point].cell;
  return left;
}

}  // namespace placement
