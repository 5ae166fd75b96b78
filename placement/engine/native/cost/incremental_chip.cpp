#include "cost/incremental_chip.hpp"

#include <algorithm>
#include <utility>

#include "cost/net_router.hpp"

namespace placement {
namespace {

// Number of undone proposals per accepted one before the full gcells are determined again.
constexpr std::int64_t kMostWasted = 4;

}  // namespace

ChipIncrementalCost::ChipIncrementalCost(std::shared_ptr<const Design> design, const double* x, const double* y,
                                         const std::int8_t* orientation, const Weights& weights)
    : IncrementalCost(std::move(design), weights),
      chip_(*design_, *nets_),
      beyond_(2 * static_cast<std::size_t>(design_->canvas.cells())),
      spreads_(nets_->nets()) {
  reset(x, y, orientation);
}

double ChipIncrementalCost::add_net(int net) {
  spreads_[net] = chip_.wires().spread(*nets_, net, places_.data());
  chip_.wires().add(spreads_[net], 1.0);
  return spreads_[net].width + spreads_[net].height;
}

void ChipIncrementalCost::complete() {
  costs_.density_cost = chip_.density_cost();
  costs_.congestion_cost = chip_.congestion_cost();
  renew_floor();
}

void ChipIncrementalCost::replace(const NodeMove& from, const NodeMove& to) {
  chip_.add_macro(*design_, from.node, from.x, from.y, from.orientation, -1.0);
  chip_.add_macro(*design_, to.node, to.x, to.y, to.orientation, 1.0);
}

void ChipIncrementalCost::change_macros(const NodeMove* moves, int count, bool bounded) {
  old_spreads_.clear();
  is_bounded_ = bounded;
  if (bounded && (is_excess_behind_ || (accepted_ > 0 && wasted_ > kMostWasted))) renew_floor();
  bool changed = false;
  for (int i = 0; i < count; ++i) {
    if (covers_alike(old_moves_[i], moves[i])) continue;
    changed = true;
    replace(old_moves_[i], moves[i]);
  }
  if (changed) costs_.density_cost = chip_.density_cost();
  floor_rise_ = chip_.wires().take_blocked();
  find_boxes(moves, count);
}

void ChipIncrementalCost::take_macros_back(const NodeMove* moves) {
  for (const NodeMove& old : old_moves_) {
    const NodeMove& now = *moves++;
    if (!covers_alike(now, old)) replace(now, old);
  }
  chip_.wires().take_blocked();
}

void ChipIncrementalCost::take_nets_back() {
  for (std::size_t i = 0; i < old_spreads_.size(); ++i) {
    NetSpread& spread = spreads_[old_lengths_[i].net];
    chip_.wires().add(spread, -1.0);
    spread = old_spreads_[i];
    chip_.wires().add(spread, 1.0);
  }
}

void ChipIncrementalCost::keep() {
  excess_floor_ += floor_rise_;
  is_excess_behind_ |= !is_bounded_;
}

void ChipIncrementalCost::renew_floor() {
  excess_floor_ = chip_.wires().renew_floor();
  accepted_ = wasted_ = 0;
  is_excess_behind_ = false;
}

// Moves the macros and their points; updates the bounding boxes of their nets and the wirelength.
void ChipIncrementalCost::find_boxes(const NodeMove* moves, int count) {
  for (int i = 0; i < count; ++i) {
    put(moves[i]);
    placer_.place(moves[i].node, moves[i].x, moves[i].y, moves[i].orientation, places_.data());
  }
  new_boxes_.clear();
  new_spreads_.clear();
  new_wirelength_ = costs_.wirelength;
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    prefetch(i);
    const NetRecord& record = net_records_[touched_[i]];
    with_size(record.count, [&](auto points) {
      new_boxes_.push_back(box_of<points>(places_.data(), nets_->net_points.data() + record.start, record.count));
    });
    new_wirelength_ += nets_->length_rounder(record.wire_weight * new_boxes_.back().size().sum()) - record.length;
  }
}

// Wire in full gcells of nets whose boxes have not been updated yet.
double ChipIncrementalCost::wire_in_full_gcells() const {
  double sum = 0;
  for (const std::int32_t net : touched_) sum += chip_.wires().floor_of(spreads_[net]);
  return sum;
}

// Computes the nets' wire; if there is a limit, adds the wire that they bring into full gcells to floor_rise_. The wire
// that they remove there has been subtracted before.
void ChipIncrementalCost::find_spreads() {
  const WireSpread& wires = chip_.wires();
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    new_spreads_.push_back(wires.spread(touched_[i], new_boxes_[i]));
    if (is_bounded_ && wires.has_full()) floor_rise_ += wires.floor_of(new_spreads_.back());
  }
}

// Whether the bound exceeds the limit. Density and wirelength are exact.
bool ChipIncrementalCost::is_above(double limit) const {
  const double floor = weights_.wirelength * (new_wirelength_ * nets_->per_wirelength) + weights_.density * costs_.density_cost +
                       weights_.congestion * chip_.congestion_of(excess_floor_ + floor_rise_) + weights_.tidy * costs_.tidy_cost;
  return is_floor_above(floor, limit);
}

// With full gcells, checks first the bound after the nets' wire in them is removed, then after their new wire is added.
bool ChipIncrementalCost::is_any_bound_above(double limit) {
  if (!(weights_.congestion >= 0)) return false;
  if (!chip_.wires().has_full()) return is_above(limit);
  floor_rise_ -= wire_in_full_gcells();
  if (is_above(limit)) return true;
  find_spreads();
  return is_above(limit);
}

bool ChipIncrementalCost::is_surely_above(const NodeMove*, int, double limit) {
  if (!is_any_bound_above(limit)) return false;
  put_back();
  return true;
}

// Updates the wire in the nets' boxes.
void ChipIncrementalCost::change_nets(const NodeMove*, int) {
  WireSpread& wires = chip_.wires();
  if (new_spreads_.empty()) {  // no bound has computed them
    if (is_bounded_ && wires.has_full()) floor_rise_ -= wire_in_full_gcells();
    find_spreads();
  }
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    __builtin_prefetch(&spreads_[touched_[std::min(i + kAhead, touched_.size() - 1)]], 1);
    const std::int32_t net = touched_[i];
    NetSpread& spread = spreads_[net];
    old_spreads_.push_back(spread);
    wires.add(spread, -1.0);
    spread = new_spreads_[i];
    wires.add(spread, 1.0);
    set_length(net, nets_->weighted_length(net, spread.width + spread.height));
  }
  costs_.congestion_cost = chip_.congestion_cost();
  sum_up();
}

}  // namespace placement
