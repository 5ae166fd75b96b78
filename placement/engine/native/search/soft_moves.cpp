// Moves of soft macros.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "search/moves.hpp"

namespace placement {
namespace {

constexpr int kAttempts = 16;  // attempts to find a soft macro in a congested row or column

template <int kMacros>
bool has_soft(const MoveProposer& proposer) {
  return proposer.soft().size() >= kMacros;
}

bool soft_shift(MoveProposer& proposer, Random& random) {
  NodeMove to = proposer.random_soft(random);
  proposer.go_near(to, to.x, to.y, random);
  return proposer.add(to);
}

bool soft_step(MoveProposer& proposer, Random& random) {
  NodeMove to = proposer.random_soft(random);
  const std::uint32_t direction = 1 + random.below(8);
  const int step_x = static_cast<int>(direction % 3) - 1, step_y = static_cast<int>(direction / 3) - 1;
  if (step_x == 0 && step_y == 0) return false;
  to.x += step_x * proposer.cell_width();
  to.y += step_y * proposer.cell_height();
  return proposer.add(to);
}

struct Interval {
  double low, high;
};

// Collects the ends of the bounding intervals of the node's nets, without its own points, on both axes. Returns half of
// their weight.
double find_ends(MoveProposer& proposer, int node) {
  const IncrementalCost& cost = proposer.cost();
  const CompactNets& nets = *cost.nets();
  const PointPlace* places = cost.places().data();
  for (auto& ends : proposer.ends) ends.clear();
  double half = 0;
  for (int j = cost.node_net_start()[node]; j < cost.node_net_start()[node + 1]; ++j) {
    const int net = cost.node_nets()[j];
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
      proposer.ends[axis].emplace_back(lows[axis], weight);
      proposer.ends[axis].emplace_back(highs[axis], weight);
    }
    half += weight;
  }
  return half;
}

// The interval of least total net length: between the two medians of the ends, (position, weight). Reorders the ends.
Interval median(std::vector<std::pair<double, double>>& ends, double half, double here) {
  if (ends.empty()) return {here, here};
  auto first = ends.begin(), last = ends.end();
  for (double passed = 0;;) {
    const double pivot = std::max(std::min(first->first, (last - 1)->first),
                                  std::min(std::max(first->first, (last - 1)->first), (first + (last - first) / 2)->first));
    const auto equal = std::partition(first, last, [&](const auto& end) { return end.first < pivot; });
    const auto above = std::partition(equal, last, [&](const auto& end) { return end.first == pivot; });
    const auto weight = [](double sum, const auto& end) { return sum + end.second; };
    const double below = std::accumulate(first, equal, passed, weight), through = std::accumulate(equal, above, below, weight);
    if (below >= half && equal != first) {
      last = equal;
    } else if (through >= half || above == last) {
      const bool flat = through == half && above != ends.end();
      return {pivot, flat ? std::min_element(above, ends.end())->first : pivot};
    } else {
      passed = through;
      first = above;
    }
  }
}

bool soft_median(MoveProposer& proposer, Random& random) {
  NodeMove to = proposer.random_soft(random);
  const double half = find_ends(proposer, to.node);
  const Interval x = median(proposer.ends[0], half, to.x), y = median(proposer.ends[1], half, to.y);
  const double scale = MoveProposer::random_scale(random);
  to.x = x.low + random.fraction() * (x.high - x.low) + scale * random.both_ways() * proposer.reach_x();
  to.y = y.low + random.fraction() * (y.high - y.low) + scale * random.both_ways() * proposer.reach_y();
  return proposer.add(to);
}

bool soft_pull(MoveProposer& proposer, Random& random) {
  NodeMove to = proposer.random_soft(random);
  double x, y;
  if (!proposer.neighbour(to.node, random, &x, &y)) return false;
  proposer.go_near(to, x, y, random);
  return proposer.add(to);
}

bool soft_swap(MoveProposer& proposer, Random& random) {
  NodeMove first = proposer.random_soft(random), second = proposer.random_soft(random);
  if (first.node == second.node) return false;
  std::swap(first.x, second.x);
  std::swap(first.y, second.y);
  return proposer.add(first) && proposer.add(second);
}

// Rows are congested by horizontal wires, columns by vertical ones, so a soft macro leaves its own. On the proxy cost a
// net is routed along its driver's row and its sinks' columns.
bool soft_hot(MoveProposer& proposer, Random& random) {
  const auto &rows = proposer.congested_rows(), &columns = proposer.congested_columns();
  const bool of_row = random.below(static_cast<std::uint32_t>(rows.size() + columns.size())) < rows.size();
  const auto& lines = of_row ? rows : columns;
  const int line = lines[random.below(static_cast<std::uint32_t>(lines.size()))];
  const Canvas& canvas = proposer.design().canvas;
  for (int i = 0; i < kAttempts; ++i) {
    NodeMove to = proposer.random_soft(random);
    if ((of_row ? canvas.row_of(to.y) : canvas.column_of(to.x)) != line) continue;
    const double cells = (random.below(2) != 0 ? 1 : -1) * (0.5 + random.fraction());
    if (of_row) to.y += cells * proposer.cell_height();
    else to.x += cells * proposer.cell_width();
    return proposer.add(to);
  }
  return false;
}

// On the chip cost a draw takes as long as two other moves of soft macros, and saves no more if only soft macros move.
bool can_draw(const MoveProposer& proposer) {
  return has_soft<1>(proposer) && (proposer.cost().weights().name == CostName::proxy || !proposer.hard().empty());
}

void price_targets(MoveProposer& proposer, bool whole) {
  if (whole) proposer.targets().reset();
  else proposer.targets().refresh();
}

bool soft_draw(MoveProposer& proposer, Random& random) {
  const int number = static_cast<int>(random.below(static_cast<std::uint32_t>(proposer.soft().size())));
  NodeMove to = proposer.cost().at(proposer.soft()[number]);
  return proposer.targets().draw(number, proposer.temperature, random, &to.x, &to.y) && proposer.add(to);
}

}  // namespace

const std::vector<Move>& soft_moves() {
  static const std::vector<Move> moves = {
      {"soft_shift", 4.0, has_soft<1>, soft_shift, 1.0, true},  // by a short distance
      {"soft_step", 0.5, has_soft<1>, soft_step},        // to a neighbouring gcell
      {"soft_median", 0.5, has_soft<1>, soft_median},    // into the median interval of its nets
      {"soft_pull", 0.5, has_soft<1>, soft_pull},        // near another pin of one of its nets
      {"soft_swap", 0.2, has_soft<2>, soft_swap},        // exchanges two positions
      {"soft_hot", 1.0, has_soft<1>, soft_hot},          // out of a congested gcell row or column
      {"soft_draw", 6.0, can_draw, soft_draw, 1.0, false, price_targets, 2.0},  // to a position drawn by the prices around
  };
  return moves;
}

}  // namespace placement
