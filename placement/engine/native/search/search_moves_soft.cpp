// The moves of soft macros.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "search/search_moves.hpp"

namespace placement {
namespace {

constexpr int kSearch = 16;  // attempts at finding a soft macro in a congested row or column

}  // namespace

bool MoveDrawer::soft_near(Random& random) {
  NodeMove to = cost_.at(random_soft(random));
  const std::uint32_t axes = random.below(3);
  const double scale = std::exp2(kFinest * random.fraction());
  if (axes != 0) to.x += scale * random.both_ways() * scale_x(MoveKind::soft_shift);
  if (axes != 1) to.y += scale * random.both_ways() * scale_y(MoveKind::soft_shift);
  clamp(to);
  moves_.push_back(to);
  return true;
}

bool MoveDrawer::soft_step(Random& random) {
  NodeMove to = cost_.at(random_soft(random));
  const std::uint32_t direction = 1 + random.below(8);
  const int step_x = static_cast<int>(direction % 3) - 1, step_y = static_cast<int>(direction / 3) - 1;
  if (step_x == 0 && step_y == 0) return false;
  to.x += step_x * cell_width_;
  to.y += step_y * cell_height_;
  clamp(to);
  moves_.push_back(to);
  return true;
}

// Takes in the ends of the bounding intervals of the node's nets, without its own points, on both axes.
void MoveDrawer::find_ends(int node) {
  const CompactNets& nets = *cost_.nets();
  const PointPlace* places = cost_.places().data();
  for (auto& ends : ends_) ends.clear();
  ends_weight_ = 0;
  for (int j = cost_.node_net_start()[node]; j < cost_.node_net_start()[node + 1]; ++j) {
    const int net = cost_.node_nets()[j];
    Pair low = Pair::of(INFINITY, INFINITY), high = Pair::of(-INFINITY, -INFINITY);
    for (int i = nets.net_start[net]; i < nets.net_start[net + 1]; ++i) {
      const int point = nets.net_points[i];
      if (nets.point_node[point] == node) continue;
      const Pair at = Pair::load(&places[point].x);
      low = least(low, at);
      high = largest(high, at);
    }
    double lows[2], highs[2];
    low.store(lows);
    high.store(highs);
    if (lows[0] > highs[0]) continue;
    const double weight = nets.wire_weight[net];
    for (int axis = 0; axis < 2; ++axis) {
      ends_[axis].emplace_back(lows[axis], weight);
      ends_[axis].emplace_back(highs[axis], weight);
    }
    ends_weight_ += weight;
  }
}

// The interval in which the total length of the nets is least: between the two medians of their ends. Changes their order.
MoveDrawer::Interval MoveDrawer::median(Numbers& ends, double here) const {
  if (ends.empty()) return {here, here};
  auto first = ends.begin(), last = ends.end();
  for (double passed = 0;;) {
    const double pivot = std::max(std::min(first->first, (last - 1)->first),
                                  std::min(std::max(first->first, (last - 1)->first), (first + (last - first) / 2)->first));
    const auto equal = std::partition(first, last, [&](const auto& end) { return end.first < pivot; });
    const auto above = std::partition(equal, last, [&](const auto& end) { return end.first == pivot; });
    const auto weight = [](double sum, const auto& end) { return sum + end.second; };
    const double below = std::accumulate(first, equal, passed, weight), through = std::accumulate(equal, above, below, weight);
    if (below >= ends_weight_ && equal != first) {
      last = equal;
    } else if (through >= ends_weight_ || above == last) {
      const bool flat = through == ends_weight_ && above != ends.end();
      return {pivot, flat ? std::min_element(above, ends.end())->first : pivot};
    } else {
      passed = through;
      first = above;
    }
  }
}

bool MoveDrawer::soft_median(Random& random) {
  NodeMove to = cost_.at(random_soft(random));
  find_ends(to.node);
  const Interval x = median(ends_[0], to.x), y = median(ends_[1], to.y);
  const double scale = std::exp2(kFinest * random.fraction());
  to.x = x.low + random.fraction() * (x.high - x.low) + scale * random.both_ways() * scale_x(MoveKind::soft_median);
  to.y = y.low + random.fraction() * (y.high - y.low) + scale * random.both_ways() * scale_y(MoveKind::soft_median);
  clamp(to);
  moves_.push_back(to);
  return true;
}

bool MoveDrawer::soft_pull(Random& random) {
  NodeMove to = cost_.at(random_soft(random));
  double x, y;
  if (!neighbour(to.node, random, &x, &y)) return false;
  const std::uint32_t axes = random.below(3);
  const double scale = std::exp2(kFinest * random.fraction());
  if (axes != 0) to.x = x + scale * random.both_ways() * scale_x(MoveKind::soft_pull);
  if (axes != 1) to.y = y + scale * random.both_ways() * scale_y(MoveKind::soft_pull);
  clamp(to);
  moves_.push_back(to);
  return true;
}

bool MoveDrawer::soft_swap(Random& random) {
  const std::int32_t first = random_soft(random), second = random_soft(random);
  if (first == second) return false;
  moves_ = {cost_.at(first), cost_.at(second)};
  std::swap(moves_[0].x, moves_[1].x);
  std::swap(moves_[0].y, moves_[1].y);
  clamp(moves_[0]);
  clamp(moves_[1]);
  return true;
}

// Rows are busy with horizontal wires, columns with vertical ones, so a soft macro leaves the one that it is in. On the proxy
// cost a net is routed along its driver's row and its sinks' columns.
bool MoveDrawer::soft_hot(Random& random) {
  const bool of_row = random.below(static_cast<std::uint32_t>(hot_rows_.size() + hot_columns_.size())) < hot_rows_.size();
  const auto& hot = of_row ? hot_rows_ : hot_columns_;
  const int line = hot[random.below(static_cast<std::uint32_t>(hot.size()))];
  for (int i = 0; i < kSearch; ++i) {
    NodeMove to = cost_.at(random_soft(random));
    if ((of_row ? design_.canvas.row_of(to.y) : design_.canvas.column_of(to.x)) != line) continue;
    const double way = (random.below(2) != 0 ? 1 : -1) * (0.5 + random.fraction());
    if (of_row) to.y += way * cell_height_;
    else to.x += way * cell_width_;
    clamp(to);
    moves_.push_back(to);
    return true;
  }
  return false;
}

bool MoveDrawer::soft_draw(Random& random) {
  const int number = static_cast<int>(random.below(static_cast<std::uint32_t>(soft_.size())));
  NodeMove to = cost_.at(soft_[number]);
  if (!targets_->draw(number, temperature, random, &to.x, &to.y)) return false;
  clamp(to);
  moves_.push_back(to);
  return true;
}

}  // namespace placement
