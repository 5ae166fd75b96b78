// Chip cost while macros move: the wire in the nets' bounding boxes is updated.
#pragma once

#include <memory>
#include <vector>

#include "cost/chip_cost.hpp"
#include "cost/incremental.hpp"

namespace placement {

class ChipIncrementalCost final : public IncrementalCost {
 public:
  ChipIncrementalCost(std::shared_ptr<const Design> design, const double* x, const double* y,
                      const std::int8_t* orientation, const Weights& weights);

  void refresh_maps() override { chip_.wires().write_beyond(beyond_.data(), beyond_.data() + design_->canvas.cells()); }
  const double* vertical_map() const override { return beyond_.data() + design_->canvas.cells(); }
  const double* horizontal_map() const override { return beyond_.data(); }
  const ChipCost& chip() const { return chip_; }

 private:
  void clear() override { chip_.clear(); }
  void add_macro(const NodeMove& at) override { chip_.add_macro(*design_, at.node, at.x, at.y, at.orientation, 1.0); }
  double add_net(int net) override;
  void complete() override;
  void change_macros(const NodeMove* moves, int count, bool bounded) override;
  bool is_surely_above(const NodeMove* moves, int count, double limit) override;
  void change_nets(const NodeMove* moves, int count) override;
  void take_macros_back(const NodeMove* moves) override;
  void take_nets_back() override;
  void keep() override;

  void replace(const NodeMove& from, const NodeMove& to);
  void find_boxes(const NodeMove* moves, int count);
  double wire_in_full_gcells() const;
  void find_spreads();
  bool is_above(double limit) const;
  bool is_any_bound_above(double limit);
  void renew_floor();

  ChipCost chip_;
  std::vector<double> beyond_;          // [2, R·C] at the last refresh_maps()
  std::vector<NetSpread> spreads_;      // [M]
  double excess_floor_ = 0;             // bound of the excess of the current placement, µm
  bool is_excess_behind_ = false;       // excess_floor_ is outdated: a proposal without a limit was accepted

  // State of the pending proposal.
  std::vector<NetBox> new_boxes_;       // of the touched nets
  std::vector<NetSpread> new_spreads_;  // of the touched nets, computed on demand
  std::vector<NetSpread> old_spreads_;  // of the touched nets, computed on demand
  double new_wirelength_ = 0;
  bool is_bounded_ = false;             // whether it has a limit
  double floor_rise_ = 0;               // rise of the bound of the excess, µm; only with a limit
};

}  // namespace placement
