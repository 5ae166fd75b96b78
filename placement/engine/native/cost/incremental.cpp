#include "cost/incremental.hpp"

#include <algorithm>
#include <utility>

#include "cost/incremental_chip.hpp"
#include "cost/incremental_proxy.hpp"

namespace placement {

IncrementalCost::IncrementalCost(std::shared_ptr<const Design> design, const Weights& weights)
    : design_(std::move(design)),
      nets_(shared_compact_nets(*design_)),
      weights_(weights),
      placer_(*design_, *nets_),
      x_(design_->nodes()),
      y_(design_->nodes()),
      orientation_(design_->nodes()),
      places_(nets_->points()),
      net_records_(nets_->nets()),
      old_lengths_(nets_->nets()),
      net_stamp_(nets_->nets(), 0) {
  for (int net = 0; net < nets_->nets(); ++net) {
    net_records_[net] = {nets_->net_start[net], nets_->size(net), nets_->wire_weight[net], nets_->route_weight[net], 0};
  }
  index_nets();
  if (weights_.tidy > 0) tidiness_ = std::make_unique<Tidiness>(*design_);
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
  costs_ = Costs();
  clear();
  if (tidiness_) tidiness_->clear();
  for (int node = 0; node < design_->nodes(); ++node) {
    x_[node] = x[node];
    y_[node] = y[node];
    orientation_[node] = orientation[node];
    placer_.place(node, x[node], y[node], orientation[node], places_.data());
    const Kind kind = design_->kind_of(node);
    if (kind == Kind::hard || kind == Kind::soft) add_macro(at(node));
    if (tidiness_) tidiness_->add(node, x[node], y[node], orientation[node]);
  }
  for (int net = 0; net < nets_->nets(); ++net) {
    net_records_[net].length = nets_->weighted_length(net, add_net(net));
    costs_.wirelength += net_records_[net].length;
  }
  if (tidiness_) costs_.tidy_cost = tidiness_->cost();
  complete();
  sum_up();
}

void IncrementalCost::grow_clear() {
  if (!tidiness_) return;
  tidiness_->grow_clear();
  const std::vector<double> x = x_, y = y_;
  const std::vector<std::int8_t> orientation = orientation_;
  reset(x.data(), y.data(), orientation.data());
}

const Costs& IncrementalCost::propose(const NodeMove* moves, int count) {
  begin(moves, count, false);
  change_nets(moves, count);
  return costs_;
}

bool IncrementalCost::propose_within(const NodeMove* moves, int count, double limit) {
  begin(moves, count, true);
  if (is_surely_above(moves, count, limit)) {
    pending_ = false;
    take_macros_back(moves);
    if (tidiness_) tidiness_->take_back();
    costs_ = old_costs_;
    return false;
  }
  change_nets(moves, count);
  return true;
}

void IncrementalCost::begin(const NodeMove* moves, int count, bool bounded) {
  if (pending_) accept();
  old_moves_.clear();
  old_places_.clear();
  touched_.clear();
  lengths_ = 0;
  old_costs_ = costs_;
  pending_ = true;
  for (int i = 0; i < count; ++i) old_moves_.push_back(at(moves[i].node));
  if (count == 1) {  // a node has each net once
    const auto first = node_nets_.begin();
    touched_.assign(first + node_net_start_[moves->node], first + node_net_start_[moves->node + 1]);
  } else {
    next_epoch();
    for (int i = 0; i < count; ++i) add_nets_of(moves[i].node, touched_);
  }
  straighten(moves, count);
  change_macros(moves, count, bounded);
}

void IncrementalCost::straighten(const NodeMove* moves, int count) {
  if (!tidiness_) return;
  tidiness_->begin();
  bool moved = false;
  for (int i = 0; i < count; ++i) {
    if (!is_hard(moves[i])) continue;
    tidiness_->move(moves[i].node, moves[i].x, moves[i].y, moves[i].orientation);
    moved = true;
  }
  if (moved) costs_.tidy_cost = tidiness_->cost();
}

void IncrementalCost::accept() {
  if (!pending_) return;
  pending_ = false;
  keep();
  ++accepted_;
}

void IncrementalCost::undo() {
  if (!pending_) return;
  pending_ = false;
  ++wasted_;
  proposed_.clear();
  for (const NodeMove& old : old_moves_) proposed_.push_back(at(old.node));
  take_macros_back(proposed_.data());
  if (tidiness_) tidiness_->take_back();
  put_back();
  for (int i = 0; i < lengths_; ++i) net_records_[old_lengths_[i].net].length = old_lengths_[i].length;
  take_nets_back();
  costs_ = old_costs_;
}

void IncrementalCost::next_epoch() {
  if (++epoch_ != 0) return;
  std::fill(net_stamp_.begin(), net_stamp_.end(), 0);
  epoch_ = 1;
}

void IncrementalCost::add_nets_of(int node, std::vector<std::int32_t>& nets) {
  for (int j = node_net_start_[node]; j < node_net_start_[node + 1]; ++j) {
    const std::int32_t net = node_nets_[j];
    if (net_stamp_[net] != epoch_) nets.push_back(net);
    net_stamp_[net] = epoch_;
  }
}

void IncrementalCost::put(const NodeMove& move) {
  x_[move.node] = move.x;
  y_[move.node] = move.y;
  orientation_[move.node] = move.orientation;
  const int start = nets_->point_start[move.node], end = nets_->point_start[move.node + 1];
  old_places_.insert(old_places_.end(), places_.begin() + start, places_.begin() + end);
}

void IncrementalCost::put_back() {
  const PointPlace* old_place = old_places_.data();
  for (const NodeMove& old : old_moves_) {
    x_[old.node] = old.x;
    y_[old.node] = old.y;
    orientation_[old.node] = old.orientation;
    const int start = nets_->point_start[old.node], points = nets_->point_start[old.node + 1] - start;
    std::copy_n(old_place, points, places_.begin() + start);
    old_place += points;
  }
}

void IncrementalCost::sum_up() {
  costs_.wirelength_cost = costs_.wirelength * nets_->per_wirelength;
  costs_.total = weighted_sum(costs_, weights_);
}

std::unique_ptr<IncrementalCost> make_incremental_cost(std::shared_ptr<const Design> design, const double* x,
                                                       const double* y, const std::int8_t* orientation,
                                                       const Weights& weights) {
  if (weights.name == CostName::chip) {
    return std::make_unique<ChipIncrementalCost>(std::move(design), x, y, orientation, weights);
  }
  return std::make_unique<ProxyIncrementalCost>(std::move(design), x, y, orientation, weights);
}

}  // namespace placement
