// Proxy cost while macros move: routes and maps are updated gcell by gcell.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cost/congestion_floor.hpp"
#include "cost/incremental.hpp"
#include "cost/live_maps.hpp"
#include "cost/net_router.hpp"

namespace placement {

class ProxyIncrementalCost final : public IncrementalCost {
 public:
  ProxyIncrementalCost(std::shared_ptr<const Design> design, const double* x, const double* y,
                       const std::int8_t* orientation, const Weights& weights);

  void refresh_maps() override { maps_.draw(); }
  const double* vertical_map() const override { return maps_.vertical(); }
  const double* horizontal_map() const override { return maps_.horizontal(); }
  // Share of each gcell under macros, [R, C].
  const double* density_map() const { return cover_.density().data(); }

 private:
  void clear() override;
  void add_macro(const NodeMove& at) override { add_cover(at, 1.0); }
  double add_net(int net) override;
  void complete() override;
  void change_macros(const NodeMove* moves, int count, bool bounded) override;
  bool is_surely_above(const NodeMove* moves, int count, double limit) override;
  void change_nets(const NodeMove* moves, int count) override;
  void take_macros_back(const NodeMove* moves) override;
  void take_nets_back() override;
  void keep() override;

  void gather_routed(const NodeMove* moves, int count);
  bool leaves(const NodeMove& move);
  void mark_points(const NodeMove* moves, int count, std::uint8_t moved);
  bool changes_many(const NodeMove* moves, int count) const;
  template <bool kLogged, typename Routes, typename Take>
  void follow_nets(Routes& routes, Take take);
  template <bool kLogged, typename Steps>
  void renew_nets(Steps& steps);
  bool propose_routes(const NodeMove* moves, int count);
  void renew_floor();
  double floor_of_nets();
  double floor_of_block(const NodeMove& macro) const;
  CellBox add_cover(const NodeMove& at, double sign);

  RouteSteps steps_;
  MacroCover cover_;
  LiveMaps maps_;
  NetRouter router_;
  std::unique_ptr<CongestionFloor> floor_;        // null if there is no bound
  std::unique_ptr<WholeRouteSteps> whole_steps_;  // null unless demands fit; for proposals that change many gcells
  bool is_behind_ = false, is_whole_behind_ = true;  // whether steps_, whole_steps_ are outdated
  double floor_now_ = 0;       // bound of the current placement
  bool is_floor_fresh_ = false;  // whether floor_now_ is up to date
  std::vector<std::int64_t> node_net_points_;  // [N] total number of points of a node's nets

  // State of the pending proposal.
  std::vector<CellBox> boxes_;  // boxes that hard macros left and entered
  bool blocks_changed_ = false, maps_changed_ = false;
  bool scans_all_ = false;    // all gcells are scanned instead of those that the proposal changes
  bool scans_whole_ = false;  // the scan uses whole_steps_

  // Workspace.
  std::vector<std::int32_t> routed_;  // rerouted nets; empty if all_routed_
  bool all_routed_ = false;
  std::vector<PointPlace> new_places_;  // [Q] positions of the points to be moved
  std::vector<std::uint8_t> moved_;     // [Q] whether a point is to be moved
};

}  // namespace placement
