// Exact cost while macros move: a move costs time only for its own nets and gcells, and the result is bit-identical to
// that of the full evaluation after any number of moves and undos. Every maintained sum has terms rounded so that it is
// exact (Rounder), so nothing drifts.
//
// IncrementalCost is the interface and the state common to both costs: the placement, its nets and the proposal.
// Coverage by macros and routes of nets are left to ProxyIncrementalCost and ChipIncrementalCost.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "cost/cost.hpp"

namespace placement {

struct NodeMove {
  std::int32_t node;  // a hard or a soft macro
  double x, y;        // new centre, µm
  std::int8_t orientation;
};

// One per thread. Proposals are evaluated in place: propose, then accept or undo, then the next. No allocation per move
// once the workspace has grown to its largest size.
class IncrementalCost {
 public:
  IncrementalCost(const IncrementalCost&) = delete;
  IncrementalCost& operator=(const IncrementalCost&) = delete;
  virtual ~IncrementalCost() = default;

  // Restarts from another placement and discards the proposal. x, y [N] µm, orientation [N].
  void reset(const double* x, const double* y, const std::int8_t* orientation);

  // Cost with `count` distinct macros moved at once. Accepts a pending proposal.
  const Costs& propose(const NodeMove* moves, int count);
  // The same, unless a bound shows early that the cost would exceed `limit`: then returns false and proposes nothing.
  bool propose_within(const NodeMove* moves, int count, double limit);
  void accept();
  // Undoes the pending proposal, if any.
  void undo();
  bool pending() const { return pending_; }

  // Calls Tidiness::grow_clear if tidiness has a weight. Accepts a pending proposal.
  void grow_clear();

  // State of the current placement, including the pending proposal.
  const Costs& costs() const { return costs_; }
  const std::vector<double>& x() const { return x_; }
  const std::vector<double>& y() const { return y_; }
  const std::vector<std::int8_t>& orientation() const { return orientation_; }
  NodeMove at(int node) const { return {node, x_[node], y_[node], orientation_[node]}; }

  // Congestion of the gcells: vertical [R, C], horizontal [C, R]. Proxy cost: demand of the routes over the capacity;
  // chip cost: µm of wire beyond the usable tracks. Call refresh_maps() first.
  virtual void refresh_maps() = 0;
  virtual const double* vertical_map() const = 0;
  virtual const double* horizontal_map() const = 0;

  const Design& design() const { return *design_; }
  const std::shared_ptr<const Design>& shared_design() const { return design_; }
  const Weights& weights() const { return weights_; }
  const std::shared_ptr<const CompactNets>& nets() const { return nets_; }
  const std::vector<PointPlace>& places() const { return places_; }  // [Q]
  const Tidiness* tidiness() const { return tidiness_.get(); }       // of the current placement; null without a weight
  // Merged nets of a node, each once: node_nets() from node_net_start()[node] on.
  const std::vector<std::int32_t>& node_net_start() const { return node_net_start_; }
  const std::vector<std::int32_t>& node_nets() const { return node_nets_; }

 protected:
  struct NetRecord {  // data of a net that a move needs, adjacent in memory
    std::int32_t start, count;  // of its points in nets_->net_points
    double wire_weight, route_weight;
    double length;  // weighted and rounded
  };

  // The derived class calls reset().
  IncrementalCost(std::shared_ptr<const Design> design, const Weights& weights);

  // Steps of reset(): clear everything; add a macro and a net (which returns its half perimeter, µm); then compute the
  // terms of the cost.
  virtual void clear() = 0;
  virtual void add_macro(const NodeMove& at) = 0;
  virtual double add_net(int net) = 0;
  virtual void complete() = 0;
  // Steps of a proposal: update coverage by macros; test whether the cost is certainly above the limit; update the
  // nets. `bounded`: the proposal has a limit.
  virtual void change_macros(const NodeMove* moves, int count, bool bounded) = 0;
  virtual bool is_surely_above(const NodeMove* moves, int count, double limit) = 0;
  virtual void change_nets(const NodeMove* moves, int count) = 0;
  // Steps of undoing and of accepting it. `moves`: the nodes of old_moves_.
  virtual void take_macros_back(const NodeMove* moves) = 0;
  virtual void take_nets_back() = 0;
  virtual void keep() = 0;

  // Collects each net in `nets` once, however many of its nodes were passed since the last next_epoch().
  void next_epoch();
  void add_nets_of(int node, std::vector<std::int32_t>& nets);
  // Prefetches data of the nets after touched_[i].
  static constexpr std::size_t kAhead = 6;
  void prefetch(std::size_t i) const {
    const std::size_t last = touched_.size() - 1;
    __builtin_prefetch(&net_records_[touched_[std::min(i + kAhead, last)]]);
    __builtin_prefetch(nets_->net_points.data() + net_records_[touched_[std::min(i + kAhead / 2, last)]].start);
  }
  // Moves a node and records the positions of its points; the caller moves them.
  void put(const NodeMove& move);
  void put_back();
  void set_length(int net, double length) {
    double& now = net_records_[net].length;
    old_lengths_[lengths_++] = {net, now};
    costs_.wirelength += length - now;
    now = length;
  }
  // Sums the terms once density and congestion cost are known.
  void sum_up();
  // Whether a bound of the cost exceeds a limit by more than all rounding errors of the bound and the cost together.
  bool is_floor_above(double floor, double limit) const {
    return floor > limit + 1e-11 * (std::abs(limit) + std::abs(costs_.total));
  }
  static bool covers_alike(const NodeMove& a, const NodeMove& b) {
    return a.x == b.x && a.y == b.y && swaps_sides(a.orientation) == swaps_sides(b.orientation);
  }
  bool is_hard(const NodeMove& move) const { return design_->kind_of(move.node) == Kind::hard; }

  std::shared_ptr<const Design> design_;
  std::shared_ptr<const CompactNets> nets_;
  Weights weights_;
  PointPlacer placer_;
  std::vector<std::int32_t> node_net_start_, node_nets_;

  // The current placement and its derived state.
  std::vector<double> x_, y_;
  std::vector<std::int8_t> orientation_;
  std::vector<PointPlace> places_;
  std::vector<NetRecord> net_records_;  // [M]
  Costs costs_;
  std::unique_ptr<Tidiness> tidiness_;  // null if tidiness has no weight
  std::int64_t accepted_ = 0, wasted_ = 0;  // proposals since the bound was renewed; wasted: undone

  // The pending proposal and its changes.
  bool pending_ = false;
  std::vector<std::int32_t> touched_;   // nets of the moved nodes
  std::vector<NodeMove> old_moves_;
  std::vector<PointPlace> old_places_;  // positions of the moved nodes' points, concatenated
  struct OldLength {
    std::int32_t net;
    double length;
  };
  std::vector<OldLength> old_lengths_;  // [M], for the touched nets
  int lengths_ = 0;
  Costs old_costs_;

  // Workspace.
  std::vector<std::uint32_t> net_stamp_;
  std::uint32_t epoch_ = 0;

 private:
  void index_nets();
  void begin(const NodeMove* moves, int count, bool bounded);
  void straighten(const NodeMove* moves, int count);

  std::vector<NodeMove> proposed_;  // workspace of undo()
};

// Creates the cost that the weights name. x, y [N] µm, orientation [N]: position of every node.
std::unique_ptr<IncrementalCost> make_incremental_cost(std::shared_ptr<const Design> design, const double* x,
                                                       const double* y, const std::int8_t* orientation,
                                                       const Weights& weights = {});

// Random moves over the grid, for benchmarks and stress tests of the incremental cost.

// Makes `moves` proposals: four in ten centre a hard macro and four a soft macro on a random gcell, one swaps two hard
// macros and one turns a hard macro; each is accepted with the given probability, else undone. Only movable macros
// move. Deterministic for a seed. Returns the number of accepted moves.
std::int64_t random_walk(IncrementalCost& cost, std::int64_t moves, std::uint64_t seed, double accept_probability);

}  // namespace placement
