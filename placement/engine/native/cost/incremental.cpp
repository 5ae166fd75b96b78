#include "cost/incremental.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace placement {
namespace {

constexpr int kAhead = 6;  // nets whose records are fetched meanwhile

}  // namespace

IncrementalCost::IncrementalCost(std::shared_ptr<const Design> design, const double* x, const double* y,
                                 const std::int8_t* orientation, const Weights& weights)
    : design_(std::move(design)),
      nets_(shared_compact_nets(*design_)),
      weights_(weights),
      placer_(*design_, *nets_),
      x_(design_->nodes()),
      y_(design_->nodes()),
      orientation_(design_->nodes()),
      places_(nets_->points()),
      net_records_(nets_->nets()),
      steps_(design_->canvas),
      cover_(design_->canvas),
      grid_(design_->canvas),
      distinct_(design_->canvas, nets_->points()),
      new_places_(nets_->points()),
      moved_(nets_->points(), 0),
      before_(nets_->points()),
      after_(nets_->points()),
      before_cells_(nets_->points() + 1),
      after_cells_(nets_->points() + 1),
      net_stamp_(nets_->nets(), 0) {
  if (weights.name == CostName::chip) {
    chip_ = std::make_unique<ChipCost>(*design_, *nets_);
    spreads_.resize(nets_->nets());
  } else {
    maps_ = std::make_unique<LiveMaps>(design_->canvas);
  }
  for (int net = 0; net < nets_->nets(); ++net) {
    const int start = nets_->net_start[net];
    net_records_[net] = {start, nets_->net_start[net + 1] - start, nets_->wire_weight[net], nets_->route_weight[net], 0};
  }
  index_nets();
  reset(x, y, orientation);
}

void IncrementalCost::index_nets() {
  const CompactNets& nets = *nets_;
  std::vector<std::vector<std::int32_t>> nets_of(design_->nodes());
  for (int net = 0; net < nets.nets(); ++net) {
    for (int i = nets.net_start[net]; i < nets.net_start[net + 1]; ++i) {
      auto& found = nets_of[nets.point_node[nets.net_points[i]]];
      if (found.empty() || found.back() != net) found.push_back(net);
    }
  }
  node_net_start_.push_back(0);
  for (const auto& found : nets_of) {
    node_nets_.insert(node_nets_.end(), found.begin(), found.end());
    node_net_start_.push_back(static_cast<std::int32_t>(node_nets_.size()));
  }
}

void IncrementalCost::reset(const double* x, const double* y, const std::int8_t* orientation) {
  pending_ = false;
  steps_.clear();
  cover_.clear();
  if (chip_) chip_->clear();
  for (int node = 0; node < design_->nodes(); ++node) {
    x_[node] = x[node];
    y_[node] = y[node];
    orientation_[node] = orientation[node];
    placer_.place(node, x[node], y[node], orientation[node], places_.data());
    const Kind kind = design_->kind_of(node);
    if (kind == Kind::hard || kind == Kind::soft) add_cover(at(node), 1.0);
  }
  reset_nets();
  if (maps_) maps_->reset(steps_, cover_);
  sum_up(true, true);
}

void IncrementalCost::reset_nets() {
  const CompactNets& nets = *nets_;
  costs_ = Costs();
  for (int net = 0; net < nets.nets(); ++net) {
    if (chip_) {
      spreads_[net] = chip_->wires().spread(nets, net, places_.data());
      chip_->wires().add(spreads_[net], 1.0);
      net_records_[net].length = nets.weighted_length(net, spreads_[net].width + spreads_[net].height);
    } else {
      const int start = nets.net_start[net], count = nets.net_start[net + 1] - start;
      net_records_[net].length =
          nets.weighted_length(net, half_perimeter(places_.data(), nets.net_points.data() + start, count));
      route(net);
    }
    costs_.wirelength += net_records_[net].length;
  }
}

const Costs& IncrementalCost::propose(const NodeMove* moves, int count) {
  old_moves_.clear();
  old_places_.clear();
  old_lengths_.clear();
  old_spreads_.clear();
  old_costs_ = costs_;
  pending_ = true;
  gather_nets(moves, count);

  if (maps_) maps_->begin();
  bool density = false, blocks = false;
  for (int i = 0; i < count; ++i) {
    const NodeMove old = at(moves[i].node);
    old_moves_.push_back(old);
    if (covers_alike(old, moves[i])) continue;
    density = true;
    const bool hard = design_->kind_of(old.node) == Kind::hard;
    blocks |= hard;
    const CellBox left = add_cover(old, -1.0), met = add_cover(moves[i], 1.0);
    if (!maps_) continue;
    maps_->cover_changed(left, hard);
    maps_->cover_changed(met, hard);
  }
  if (chip_) {
    propose_spreads(moves, count);
    sum_up(density, true);
    return costs_;
  }
  maps_changed_ = propose_routes(moves, count) | blocks;
  if (maps_changed_) maps_->update(steps_, cover_);
  sum_up(density, maps_changed_);
  return costs_;
}

bool IncrementalCost::covers_alike(const NodeMove& a, const NodeMove& b) const {
  return a.x == b.x && a.y == b.y && swaps_sides(a.orientation) == swaps_sides(b.orientation);
}

// Moves the macros; the nets' lengths follow, and the routes of those that moved to other gcells. Returns whether any did.
bool IncrementalCost::propose_routes(const NodeMove* moves, int count) {
  gather_routed(moves, count);
  steps_.begin();
  for (int i = 0; i < count; ++i) mark_points(moves[i].node, 1);
  renew_nets();
  for (int i = 0; i < count; ++i) {
    put(moves[i]);
    mark_points(moves[i].node, 0);
  }
  return all_routed_ || !routed_.empty();
}

void IncrementalCost::mark_points(int node, std::uint8_t moved) {
  std::fill(moved_.begin() + nets_->point_start[node], moved_.begin() + nets_->point_start[node + 1], moved);
}

void IncrementalCost::renew_nets() {
  const int count = static_cast<int>(touched_.size());
  const bool some_routed = !all_routed_ && !routed_.empty();  // then they are stamped with this epoch
  for (int i = 0; i < count; ++i) {
    __builtin_prefetch(&net_records_[touched_[std::min(i + kAhead, count - 1)]]);
    const std::int32_t net = touched_[i];
    const bool routed = all_routed_ || (some_routed && net_stamp_[net] == epoch_);
    switch (net_records_[net].count) {
      case 2: renew_net<2>(net, routed); break;
      case 3: renew_net<3>(net, routed); break;
      case 4: renew_net<4>(net, routed); break;
      case 5: renew_net<5>(net, routed); break;
      case 6: renew_net<6>(net, routed); break;
      default: renew_net<0>(net, routed);
    }
  }
}

// The length, and the route if `routed`, of a net with points that are to move; kPoints 0: of any number.
template <int kPoints>
void IncrementalCost::renew_net(int net, bool routed) {
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
    steps_.add_two<true>(*before[0], *before[1], -record.route_weight);
    steps_.add_two<true>(*after[0], *after[1], record.route_weight);
  } else if constexpr (kPoints > 0) {
    const PointPlace *before_cells[kPoints + 1], *after_cells[kPoints + 1];
    const int count_before = find_distinct<kPoints>(before, before_cells);
    const int count_after = find_distinct<kPoints>(after, after_cells);
    steps_.change(before_cells, count_before, after_cells, count_after, record.route_weight);
  } else {
    const int count_before = distinct_.find(before, count, before_cells_.data());
    const int count_after = distinct_.find(after, count, after_cells_.data());
    steps_.change(before_cells_.data(), count_before, after_cells_.data(), count_after, record.route_weight);
  }
}

// Moves the macros; the nets' lengths and the wire in their boxes follow.
void IncrementalCost::propose_spreads(const NodeMove* moves, int count) {
  const CompactNets& nets = *nets_;
  WireSpread& wires = chip_->wires();
  for (int i = 0; i < count; ++i) put(moves[i]);
  for (const std::int32_t net : touched_) {
    NetSpread& spread = spreads_[net];
    old_spreads_.push_back(spread);
    wires.add(spread, -1.0);
    spread = wires.spread(nets, net, places_.data());
    wires.add(spread, 1.0);
    set_length(net, nets.weighted_length(net, spread.width + spread.height));
  }
}

void IncrementalCost::set_length(int net, double length) {
  double& now = net_records_[net].length;
  old_lengths_.push_back({net, now});
  costs_.wirelength += length - now;
  now = length;
}

void IncrementalCost::undo() {
  if (!pending_) return;
  pending_ = false;
  const PointPlace* old_place = old_places_.data();
  for (const NodeMove& old : old_moves_) {
    const NodeMove now = at(old.node);
    if (!covers_alike(now, old)) {
      const CellBox left = add_cover(now, -1.0), met = add_cover(old, 1.0);
      if (maps_) maps_->cover_restored(left);
      if (maps_) maps_->cover_restored(met);
    }
    x_[old.node] = old.x;
    y_[old.node] = old.y;
    orientation_[old.node] = old.orientation;
    const int start = nets_->point_start[old.node], points = nets_->point_start[old.node + 1] - start;
    std::copy_n(old_place, points, places_.begin() + start);
    old_place += points;
  }
  for (const OldLength& old : old_lengths_) net_records_[old.net].length = old.length;
  for (std::size_t i = 0; i < old_spreads_.size(); ++i) {
    NetSpread& spread = spreads_[old_lengths_[i].net];
    chip_->wires().add(spread, -1.0);
    spread = old_spreads_[i];
    chip_->wires().add(spread, 1.0);
  }
  if (maps_) steps_.undo();
  if (maps_ && maps_changed_) maps_->undo();
  costs_ = old_costs_;
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

void IncrementalCost::route(int net) {
  const int start = nets_->net_start[net], count = nets_->net_start[net + 1] - start;
  const std::int32_t* points = nets_->net_points.data() + start;
  const double weight = nets_->route_weight[net];
  if (count == 2) {
    steps_.add_two(places_[points[0]], places_[points[1]], weight);
  } else {
    const int distinct = distinct_.find(places_.data(), points, count);
    steps_.add(distinct_.cells(), distinct, weight);
  }
}

// Moves a node and its points.
void IncrementalCost::put(const NodeMove& move) {
  x_[move.node] = move.x;
  y_[move.node] = move.y;
  orientation_[move.node] = move.orientation;
  const int start = nets_->point_start[move.node], end = nets_->point_start[move.node + 1];
  old_places_.insert(old_places_.end(), places_.begin() + start, places_.begin() + end);
  if (chip_) {
    placer_.place(move.node, move.x, move.y, move.orientation, places_.data());
  } else {  // `leaves` has placed them
    std::copy(new_places_.begin() + start, new_places_.begin() + end, places_.begin() + start);
  }
}

CellBox IncrementalCost::add_cover(const NodeMove& at, double sign) {
  const double width = design_->width_of(at.node, at.orientation), height = design_->height_of(at.node, at.orientation);
  const bool hard = design_->kind_of(at.node) == Kind::hard;
  if (chip_) {
    chip_->add_macro(at.x, at.y, width, height, hard, sign);
    return {};
  }
  return cover_.add(at.x, at.y, width, height, hard, sign);
}

void IncrementalCost::refresh_maps() {
  if (!chip_) return;  // maps_ is up to date
  steps_.clear();      // the chip cost's own maps say nothing of rows and columns
  cover_.clear();
  for (int net = 0; net < nets_->nets(); ++net) route(net);
  for (int node = 0; node < design_->nodes(); ++node) {
    if (design_->kind_of(node) != Kind::hard) continue;
    const std::int8_t turn = orientation_[node];
    cover_.add(x_[node], y_[node], design_->width_of(node, turn), design_->height_of(node, turn), true, 1.0);
  }
  grid_.congestion_cost(steps_, cover_);
}

void IncrementalCost::sum_up(bool density, bool congestion) {
  costs_.wirelength_cost = costs_.wirelength * nets_->per_wirelength;
  if (density) costs_.density_cost = chip_ ? chip_->density_cost() : maps_->density_cost(cover_);
  if (congestion) costs_.congestion_cost = chip_ ? chip_->congestion_cost() : maps_->congestion_cost();
  costs_.proxy_cost = weighted_sum(costs_, weights_);
}

}  // namespace placement
