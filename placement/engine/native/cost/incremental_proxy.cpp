#include "cost/incremental_proxy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace placement {
namespace {

constexpr int kGcellsPerPoint = 48;  // number of scanned gcells that take as long as one moving point; measured
// Number of undone proposals before the gcells of the bound are selected again, plus one per this many gcells: about the
// time that this takes.
constexpr int kLeastWasted = 2, kGcellsPerWasted = 1000;

// Upper bound of a gcell's demand; NaN if a net's demand is not an integer. A net of n points has n − 1 branches.
double most_demand(const CompactNets& nets) {
  double most = 0;
  for (int net = 0; net < nets.nets(); ++net) {
    const double weight = nets.route_weight[net];
    if (weight != std::trunc(weight)) return std::numeric_limits<double>::quiet_NaN();
    most += weight * (nets.size(net) - 1);
  }
  return most;
}

}  // namespace

ProxyIncrementalCost::ProxyIncrementalCost(std::shared_ptr<const Design> design, const double* x, const double* y,
                                           const std::int8_t* orientation, const Weights& weights)
    : IncrementalCost(std::move(design), weights),
      steps_(design_->canvas),
      cover_(design_->canvas),
      maps_(design_->canvas),
      router_(design_->canvas, nets_->points()),
      floor_(std::make_unique<CongestionFloor>(design_->canvas, weights_)),
      node_net_points_(design_->nodes(), 0),
      new_places_(nets_->points()),
      moved_(nets_->points(), 0) {
  if (maps_.scans_whole(most_demand(*nets_))) whole_steps_ = std::make_unique<WholeRouteSteps>(design_->canvas);
  if (!floor_->is_valid()) floor_.reset();
  for (int node = 0; node < design_->nodes(); ++node) {
    for (int j = node_net_start_[node]; j < node_net_start_[node + 1]; ++j) {
      node_net_points_[node] += net_records_[node_nets_[j]].count;
    }
  }
  reset(x, y, orientation);
}

void ProxyIncrementalCost::clear() {
  is_behind_ = false;
  is_whole_behind_ = true;
  steps_.clear();
  cover_.clear();
}

double ProxyIncrementalCost::add_net(int net) {
  const NetRecord& record = net_records_[net];
  return with_size(record.count, [&](auto points) {
    return router_.add<points>(places_.data(), nets_->net_points.data() + record.start, record.count,
                               record.route_weight, steps_);
  });
}

void ProxyIncrementalCost::complete() {
  maps_.reset(steps_, cover_);
  costs_.density_cost = maps_.density_cost(cover_);
  costs_.congestion_cost = maps_.congestion_cost();
  renew_floor();
}

CellBox ProxyIncrementalCost::add_cover(const NodeMove& at, double sign) {
  const double width = design_->width_of(at.node, at.orientation), height = design_->height_of(at.node, at.orientation);
  return cover_.add(at.x, at.y, width, height, is_hard(at), sign);
}

void ProxyIncrementalCost::change_macros(const NodeMove* moves, int count, bool) {
  boxes_.clear();
  gather_routed(moves, count);
  bool density_changed = blocks_changed_ = false;
  for (int i = 0; i < count; ++i) {
    const NodeMove& old = old_moves_[i];
    if (covers_alike(old, moves[i])) continue;
    density_changed = true;
    const CellBox left = add_cover(old, -1.0), met = add_cover(moves[i], 1.0);
    maps_.cover_changed(left);
    maps_.cover_changed(met);
    if (!is_hard(old)) continue;
    blocks_changed_ = true;
    boxes_.insert(boxes_.end(), {left, met});
  }
  if (density_changed) costs_.density_cost = maps_.density_cost(cover_);
}

void ProxyIncrementalCost::take_macros_back(const NodeMove* moves) {
  for (const NodeMove& old : old_moves_) {
    const NodeMove& now = *moves++;
    if (covers_alike(now, old)) continue;
    maps_.cover_changed(add_cover(now, -1.0));
    maps_.cover_changed(add_cover(old, 1.0));
  }
}

void ProxyIncrementalCost::take_nets_back() {
  if (scans_whole_) whole_steps_->undo();
  else steps_.undo();
  if (maps_changed_) maps_.undo();
}

// Applies the proposal to the maps; the steps that were not updated become outdated.
void ProxyIncrementalCost::keep() {
  is_floor_fresh_ = false;
  if (!maps_changed_) return;
  maps_.draw();
  is_behind_ = scans_whole_;
  is_whole_behind_ = !scans_whole_;
}

void ProxyIncrementalCost::change_nets(const NodeMove* moves, int count) {
  maps_.begin();
  for (const CellBox& box : boxes_) maps_.block_changed(box);
  maps_changed_ = propose_routes(moves, count) | blocks_changed_;
  if (maps_changed_) {
    if (scans_whole_) maps_.update_all(*whole_steps_, cover_);
    else if (scans_all_) maps_.update_all(steps_, cover_);
    else maps_.update(steps_, cover_);
    costs_.congestion_cost = maps_.congestion_cost();
  }
  sum_up();
}

// Moves the macros and updates the nets' lengths, and the routes of those that moved to other gcells. Returns whether
// any did.
bool ProxyIncrementalCost::propose_routes(const NodeMove* moves, int count) {
  const bool any_routed = all_routed_ || !routed_.empty();
  scans_all_ = any_routed && changes_many(moves, count);
  scans_whole_ = scans_all_ && whole_steps_ != nullptr;
  mark_points(moves, count, 1);
  if (scans_whole_) {
    if (is_whole_behind_) whole_steps_->take(steps_);
    is_whole_behind_ = false;
    whole_steps_->begin();
    renew_nets<false>(*whole_steps_);
  } else {
    if (is_behind_) {
      steps_.take(whole_steps_->horizontal(), whole_steps_->vertical());
      maps_.take_demands(steps_);
    }
    is_behind_ = false;
    steps_.begin(!scans_all_);
    if (scans_all_) renew_nets<false>(steps_);
    else renew_nets<true>(steps_);
  }
  for (int i = 0; i < count; ++i) {
    put(moves[i]);
    const int start = nets_->point_start[moves[i].node], end = nets_->point_start[moves[i].node + 1];
    std::copy(new_places_.begin() + start, new_places_.begin() + end, places_.begin() + start);
  }
  mark_points(moves, count, 0);
  return any_routed;
}

// Whether the routes change so many gcells that a scan of the whole grid is faster.
bool ProxyIncrementalCost::changes_many(const NodeMove* moves, int count) const {
  std::int64_t points = 0;
  for (int i = 0; i < count; ++i) points += node_net_points_[moves[i].node];
  return points * kGcellsPerPoint > design_->canvas.cells();
}

void ProxyIncrementalCost::mark_points(const NodeMove* moves, int count, std::uint8_t moved) {
  for (int i = 0; i < count; ++i) {
    const int node = moves[i].node;
    std::fill(moved_.begin() + nets_->point_start[node], moved_.begin() + nets_->point_start[node + 1], moved);
  }
}

// Reroutes the touched nets whose points move to other gcells; take(net, its half perimeter in µm).
template <bool kLogged, typename Routes, typename Take>
void ProxyIncrementalCost::follow_nets(Routes& routes, Take take) {
  const bool some_routed = !all_routed_ && !routed_.empty();  // they are then stamped with this epoch
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    prefetch(i);
    const std::int32_t net = touched_[i];
    const NetRecord& record = net_records_[net];
    const bool routed = all_routed_ || (some_routed && net_stamp_[net] == epoch_);
    with_size(record.count, [&](auto points) {
      take(net, router_.follow<points, kLogged>(places_.data(), new_places_.data(), moved_.data(),
                                                nets_->net_points.data() + record.start, record.count,
                                                record.route_weight, routed, routes));
    });
  }
}

template <bool kLogged, typename Steps>
void ProxyIncrementalCost::renew_nets(Steps& steps) {
  follow_nets<kLogged>(steps, [this](int net, double half_perimeter) {
    set_length(net, nets_->length_rounder(net_records_[net].wire_weight * half_perimeter));
  });
}

// Collects the nets of those nodes that have a point which leaves its gcell.
void ProxyIncrementalCost::gather_routed(const NodeMove* moves, int count) {
  routed_.clear();
  int leaving = 0;
  for (int i = 0; i < count; ++i) leaving += leaves(moves[i]);
  all_routed_ = leaving == count;  // as in most proposals
  if (all_routed_ || leaving == 0) return;
  next_epoch();
  for (int i = 0; i < count; ++i) {
    if (leaves(moves[i])) add_nets_of(moves[i].node, routed_);
  }
}

// Whether the move takes one of the node's points to another gcell; computes its new positions.
bool ProxyIncrementalCost::leaves(const NodeMove& move) {
  const int start = nets_->point_start[move.node], end = nets_->point_start[move.node + 1];
  placer_.place(move.node, move.x, move.y, move.orientation, new_places_.data());
  bool left = false;
  for (int point = start; point < end; ++point) left |= places_[point].cell != new_places_[point].cell;
  return left;
}

void ProxyIncrementalCost::renew_floor() {
  if (floor_) floor_->renew(maps_);
  accepted_ = wasted_ = 0;
  is_floor_fresh_ = false;
}

bool ProxyIncrementalCost::is_surely_above(const NodeMove* moves, int count, double limit) {
  if (!floor_) return false;
  if (accepted_ > 0 && wasted_ > kLeastWasted + design_->canvas.cells() / kGcellsPerWasted) renew_floor();
  if (!is_floor_fresh_) {
    floor_now_ = floor_->current(maps_);
    is_floor_fresh_ = true;
  }
  double floor = floor_now_ + weights_.wirelength * costs_.wirelength_cost + weights_.density * costs_.density_cost +
                 weights_.tidy * costs_.tidy_cost;
  for (int i = 0; i < count && blocks_changed_; ++i) {
    if (is_hard(moves[i])) floor += floor_of_block(moves[i]) - floor_of_block(old_moves_[i]);
  }
  mark_points(moves, count, 1);
  floor += floor_of_nets();
  mark_points(moves, count, 0);
  return is_floor_above(floor, limit);
}

double ProxyIncrementalCost::floor_of_block(const NodeMove& macro) const {
  const double width = design_->width_of(macro.node, macro.orientation), height = design_->height_of(macro.node, macro.orientation);
  return floor_->block(cover_, macro.x, macro.y, width, height);
}

// Lower bound of the cost increase of the moved nodes' nets.
double ProxyIncrementalCost::floor_of_nets() {
  double longer = 0;
  follow_nets<false>(floor_->routes(), [&](int net, double half_perimeter) {
    longer += net_records_[net].wire_weight * half_perimeter - net_records_[net].length;
  });
  return weights_.wirelength * nets_->per_wirelength * longer + floor_->routes().take();
}

}  // namespace placement
