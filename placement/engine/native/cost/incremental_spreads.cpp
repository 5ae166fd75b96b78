// How the nets follow a proposal on the chip cost: their lengths, and the wire in their boxes.
#include <algorithm>

#include "cost/incremental.hpp"

namespace placement {
namespace {

constexpr int kAhead = 6;  // nets whose records are fetched meanwhile

}  // namespace

// Moves the macros and their points; the boxes of their nets, and what those make of the wirelength.
void IncrementalCost::find_boxes(const NodeMove* moves, int count) {
  for (int i = 0; i < count; ++i) put(moves[i]);
  new_boxes_.clear();
  new_spreads_.clear();
  new_wirelength_ = costs_.wirelength;
  const int last = static_cast<int>(touched_.size()) - 1;
  for (int i = 0; i <= last; ++i) {
    __builtin_prefetch(&net_records_[touched_[std::min(i + kAhead, last)]]);
    __builtin_prefetch(nets_->net_points.data() + net_records_[touched_[std::min(i + kAhead / 2, last)]].start);
    const std::int32_t net = touched_[i];
    switch (net_records_[net].count) {
      case 2: find_box<2>(net); break;
      case 3: find_box<3>(net); break;
      case 4: find_box<4>(net); break;
      default: find_box<0>(net);
    }
  }
}

template <int kPoints>
void IncrementalCost::find_box(int net) {
  const NetRecord& record = net_records_[net];
  new_boxes_.push_back(box_of<kPoints>(places_.data(), nets_->net_points.data() + record.start, record.count));
  new_wirelength_ += nets_->length_rounder(record.wire_weight * new_boxes_.back().size().sum()) - record.length;
}

// What full gcells have of the wire of nets that have not left their boxes yet.
double IncrementalCost::wire_in_full_gcells() const {
  const WireSpread& wires = chip_->wires();
  double sum = 0;
  for (const std::int32_t net : touched_) sum += wires.floor_of(spreads_[net]);
  return sum;
}

// The nets' wire; where there is a limit, adds to floor_rise_ what they bring into full gcells. What they leave there is
// taken off before.
void IncrementalCost::find_spreads() {
  const WireSpread& wires = chip_->wires();
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    new_spreads_.push_back(wires.spread(touched_[i], new_boxes_[i]));
    if (is_bounded_ && wires.has_full()) floor_rise_ += wires.floor_of(new_spreads_.back());
  }
}

// Density and wirelength are exact.
bool IncrementalCost::is_chip_floor_above(double limit) const {
  const double floor = weights_.wirelength * (new_wirelength_ * nets_->per_wirelength) + weights_.density * costs_.density_cost +
                       weights_.congestion * chip_->congestion_of(standing_excess_ + floor_rise_);
  return is_surely_above(floor, limit);
}

// Whether the proposal is sure to cost more than a limit. Where gcells are full, first by what the nets leave in them, then
// by what they bring, too.
bool IncrementalCost::is_chip_sure_above(double limit) {
  if (!(weights_.congestion >= 0)) return false;
  if (!chip_->wires().has_full()) return is_chip_floor_above(limit);
  floor_rise_ -= wire_in_full_gcells();
  if (is_chip_floor_above(limit)) return true;
  find_spreads();
  return is_chip_floor_above(limit);
}

// The wire in the nets' boxes follows.
void IncrementalCost::propose_spreads() {
  WireSpread& wires = chip_->wires();
  if (new_spreads_.empty()) {  // no bound took them
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
}

}  // namespace placement
