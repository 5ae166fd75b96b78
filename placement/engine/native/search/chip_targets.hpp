// Targets priced by the chip cost: wirelength, and the displacement of overflowing area. Wire beyond the tracks is not.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/cell_overflow.hpp"
#include "cost/incremental_chip.hpp"
#include "search/target_drawer.hpp"

namespace placement {

class ChipTargets : public TargetDrawer {
 public:
  ChipTargets(const ChipIncrementalCost& cost, std::vector<std::int32_t> soft);

  // One of kPoints × kPoints points laid at random around the macro, a quarter of a gcell to two apart.
  bool draw(int soft, double temperature, Random& random, double* x, double* y) override;

 private:
  static constexpr int kPoints = CellOverflow::kMostPoints;
  // Positions of the macro along an axis: its own is one of them.
  struct Axis {
    int count = 0, own = 0;
    alignas(32) float at[kPoints] = {};      // µm
    alignas(32) float prices[kPoints] = {};  // of the wirelength, in units of the cost
  };
  static void lay(double here, double size, double canvas, double step, Random& random, Axis& axis);
  void price_wires(int soft);

  const ChipCost& chip_;
  Axis across_, up_;
  alignas(32) float total_[kPoints][kPoints] = {};  // [row][column] in units of the cost
};

}  // namespace placement
