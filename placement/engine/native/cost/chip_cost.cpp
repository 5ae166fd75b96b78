#include "cost/chip_cost.hpp"

#include <cmath>

namespace placement {
namespace {

// Of a soft macro's area that its cells need: clusters are drawn at half utilisation (Circuit Training), and standard
// cells fill their rows where that is shortest.
constexpr double kCellShare = 0.5;

}  // namespace

ChipCost::ChipCost(const Design& design, const CompactNets& nets)
    : hard_(design.canvas),
      soft_(design.canvas),
      room_(design.canvas),
      wires_(design.canvas, nets),
      soft_side_(std::sqrt(kCellShare)),
      per_way_(0),
      per_wirelength_(nets.per_wirelength) {
  double area = 0, pins = 0;
  for (int node = 0; node < design.nodes(); ++node) {
    if (design.kind_of(node) == Kind::soft) area += kCellShare * design.node_width[node] * design.node_height[node];
  }
  for (int net = 0; net < nets.nets(); ++net) {
    for (int i = nets.net_start[net]; i < nets.net_start[net + 1]; ++i) {
      const int node = nets.point_node[nets.net_points[i]];
      if (design.kind_of(node) == Kind::soft) pins += nets.wire_weight[net];
    }
  }
  if (area > 0) per_way_ = pins / area * nets.per_wirelength;
}

void ChipCost::clear() {
  hard_.clear();
  soft_.clear();
  wires_.clear();
}

}  // namespace placement
