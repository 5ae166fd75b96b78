#include "search/chip_targets.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/lanes.hpp"

namespace placement {
namespace {

constexpr double kFinest = -2, kCoarsest = 1;  // log₂ of gcells from point to point

}  // namespace

ChipTargets::ChipTargets(const ChipIncrementalCost& cost, std::vector<std::int32_t> soft)
    : TargetDrawer(cost, std::move(soft)), chip_(cost.chip()) {}

// Points `step` apart with a random offset, as many on either side as fit on the canvas; the own position instead of the
// one nearest to it. Beyond the last point is the own position, to fill whole lanes.
void ChipTargets::lay(double here, double size, double canvas, double step, Random& random, Axis& axis) {
  const double margin = std::min(size, canvas) / 2, offset = random.fraction() - 0.5;
  const auto fitting = [&](double length) { return static_cast<int>(std::clamp(length / step, 0.0, kPoints - 1.0)); };
  const int below = fitting(here - margin), above = fitting(canvas - margin - here);
  axis.count = std::min(kPoints, below + 1 + above);
  axis.own = std::clamp(kPoints / 2, axis.count - 1 - above, below);
  std::fill_n(axis.at, kPoints, static_cast<float>(here));
  for (int i = 0; i < axis.count; ++i) {
    if (i != axis.own) axis.at[i] = static_cast<float>(std::clamp(here + (i - axis.own + offset) * step, margin, canvas - margin));
  }
}

void ChipTargets::price_wires(int soft) {
  constexpr int kLanes = kPoints / Lanes::kCount;
  Lanes across[kLanes] = {}, up[kLanes] = {};
  for (const SoftNets::Incidence *net = nets_.begin(soft), *end = nets_.end(soft); net != end; ++net) {
    const SoftNets::Extent extent = nets_.extent(*net);
    add_excess(across, across_.at, extent.left - net->low_dx, extent.right - net->high_dx, net->wire_price);
    add_excess(up, up_.at, extent.low - net->low_dy, extent.high - net->high_dy, net->wire_price);
  }
  for (int i = 0; i < kLanes; ++i) {
    across[i].store(across_.prices + i * Lanes::kCount);
    up[i].store(up_.prices + i * Lanes::kCount);
  }
}

bool ChipTargets::draw(int soft, double temperature, Random& random, double* x, double* y) {
  const NodeMove here = cost_.at(soft_[soft]);
  const Canvas& canvas = design_.canvas;
  const double gcells = std::exp2(kFinest + (kCoarsest - kFinest) * random.fraction());
  lay(here.x, design_.width_of(here.node, here.orientation), canvas.width, gcells * canvas.cell_width(), random, across_);
  lay(here.y, design_.height_of(here.node, here.orientation), canvas.height, gcells * canvas.cell_height(), random, up_);
  price_wires(soft);
  chip_.price_overflow(design_, here.node, here.x, here.y, across_.at, across_.count, up_.at, up_.count, total_[0]);
  const Lanes per_displacement = Lanes::all(static_cast<float>(cost_.weights().density * chip_.density_per_displacement()));
  for (int r = 0; r < up_.count; ++r) {
    const Lanes of_row = Lanes::all(up_.prices[r]);
    for (int c = 0; c < across_.count; c += Lanes::kCount) {
      (Lanes::load(total_[r] + c) * per_displacement + Lanes::load(across_.prices + c) + of_row).store(total_[r] + c);
    }
  }
  const auto [column, row] = draw_column_and_row(total_[0], kPoints, across_.count, up_.count, temperature, random);
  if (column == across_.own && row == up_.own) return false;
  *x = column == across_.own ? here.x : across_.at[column];
  *y = row == up_.own ? here.y : up_.at[row];
  return true;
}

}  // namespace placement
