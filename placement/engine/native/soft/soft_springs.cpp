#include "soft/soft_springs.hpp"

#include <algorithm>

namespace placement {
namespace {

// Pins of the largest net that becomes a clique; a larger one becomes a star, so that the number of springs grows
// linearly with the pins. The largest net of Ariane's clustered netlist has 21 pins.
constexpr int kMostClique = 256;

struct Spring {
  std::int32_t from, to;  // movable soft macro; movable soft macro or design pin
  double weight, offset_x, offset_y;  // offset = (far pin's offset − own pin's offset) · weight
};

// Row starts of springs by `from`, which is below `count`.
std::vector<std::int32_t> starts(const std::vector<Spring>& springs, int count) {
  std::vector<std::int32_t> start(count + 1, 0);
  for (const Spring& spring : springs) ++start[spring.from + 1];
  for (int i = 0; i < count; ++i) start[i + 1] += start[i];
  return start;
}

// Merges springs with the same ends, and sorts them by their ends. Sorts row by row, because the time of one sort of
// all grows faster than linearly.
void merge(std::vector<Spring>& springs, int count) {
  const std::vector<std::int32_t> start = starts(springs, count);
  std::vector<std::int32_t> next = start;
  std::vector<Spring> rows(springs.size());
  for (const Spring& spring : springs) rows[next[spring.from]++] = spring;
  springs.clear();
  for (int row = 0; row < count; ++row) {
    const auto first = rows.begin() + start[row], last = rows.begin() + start[row + 1];
    std::stable_sort(first, last, [](const Spring& a, const Spring& b) { return a.to < b.to; });
    for (auto spring = first; spring != last; ++spring) {
      if (spring == first || springs.back().to != spring->to) {
        springs.push_back(*spring);
        continue;
      }
      springs.back().weight += spring->weight;
      springs.back().offset_x += spring->offset_x;
      springs.back().offset_y += spring->offset_y;
    }
  }
}

struct Collected {
  std::vector<Spring> between, fixed;
};

// movable [N]: which of the `count` movable soft macros a node is, or −1.
Collected collect(const Design& design, const std::vector<std::int32_t>& movable, int count, SpringModel model,
                  double io_factor) {
  Collected springs;
  const auto add = [&](int own_pin, int far_pin, double weight) {
    const int own = movable[design.pin_node[own_pin]], far_node = design.pin_node[far_pin], far = movable[far_node];
    if (own < 0 || own == far || weight == 0) return;
    if (design.kind_of(far_node) == Kind::port) weight *= io_factor;
    const double far_dx = far < 0 ? 0 : design.pin_dx[far_pin], far_dy = far < 0 ? 0 : design.pin_dy[far_pin];
    (far < 0 ? springs.fixed : springs.between)
        .push_back({own, far < 0 ? far_pin : far, weight, weight * (far_dx - design.pin_dx[own_pin]),
                    weight * (far_dy - design.pin_dy[own_pin])});
  };
  for (int net = 0; net < design.nets(); ++net) {
    const int first = design.net_start[net], last = design.net_start[net + 1];
    const bool star = model == SpringModel::star || last - first > kMostClique;
    const double weight = star ? design.net_weight[net] : design.net_weight[net] / std::max(last - first - 1, 1);
    for (int i = first; i < (star ? first + 1 : last); ++i) {
      for (int j = i + 1; j < last; ++j) {
        add(design.net_pins[i], design.net_pins[j], weight);
        add(design.net_pins[j], design.net_pins[i], weight);
      }
    }
  }
  merge(springs.between, count);
  merge(springs.fixed, count);
  return springs;
}

}  // namespace

SoftSprings make_soft_springs(const Design& design, SpringModel model, double io_factor) {
  SoftSprings result;
  std::vector<std::int32_t> movable(design.nodes(), -1);
  for (int node = 0; node < design.nodes(); ++node) {
    if (design.kind_of(node) != Kind::soft || design.fixed[node]) continue;
    movable[node] = result.count();
    result.node.push_back(node);
  }
  const int count = result.count();
  const Collected springs = collect(design, movable, count, model, io_factor);
  std::vector<double> total(count, 0), pull_x(count, 0), pull_y(count, 0), own_dx(count, 0), own_dy(count, 0);
  for (const Spring& spring : springs.between) {
    result.other.push_back(spring.to);
    result.weight.push_back(static_cast<float>(spring.weight));
    total[spring.from] += spring.weight;
    pull_x[spring.from] += spring.offset_x;
    pull_y[spring.from] += spring.offset_y;
  }
  for (const Spring& spring : springs.fixed) {
    result.fixed_pin.push_back(spring.to);
    result.fixed_weight.push_back(static_cast<float>(spring.weight));
    total[spring.from] += spring.weight;
    own_dx[spring.from] += spring.offset_x;
    own_dy[spring.from] += spring.offset_y;
  }
  result.start = starts(springs.between, count);
  result.fixed_start = starts(springs.fixed, count);
  result.total_weight.assign(total.begin(), total.end());
  for (int i = 0; i < count; ++i) {
    result.pull_x.push_back(static_cast<float>(pull_x[i] + own_dx[i]));
    result.pull_y.push_back(static_cast<float>(pull_y[i] + own_dy[i]));
  }
  return result;
}

std::shared_ptr<const SoftSprings> shared_soft_springs(const Design& design, SpringModel model, double io_factor) {
  const auto make = [&] { return std::make_shared<const SoftSprings>(make_soft_springs(design, model, io_factor)); };
  if (io_factor != 1) return make();
  return (model == SpringModel::star ? design.shared_stars : design.shared_cliques).get(make);
}

}  // namespace placement
