#include "cost/chip_cost.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../../../netlist/native/chip_constants.hpp"

namespace placement {
namespace {

// Maximum number of bins along a gcell's side.
constexpr int kMostBins = 4;

double cell_area(const Design& design) {
  double area = 0;
  for (int node = 0; node < design.nodes(); ++node) {
    if (design.kind_of(node) == Kind::soft) area += kCellShare * design.node_width[node] * design.node_height[node];
  }
  return area;
}

// The canvas with bins about as large as the mean cluster's cells. In larger bins, many clusters could share one
// position, for example where four bins meet, without filling a bin.
Canvas with_bins(const Design& design) {
  Canvas canvas = design.canvas;
  const auto soft = std::count(design.kind.begin(), design.kind.end(), static_cast<std::int8_t>(Kind::soft));
  const double area = cell_area(design);
  if (!(area > 0)) return canvas;
  const double sides = std::sqrt(canvas.cell_width() * canvas.cell_height() * static_cast<double>(soft) / area);
  const int bins = static_cast<int>(std::clamp(std::round(sides), 1.0, static_cast<double>(kMostBins)));
  canvas.columns *= bins;
  canvas.rows *= bins;
  return canvas;
}

// Number of bins that all macros together fill.
double most_bins(const Design& design) {
  const Canvas bins = with_bins(design);
  double area = cell_area(design);
  for (int node = 0; node < design.nodes(); ++node) {
    if (design.kind_of(node) != Kind::hard) continue;
    const Constraints& kept = design.constraints;
    const Halo halo = kept.halo_of(node, 0);
    const double more = 2 * ChipCost::clear_of(design, std::max({halo.left(), halo.right(), halo.low(), halo.high()}));
    area += (design.node_width[node] + more) * (design.node_height[node] + more);
  }
  return area / (bins.cell_width() * bins.cell_height());
}

}  // namespace

ChipCost::ChipCost(const Design& design, const CompactNets& nets)
    : overflow_(with_bins(design), most_bins(design)),
      wires_(design.canvas, nets),
      soft_side_(std::sqrt(kCellShare)),
      per_displacement_(0),
      per_wirelength_(nets.per_wirelength) {
  const double area = cell_area(design);
  double pins = 0;
  for (int net = 0; net < nets.nets(); ++net) {
    for (int i = nets.net_start[net]; i < nets.net_start[net + 1]; ++i) {
      const int node = nets.point_node[nets.net_points[i]];
      if (design.kind_of(node) == Kind::soft) pins += nets.wire_weight[net];
    }
  }
  if (area > 0) per_displacement_ = pins / area * nets.per_wirelength;
}

void ChipCost::clear() {
  overflow_.clear();
  wires_.clear();
}

}  // namespace placement
