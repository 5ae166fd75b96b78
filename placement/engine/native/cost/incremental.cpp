#include "cost/incremental.hpp"

#include <algorithm>
#include <utility>

namespace placement {

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
      net_length_(nets_->nets()),
      steps_(design_->canvas),
      cover_(design_->canvas),
      grid_(design_->canvas),
      old_steps_(design_->canvas),
      distinct_(design_->canvas, nets_->points()),
      new_places_(nets_->points()),
      net_stamp_(nets_->nets(), 0) {
  if (weights.name == CostName::chip) {
    chip_ = std::make_unique<ChipCost>(*design_, *nets_);
    spreads_.resize(nets_->nets());
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
  sum_up(true, true);
}

void IncrementalCost::reset_nets() {
  const CompactNets& nets = *nets_;
  costs_ = Costs();
  for (int net = 0; net < nets.nets(); ++net) {
    if (chip_) {
      spreads_[net] = chip_->wires().spread(nets, net, places_.data());
      chip_->wires().add(spreads_[net], 1.0);
      net_length_[net] = nets.weighted_length(net, spreads_[net].width + spreads_[net].height);
    } else {
      const int start = nets.net_start[net], count = nets.net_start[net + 1] - start;
      net_length_[net] =
          nets.weighted_length(net, half_perimeter(places_.data(), nets.net_points.data() + start, count));
      route(net, 1.0);
    }
    costs_.wirelength += net_length_[net];
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

  bool density = false;
  steps_changed_ = false;
  for (int i = 0; i < count; ++i) {
    const NodeMove old = at(moves[i].node);
    old_moves_.push_back(old);
    const bool covers_alike = old.x == moves[i].x && old.y == moves[i].y &&
                              swaps_sides(old.orientation) == swaps_sides(moves[i].orientation);
    if (!covers_alike) {
      add_cover(old, -1.0);
      add_cover(moves[i], 1.0);
      density = true;
    }
  }
  if (chip_) {
    propose_spreads(moves, count);
  } else {
    propose_routes(moves, count);
  }
  sum_up(density, density | steps_changed_);
  return costs_;
}

// Moves the macros; the nets' lengths follow, and the routes of those that moved to other gcells.
void IncrementalCost::propose_routes(const NodeMove* moves, int count) {
  const CompactNets& nets = *nets_;
  gather_routed(moves, count);
  steps_changed_ = !routed_.empty();
  if (steps_changed_) old_steps_.copy(steps_);
  for (const std::int32_t net : routed_) route(net, -1.0);
  for (int i = 0; i < count; ++i) put(moves[i]);
  for (const std::int32_t net : routed_) route(net, 1.0);
  for (const std::int32_t net : touched_) {
    const int start = nets.net_start[net], points = nets.net_start[net + 1] - start;
    set_length(net, nets.weighted_length(net, half_perimeter(places_.data(), nets.net_points.data() + start, points)));
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
  steps_changed_ = true;
}

void IncrementalCost::set_length(int net, double length) {
  old_lengths_.push_back({net, net_length_[net]});
  costs_.wirelength += length - net_length_[net];
  net_length_[net] = length;
}

void IncrementalCost::undo() {
  if (!pending_) return;
  pending_ = false;
  const PointPlace* old_place = old_places_.data();
  for (const NodeMove& old : old_moves_) {
    const NodeMove now = at(old.node);
    add_cover(now, -1.0);
    add_cover(old, 1.0);
    x_[old.node] = old.x;
    y_[old.node] = old.y;
    orientation_[old.node] = old.orientation;
    const int start = nets_->point_start[old.node], points = nets_->point_start[old.node + 1] - start;
    std::copy_n(old_place, points, places_.begin() + start);
    old_place += points;
  }
  for (const OldLength& old : old_lengths_) net_length_[old.net] = old.length;
  for (std::size_t i = 0; i < old_spreads_.size(); ++i) {
    NetSpread& spread = spreads_[old_lengths_[i].net];
    chip_->wires().add(spread, -1.0);
    spread = old_spreads_[i];
    chip_->wires().add(spread, 1.0);
  }
  if (!chip_ && steps_changed_) old_steps_.swap(steps_);
  costs_ = old_costs_;
}

void IncrementalCost::gather_nets(const NodeMove* moves, int count) {
  touched_.clear();
  next_epoch();
  for (int i = 0; i < count; ++i) add_nets_of(moves[i].node, touched_);
}

void IncrementalCost::gather_routed(const NodeMove* moves, int count) {
  routed_.clear();
  int leaving = 0;
  for (int i = 0; i < count; ++i) leaving += leaves(moves[i]);
  if (leaving == count) {  // as most proposals
    routed_.assign(touched_.begin(), touched_.end());
  } else if (leaving > 0) {
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

void IncrementalCost::route(int net, double sign) {
  const int start = nets_->net_start[net], count = nets_->net_start[net + 1] - start;
  const std::int32_t* points = nets_->net_points.data() + start;
  const double weight = sign * nets_->route_weight[net];
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

void IncrementalCost::add_cover(const NodeMove& at, double sign) {
  const double width = design_->width_of(at.node, at.orientation), height = design_->height_of(at.node, at.orientation);
  const bool hard = design_->kind_of(at.node) == Kind::hard;
  if (chip_) {
    chip_->add_macro(at.x, at.y, width, height, hard, sign);
  } else {
    cover_.add(at.x, at.y, width, height, hard, sign);
  }
}

void IncrementalCost::refresh_maps() {
  if (chip_) {  // its own maps say nothing of rows and columns
    steps_.clear();
    cover_.clear();
    for (int net = 0; net < nets_->nets(); ++net) route(net, 1.0);
    for (int node = 0; node < design_->nodes(); ++node) {
      if (design_->kind_of(node) != Kind::hard) continue;
      const std::int8_t turn = orientation_[node];
      cover_.add(x_[node], y_[node], design_->width_of(node, turn), design_->height_of(node, turn), true, 1.0);
    }
  }
  grid_.congestion_cost(steps_, cover_);
}

void IncrementalCost::sum_up(bool density, bool congestion) {
  costs_.wirelength_cost = costs_.wirelength * nets_->per_wirelength;
  if (density) costs_.density_cost = chip_ ? chip_->density_cost() : grid_.density_cost(cover_.density());
  if (congestion) costs_.congestion_cost = chip_ ? chip_->congestion_cost() : grid_.congestion_cost(steps_, cover_);
  costs_.proxy_cost = weighted_sum(costs_, weights_);
}

}  // namespace placement
