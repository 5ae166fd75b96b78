// The proxy or the chip cost while macros move: a move costs what its own nets and gcells cost, and the result is the full
// evaluation's, bit for bit, however many moves and undos came before. Every sum that is kept is of numbers rounded so
// that it is exact (Rounder), so nothing drifts.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "cost/cost.hpp"
#include "cost/congestion_floor.hpp"
#include "cost/live_maps.hpp"

namespace placement {

struct NodeMove {
  std::int32_t node;  // a hard or a soft macro
  double x, y;        // µm, its new centre
  std::int8_t orientation;
};

// One per thread. Proposals are evaluated in place: propose, then accept or undo, then the next. No allocation per
// move once the workspace has grown to the largest.
class IncrementalCost {
 public:
  // x, y [N] µm, orientation [N]: where every node stands.
  IncrementalCost(std::shared_ptr<const Design> design, const double* x, const double* y,
                  const std::int8_t* orientation, const Weights& weights = {});

  // Starts anew from another placement; what was proposed is forgotten.
  void reset(const double* x, const double* y, const std::int8_t* orientation);

  // The cost with `count` distinct macros moved at once. Accepts what is still pending.
  const Costs& propose(const NodeMove* moves, int count);
  // The same, unless it is soon sure that the cost would be above `limit`: then false, and nothing is proposed.
  bool propose_within(const NodeMove* moves, int count, double limit);
  void accept() {
    if (!pending_) return;
    pending_ = false;
    if (maps_ && maps_changed_) keep_routes();
    is_floor_standing_ = false;
    standing_excess_ += floor_rise_;
    is_excess_behind_ |= !is_bounded_;
    ++accepted_;
  }
  // Takes the pending proposal back; nothing happens when there is none.
  void undo();
  bool pending() const { return pending_; }

  // Of the placement as it stands, the pending proposal included.
  const Costs& costs() const { return costs_; }
  const std::vector<double>& x() const { return x_; }
  const std::vector<double>& y() const { return y_; }
  const std::vector<std::int8_t>& orientation() const { return orientation_; }
  NodeMove at(int node) const { return {node, x_[node], y_[node], orientation_[node]}; }

  const Design& design() const { return *design_; }
  const std::shared_ptr<const Design>& shared_design() const { return design_; }
  const Weights& weights() const { return weights_; }
  const std::shared_ptr<const CompactNets>& nets() const { return nets_; }
  const std::vector<PointPlace>& places() const { return places_; }  // [Q]
  // Merged nets of a node: node_nets()[node_net_start()[node]] and on, each once.
  const std::vector<std::int32_t>& node_net_start() const { return node_net_start_; }
  const std::vector<std::int32_t>& node_nets() const { return node_nets_; }
  // How busy gcells are: vertical [R, C], horizontal [C, R]. The routes' demand over the capacity; of the chip cost, µm of
  // wire beyond the usable tracks. Call refresh_maps() first.
  const double* vertical_map() const { return chip_ ? beyond_.data() + design_->canvas.cells() : maps_->vertical(); }
  const double* horizontal_map() const { return chip_ ? beyond_.data() : maps_->horizontal(); }
  void refresh_maps();
  // Of the chip cost only: nothing otherwise.
  const ChipCost* chip() const { return chip_.get(); }
  // Share of each gcell under macros, [R, C]; of the proxy cost only.
  const double* density_map() const { return cover_.density().data(); }

 private:
  void index_nets();
  // The nets of the moved nodes, each once; and of those nodes only that have a point which leaves its gcell.
  void gather_nets(const NodeMove* moves, int count);
  void gather_routed(const NodeMove* moves, int count);
  void next_epoch();
  void add_nets_of(int node, std::vector<std::int32_t>& nets);
  bool leaves(const NodeMove& move);
  void reset_nets();
  void route(int net);
  void mark_points(int node, std::uint8_t moved);
  bool changes_many(const NodeMove* moves, int count) const;
  template <bool kLogged, typename Steps>
  void renew_nets(Steps& steps);
  template <int kPoints, bool kLogged, typename Steps>
  void renew_net(int net, bool routed, Steps& steps);
  void keep_routes();
  bool propose_routes(const NodeMove* moves, int count);
  void find_boxes(const NodeMove* moves, int count);
  template <int kPoints>
  void find_box(int net);
  double wire_in_full_gcells() const;
  void find_spreads();
  bool is_chip_floor_above(double limit) const;
  void propose_spreads();
  void put_back();
  bool is_chip_sure_above(double limit);
  void begin(const NodeMove* moves, int count, bool bounded);
  void change_nets(const NodeMove* moves, int count);
  void take_covers_back(const NodeMove* moves);
  bool is_sure_above(const NodeMove* moves, int count, double limit);
  // Whether a bound of the cost is above a limit by more than all rounding errors of the bound and the cost together.
  bool is_surely_above(double floor, double limit) const {
    return floor > limit + 1e-11 * (std::abs(limit) + std::abs(costs_.total));
  }
  void renew_floor();
  double floor_of_nets();
  double floor_of_block(const NodeMove& macro) const;
  template <int kPoints>
  double floor_of_net(int net, bool routed);
  void put(const NodeMove& move);
  bool covers_alike(const NodeMove& a, const NodeMove& b) const;
  CellBox add_cover(const NodeMove& at, double sign);
  void sum_up(bool congestion);

  struct OldLength {
    std::int32_t net;
    double length;
  };
  void set_length(int net, double length) {
    double& now = net_records_[net].length;
    old_lengths_[lengths_++] = {net, now};
    costs_.wirelength += length - now;
    now = length;
  }

  std::shared_ptr<const Design> design_;
  std::shared_ptr<const CompactNets> nets_;
  Weights weights_;
  PointPlacer placer_;
  std::vector<std::int32_t> node_net_start_, node_nets_;
  std::vector<std::int64_t> node_net_points_;  // [N] of a node's nets, together

  // The placement as it stands, and what belongs to it.
  std::vector<double> x_, y_;
  std::vector<std::int8_t> orientation_;
  std::vector<PointPlace> places_;
  struct NetRecord {  // what a move needs of a net, together in memory
    std::int32_t start, count;  // of its points in nets_->net_points
    double wire_weight, route_weight;
    double length;  // weighted and rounded
  };
  std::vector<NetRecord> net_records_;  // [M]
  RouteSteps steps_;
  MacroCover cover_;
  std::unique_ptr<LiveMaps> maps_;  // of the proxy cost only
  std::unique_ptr<CongestionFloor> floor_;  // the same
  std::unique_ptr<WholeRouteSteps> whole_steps_;  // the same, where they fit; for proposals that change many gcells
  bool is_behind_ = false, is_whole_behind_ = true;  // steps_, whole_steps_ are not as the placement stands
  double standing_excess_ = 0;        // bound of the excess as the placement stands, µm; of the chip cost only
  bool is_excess_behind_ = false;     // it is not, since a proposal without a limit was accepted
  double standing_floor_ = 0;         // of the placement as it stands
  bool is_floor_standing_ = false;    // standing_floor_ is up to date
  std::int64_t accepted_ = 0, wasted_ = 0;  // proposals since the floor's gcells were taken; wasted: undone
  Costs costs_;
  std::unique_ptr<ChipCost> chip_;      // of the chip cost only; then steps_ and cover_ are not used
  std::vector<double> beyond_;          // [2, R·C] as of the last refresh_maps(), of the chip cost only
  std::vector<NetSpread> spreads_;      // [M]
  std::vector<NetBox> new_boxes_;       // of the touched nets
  std::vector<NetSpread> new_spreads_;  // the same, once they are asked for
  double new_wirelength_ = 0;           // of the proposal
  bool is_bounded_ = false;             // the proposal has a limit
  double floor_rise_ = 0;               // of the bound of the excess, by the proposal, µm; where it has a limit

  // How it stood before the pending proposal.
  bool pending_ = false;
  std::vector<NodeMove> old_moves_;
  std::vector<PointPlace> old_places_;  // of the moved nodes, one after the other
  std::vector<OldLength> old_lengths_;  // [M], of the touched nets
  int lengths_ = 0;
  std::vector<NetSpread> old_spreads_;  // of the same nets
  std::vector<CellBox> boxes_;          // that hard macros left and met
  std::vector<NodeMove> proposed_;      // workspace of undo()
  bool density_changed_ = false, blocks_changed_ = false, maps_changed_ = false;
  bool scans_all_ = false;    // the maps, instead of what the proposal changes
  bool scans_whole_ = false;  // that, by whole_steps_
  Costs old_costs_;

  // Workspace.
  DistinctCells distinct_;
  std::vector<std::int32_t> touched_;  // nets of the moved nodes
  std::vector<std::int32_t> routed_;   // those of them that are routed anew; not filled where all_routed_
  bool all_routed_ = false;
  std::vector<PointPlace> new_places_; // [Q] of the nodes that are to move
  std::vector<std::uint8_t> moved_;    // [Q] whether a point is to move
  std::vector<const PointPlace*> before_, after_, before_cells_, after_cells_;  // of one net
  std::vector<std::uint32_t> net_stamp_;
  std::uint32_t epoch_ = 0;
};

}  // namespace placement
