#include "soft/analytic_nets.hpp"

#include <algorithm>
#include <utility>

namespace placement {
namespace {

// Points of the largest net that is priced for each of its soft macros. The largest nets of the published designs have
// about 20.
constexpr int kMostPriced = 256;

}  // namespace

SoftNets::SoftNets(std::shared_ptr<const Design> design, std::vector<std::int32_t> soft, double wirelength_weight)
    : design_(std::move(design)), nets_(shared_compact_nets(*design_)), soft_(std::move(soft)) {
  std::vector<std::int32_t> soft_of(design_->nodes(), -1);
  for (int i = 0; i < count(); ++i) soft_of[soft_[i]] = i;
  for (int node = 0; node < design_->nodes(); ++node) {
    if (soft_of[node] < 0) fixed_.push_back(node);
  }
  std::vector<std::vector<std::int32_t>> nets_of(soft_.size());
  for (int net = 0; net < nets_->nets(); ++net) {
    if (nets_->size(net) > kMostPriced) continue;
    for (int i = nets_->net_start[net]; i < nets_->net_start[net + 1]; ++i) {
      const int here = soft_of[nets_->point_node[nets_->net_points[i]]];
      if (here >= 0 && (nets_of[here].empty() || nets_of[here].back() != net)) nets_of[here].push_back(net);
    }
  }
  start_.push_back(0);
  for (int i = 0; i < count(); ++i) collect(i, nets_of[i], wirelength_weight);
  spots_.resize(nets_->points());
  stamp_.assign(design_->canvas.cells(), 0);
}

void SoftNets::collect(int soft, const std::vector<std::int32_t>& nets, double wirelength_weight) {
  for (const int net : nets) {
    Incidence incidence;
    incidence.others_start = static_cast<std::int32_t>(others_.size());
    for (int i = nets_->net_start[net]; i < nets_->net_start[net + 1]; ++i) {
      const int point = nets_->net_points[i];
      if (nets_->point_node[point] != soft_[soft]) {
        others_.push_back(point);
        continue;
      }
      const auto dx = static_cast<float>(nets_->point_dx[point]), dy = static_cast<float>(nets_->point_dy[point]);
      const bool first = incidence.own < 0;
      if (first) incidence.own = point;
      incidence.drives |= i == nets_->net_start[net];
      incidence.low_dx = first ? dx : std::min(incidence.low_dx, dx);
      incidence.high_dx = first ? dx : std::max(incidence.high_dx, dx);
      incidence.low_dy = first ? dy : std::min(incidence.low_dy, dy);
      incidence.high_dy = first ? dy : std::max(incidence.high_dy, dy);
    }
    incidence.others_end = static_cast<std::int32_t>(others_.size());
    incidence.wire_price = static_cast<float>(wirelength_weight * nets_->per_wirelength * nets_->wire_weight[net]);
    incidence.route_weight = static_cast<float>(nets_->route_weight[net]);
    if (incidence.others_end > incidence.others_start) incidences_.push_back(incidence);
  }
  start_.push_back(static_cast<std::int32_t>(incidences_.size()));
}

SoftNets::Spot SoftNets::spot_at(double x, double y) const {
  const int column = design_->canvas.column_of(x), row = design_->canvas.row_of(y);
  return {static_cast<float>(x), static_cast<float>(y), static_cast<std::int16_t>(column),
          static_cast<std::int16_t>(row), row * design_->canvas.columns + column};
}

void SoftNets::set_fixed(const double* x, const double* y, const std::int8_t* orientation) {
  for (const int node : fixed_) place_node(node, x[node], y[node], orientation[node]);
}

void SoftNets::place_node(int node, double x, double y, std::int8_t orientation) {
  const auto& turn = kTurn[design_->kind_of(node) == Kind::hard ? orientation : 0];
  for (int point = nets_->point_start[node]; point < nets_->point_start[node + 1]; ++point) {
    const double dx = nets_->point_dx[point], dy = nets_->point_dy[point];
    spots_[point] = spot_at(x + turn[0] * dx + turn[1] * dy, y + turn[2] * dx + turn[3] * dy);
  }
}

void SoftNets::place(int soft, float x, float y) {
  const int node = soft_[soft];
  for (int point = nets_->point_start[node]; point < nets_->point_start[node + 1]; ++point) {
    spots_[point] = spot_at(x + nets_->point_dx[point], y + nets_->point_dy[point]);
  }
}

void SoftNets::move(int soft, float x, float y, PriceMaps& maps) {
  const int first = nets_->point_start[soft_[soft]], last = nets_->point_start[soft_[soft] + 1];
  before_.assign(spots_.begin() + first, spots_.begin() + last);
  place(soft, x, y);
  for (const Incidence* net = begin(soft); net != end(soft); ++net) {
    reroute(*net, before_[net->own - first], spots_[net->own], maps);
  }
}

void SoftNets::reroute(const Incidence& net, const Spot& before, const Spot& after, PriceMaps& maps) {
  const float weight = net.route_weight;
  if (net.drives) {
    new_visit();
    for (int k = net.others_start; k < net.others_end; ++k) {
      const Spot& sink = other(k);
      if (!first_visit(sink.cell)) continue;
      if (sink.cell != before.cell) maps.add_route(before.row, before.column, sink.row, sink.column, -weight);
      if (sink.cell != after.cell) maps.add_route(after.row, after.column, sink.row, sink.column, weight);
    }
    return;
  }
  bool reached_before = false, reached_after = false;  // the driver or another sink is in the same gcell
  for (int k = net.others_start; k < net.others_end; ++k) {
    const std::int32_t cell = other(k).cell;
    reached_before |= cell == before.cell;
    reached_after |= cell == after.cell;
  }
  const Spot& driver = other(net.others_start);
  maps.add_route(driver.row, driver.column, before.row, before.column, reached_before ? 0 : -weight);
  maps.add_route(driver.row, driver.column, after.row, after.column, reached_after ? 0 : weight);
}

}  // namespace placement
