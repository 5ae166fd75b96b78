// The proxy or the chip cost while macros move: a move costs what its own nets and gcells cost, and the result is the full
// evaluation's, bit for bit, however many moves and undos came before. Every sum that is kept is of numbers rounded so
// that it is exact (Rounder), so nothing drifts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cost/cost.hpp"

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
  void accept() { pending_ = false; }
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
  const std::shared_ptr<const CompactNets>& nets() const { return nets_; }
  const std::vector<PointPlace>& places() const { return places_; }  // [Q]
  // Merged nets of a node: node_nets()[node_net_start()[node]] and on, each once.
  const std::vector<std::int32_t>& node_net_start() const { return node_net_start_; }
  const std::vector<std::int32_t>& node_nets() const { return node_nets_; }
  const MacroCover& cover() const { return cover_; }
  const GridCost& grid() const { return grid_; }  // the congestion maps of the last proposal that changed them
  // Brings the congestion maps to the placement as it stands, which undo does not.
  void refresh_maps();

 private:
  void index_nets();
  // The nets of the moved nodes, each once; and of those nodes only that have a point which leaves its gcell.
  void gather_nets(const NodeMove* moves, int count);
  void gather_routed(const NodeMove* moves, int count);
  void next_epoch();
  void add_nets_of(int node, std::vector<std::int32_t>& nets);
  bool leaves(const NodeMove& move);
  void reset_nets();
  void route(int net, double sign);
  void propose_routes(const NodeMove* moves, int count);
  void propose_spreads(const NodeMove* moves, int count);
  void put(const NodeMove& move);
  void add_cover(const NodeMove& at, double sign);
  void sum_up(bool density, bool congestion);

  struct OldLength {
    std::int32_t net;
    double length;
  };
  void set_length(int net, double length);

  std::shared_ptr<const Design> design_;
  std::shared_ptr<const CompactNets> nets_;
  Weights weights_;
  PointPlacer placer_;
  std::vector<std::int32_t> node_net_start_, node_nets_;

  // The placement as it stands, and what belongs to it.
  std::vector<double> x_, y_;
  std::vector<std::int8_t> orientation_;
  std::vector<PointPlace> places_;
  std::vector<double> net_length_;  // [M] weighted and rounded
  RouteSteps steps_;
  MacroCover cover_;
  GridCost grid_;
  Costs costs_;
  // Of the chip cost only; then steps_, cover_ and grid_ are as of the last refresh_maps().
  std::unique_ptr<ChipCost> chip_;
  std::vector<NetSpread> spreads_;      // [M]

  // How it stood before the pending proposal.
  bool pending_ = false;
  std::vector<NodeMove> old_moves_;
  std::vector<PointPlace> old_places_;  // of the moved nodes, one after the other
  std::vector<OldLength> old_lengths_;
  std::vector<NetSpread> old_spreads_;  // of the same nets
  RouteSteps old_steps_;
  bool steps_changed_ = false;
  Costs old_costs_;

  // Workspace.
  DistinctCells distinct_;
  std::vector<std::int32_t> touched_;  // nets of the moved nodes
  std::vector<std::int32_t> routed_;   // those of them that are routed anew
  std::vector<PointPlace> new_places_; // [Q] of the nodes that are to move
  std::vector<std::uint32_t> net_stamp_;
  std::uint32_t epoch_ = 0;
};

}  // namespace placement
