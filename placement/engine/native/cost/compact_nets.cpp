#include "cost/compact_nets.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace placement {
namespace {

// A pin's offset as used by the cost: ports and standard cells are points.
std::pair<double, double> offset_of(const Design& design, int pin) {
  const Kind kind = design.kind_of(design.pin_node[pin]);
  if (kind == Kind::port || kind == Kind::cell) return {0.0, 0.0};
  return {design.pin_dx[pin] + 0.0, design.pin_dy[pin] + 0.0};  // + 0.0: no negative zero
}

struct MergedNet {
  std::vector<std::int32_t> points;  // the driver's first, the others sorted
  double wire_weight = 0, route_weight = 0;
};

}  // namespace

Rounder::Rounder(double bound)
    : quantum_(std::ldexp(1.0, static_cast<int>(std::ceil(std::log2(std::max(bound, 1e-280)))) - 52)),
      magic_(std::ldexp(quantum_, 52) * 1.5) {}

CompactNets::CompactNets(const Design& design) {
  // Points: distinct (node, offset), in order of node.
  std::vector<std::int32_t> order(design.pins()), point_of(design.pins());
  std::iota(order.begin(), order.end(), 0);
  auto key = [&](int pin) {
    const auto [dx, dy] = offset_of(design, pin);
    return std::make_tuple(design.pin_node[pin], dx, dy);
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  point_start.assign(design.nodes() + 1, 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int pin = order[i];
    if (i == 0 || key(order[i - 1]) != key(pin)) {
      const auto [dx, dy] = offset_of(design, pin);
      point_node.push_back(design.pin_node[pin]);
      point_dx.push_back(dx);
      point_dy.push_back(dy);
      ++point_start[design.pin_node[pin] + 1];
    }
    point_of[pin] = points() - 1;
  }
  std::partial_sum(point_start.begin(), point_start.end(), point_start.begin());

  // Nets: distinct (driver, set of points).
  std::map<std::vector<std::int32_t>, std::size_t> seen;
  std::vector<MergedNet> merged;
  double total_weight = 0, bound = 0;
  for (int net = 0; net < design.nets(); ++net) {
    const double weight = design.net_weight[net];
    total_weight += weight;
    std::vector<std::int32_t> net_points;
    for (int i = design.net_start[net]; i < design.net_start[net + 1]; ++i) {
      net_points.push_back(point_of[design.net_pins[i]]);
    }
    const std::int32_t driver = net_points.front();
    std::sort(net_points.begin(), net_points.end());
    net_points.erase(std::unique(net_points.begin(), net_points.end()), net_points.end());
    const auto at = std::find(net_points.begin(), net_points.end(), driver);
    std::rotate(net_points.begin(), at, at + 1);
    if (net_points.size() < 2) continue;
    bound += std::max(weight, 1.0) * static_cast<double>(net_points.size());
    const auto [found, fresh] = seen.emplace(net_points, merged.size());
    if (fresh) merged.push_back({std::move(net_points), 0.0, 0.0});
    merged[found->second].wire_weight += weight;
    merged[found->second].route_weight += std::max(weight, 1.0);
  }
  std::stable_sort(merged.begin(), merged.end(),
                   [](const MergedNet& a, const MergedNet& b) { return a.points.size() < b.points.size(); });
  const double extent = (design.canvas.width + design.canvas.height) * total_weight;
  per_wirelength = extent > 0 ? 1.0 / extent : 0.0;
  length_rounder = Rounder(extent);
  const Rounder rounded(2.0 * bound);
  net_start.push_back(0);
  for (const MergedNet& net : merged) {
    net_points.insert(net_points.end(), net.points.begin(), net.points.end());
    net_start.push_back(static_cast<std::int32_t>(net_points.size()));
    wire_weight.push_back(net.wire_weight);
    route_weight.push_back(rounded(net.route_weight));
  }
}

std::shared_ptr<const CompactNets> shared_compact_nets(const Design& design) {
  return design.shared_nets.get([&design] { return std::make_shared<const CompactNets>(design); });
}

PointPlacer::PointPlacer(const Design& design, const CompactNets& nets)
    : turned_(design.nodes()),
      start_(nets.point_start),
      columns_(design.canvas.columns),
      rows_(design.canvas.rows),
      cell_size_{design.canvas.cell_width(), design.canvas.cell_height()},
      last_cell_{static_cast<double>(columns_ - 1), static_cast<double>(rows_ - 1)} {
  // Pins of soft macros do not turn; ports and standard cells are points.
  for (int node = 0; node < design.nodes(); ++node) turned_[node] = design.kind_of(node) == Kind::hard;
  for (int point = 0; point < nets.points(); ++point) {
    const double dx = nets.point_dx[point], dy = nets.point_dy[point];
    offsets_.insert(offsets_.end(), {dx, dy});
    swapped_offsets_.insert(swapped_offsets_.end(), {dy, dx});
  }
}

}  // namespace placement
