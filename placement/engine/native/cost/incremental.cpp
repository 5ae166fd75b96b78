#include "cost/incremental.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace placement {
namespace {

// Proposals evaluated in vain before the chip cost's full gcells are taken anew, where one was accepted.
constexpr std::int64_t kMostWasted = 4;

// A bound of a gcell's demand; NaN where a net's is not a whole number. A net of n points has n − 1 branches.
double most_demand(const CompactNets& nets) {
  double most = 0;
  for (int net = 0; net < nets.nets(); ++net) {
    const double weight = nets.route_weight[net];
    if (weight != std::trunc(weight)) return std::numeric_limits<double>::quiet_NaN();
    most += weight * (nets.net_start[net + 1] - nets.net_start[net] - 1);
  }
  return most;
}

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
    beyond_.resize(2 * static_cast<std::size_t>(design_->canvas.cells()));
  } else {
    maps_ = std::make_unique<LiveMaps>(design_->canvas);
    if (maps_->scans_whole(most_demand(*nets_))) whole_steps_ = std::make_unique<WholeRouteSteps>(design_->canvas);
    floor_ = std::make_unique<CongestionFloor>(design_->canvas, weights_);
    if (!floor_->is_valid()) floor_.reset();
  }
  for (int net = 0; net < nets_->nets(); ++net) {
    const int start = nets_->net_start[net];
    net_records_[net] = {start, nets_->net_start[net + 1] - start, nets_->wire_weight[net], nets_->route_weight[net], 0};
  }
  index_nets();
  old_lengths_.resize(nets_->nets());
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
    node_net_points_.push_back(0);
    for (const std::int32_t net : found) node_net_points_.back() += net_records_[net].count;
    node_net_start_.push_back(static_cast<std::int32_t>(node_nets_.size()));
  }
}

void IncrementalCost::reset(const double* x, const double* y, const std::int8_t* orientation) {
  pending_ = false;
  is_behind_ = false;
  is_whole_behind_ = true;
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
  costs_.density_cost = chip_ ? chip_->density_cost() : maps_->density_cost(cover_);
  sum_up(true);
  renew_floor();
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
  begin(moves, count, false);
  change_nets(moves, count);
  return costs_;
}

bool IncrementalCost::propose_within(const NodeMove* moves, int count, double limit) {
  begin(moves, count, true);
  const bool sure = chip_ ? is_chip_sure_above(limit) : is_sure_above(moves, count, limit);
  if (sure) {
    pending_ = false;
    if (chip_) put_back();
    take_covers_back(moves);
    if (chip_) chip_->wires().take_blocked();
    costs_ = old_costs_;
    return false;
  }
  change_nets(moves, count);
  return true;
}

// Begins a proposal: what the macros cover, and its cost. `bounded`: it has a limit.
void IncrementalCost::begin(const NodeMove* moves, int count, bool bounded) {
  if (pending_) accept();
  old_moves_.clear();
  old_places_.clear();
  lengths_ = 0;
  old_spreads_.clear();
  boxes_.clear();
  old_costs_ = costs_;
  floor_rise_ = 0;
  is_bounded_ = bounded;
  if (chip_ && bounded && (is_excess_behind_ || (accepted_ > 0 && wasted_ > kMostWasted))) renew_floor();
  pending_ = true;
  gather_nets(moves, count);
  if (maps_) gather_routed(moves, count);
  density_changed_ = blocks_changed_ = false;
  for (int i = 0; i < count; ++i) {
    const NodeMove old = at(moves[i].node);
    old_moves_.push_back(old);
    if (covers_alike(old, moves[i])) continue;
    density_changed_ = true;
    blocks_changed_ |= design_->kind_of(old.node) == Kind::hard;
    const CellBox left = add_cover(old, -1.0), met = add_cover(moves[i], 1.0);
    if (!maps_) continue;
    maps_->cover_changed(left);
    maps_->cover_changed(met);
    if (design_->kind_of(old.node) == Kind::hard) boxes_.insert(boxes_.end(), {left, met});
  }
  if (density_changed_) costs_.density_cost = chip_ ? chip_->density_cost() : maps_->density_cost(cover_);
  if (!chip_) return;
  floor_rise_ = chip_->wires().take_blocked();
  find_boxes(moves, count);
}

// The rest of the proposal.
void IncrementalCost::change_nets(const NodeMove* moves, int count) {
  if (chip_) {
    propose_spreads();
    sum_up(true);
    return;
  }
  maps_->begin();
  for (const CellBox& box : boxes_) maps_->block_changed(box);
  maps_changed_ = propose_routes(moves, count) | blocks_changed_;
  if (maps_changed_) {
    if (scans_whole_) maps_->update_all(*whole_steps_, cover_);
    else if (scans_all_) maps_->update_all(steps_, cover_);
    else maps_->update(steps_, cover_);
  }
  sum_up(maps_changed_);
}

// The maps follow the proposal; the steps that it did not change are behind from here on.
void IncrementalCost::keep_routes() {
  maps_->draw();
  is_behind_ = scans_whole_;
  is_whole_behind_ = !scans_whole_;
}

// Takes back what the macros, proposed at `moves`, cover.
void IncrementalCost::take_covers_back(const NodeMove* moves) {
  for (const NodeMove& old : old_moves_) {
    const NodeMove& now = *moves++;
    if (covers_alike(now, old)) continue;
    const CellBox left = add_cover(now, -1.0), met = add_cover(old, 1.0);
    if (!maps_) continue;
    maps_->cover_changed(left);
    maps_->cover_changed(met);
  }
}

bool IncrementalCost::covers_alike(const NodeMove& a, const NodeMove& b) const {
  return a.x == b.x && a.y == b.y && swaps_sides(a.orientation) == swaps_sides(b.orientation);
}

// Puts the macros and their points where they stood.
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

void IncrementalCost::undo() {
  if (!pending_) return;
  pending_ = false;
  ++wasted_;
  proposed_.clear();
  for (const NodeMove& old : old_moves_) proposed_.push_back(at(old.node));
  take_covers_back(proposed_.data());
  put_back();
  for (int i = 0; i < lengths_; ++i) net_records_[old_lengths_[i].net].length = old_lengths_[i].length;
  for (std::size_t i = 0; i < old_spreads_.size(); ++i) {
    NetSpread& spread = spreads_[old_lengths_[i].net];
    chip_->wires().add(spread, -1.0);
    spread = old_spreads_[i];
    chip_->wires().add(spread, 1.0);
  }
  if (chip_) chip_->wires().take_blocked();
  if (maps_ && scans_whole_) whole_steps_->undo();
  else if (maps_) steps_.undo();
  if (maps_ && maps_changed_) maps_->undo();
  costs_ = old_costs_;
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
  if (chip_) {
    chip_->add_macro(*design_, at.node, at.x, at.y, at.orientation, sign);
    return {};
  }
  const double width = design_->width_of(at.node, at.orientation), height = design_->height_of(at.node, at.orientation);
  const bool hard = design_->kind_of(at.node) == Kind::hard;
  return cover_.add(at.x, at.y, width, height, hard, sign);
}

void IncrementalCost::refresh_maps() {
  if (maps_) return maps_->draw();
  chip_->wires().write_beyond(beyond_.data(), beyond_.data() + design_->canvas.cells());
}

void IncrementalCost::sum_up(bool congestion) {
  costs_.wirelength_cost = costs_.wirelength * nets_->per_wirelength;
  if (congestion) costs_.congestion_cost = chip_ ? chip_->congestion_cost() : maps_->congestion_cost();
  costs_.total = weighted_sum(costs_, weights_);
}

}  // namespace placement
