#include "cost/incremental.hpp"

#include <vector>

#include "common/random.hpp"

namespace placement {
namespace {

struct Movable {
  std::vector<std::int32_t> hard, soft;
};

std::int32_t one_of(const std::vector<std::int32_t>& nodes, Random& random) {
  return nodes[random.below(static_cast<std::uint32_t>(nodes.size()))];
}

Movable movable(const Design& design) {
  Movable nodes;
  for (int node = 0; node < design.nodes(); ++node) {
    if (design.fixed[node]) continue;
    if (design.kind_of(node) == Kind::hard) nodes.hard.push_back(node);
    if (design.kind_of(node) == Kind::soft) nodes.soft.push_back(node);
  }
  return nodes;
}

// Writes a random move; returns the number of nodes it moves.
int draw(const IncrementalCost& cost, const Movable& nodes, Random& random, NodeMove* moves) {
  const Canvas& canvas = cost.design().canvas;
  std::uint32_t kind = random.below(10);
  if (nodes.hard.empty()) kind = 4;
  if (nodes.soft.empty() && kind >= 4 && kind < 8) kind = 0;
  if (kind < 8) {
    moves[0] = cost.at(one_of(kind < 4 ? nodes.hard : nodes.soft, random));
    moves[0].x = (random.below(canvas.columns) + 0.5) * canvas.cell_width();
    moves[0].y = (random.below(canvas.rows) + 0.5) * canvas.cell_height();
    return 1;
  }
  moves[0] = cost.at(one_of(nodes.hard, random));
  if (kind == 9) {
    moves[0].orientation = static_cast<std::int8_t>(random.below(8));
    return 1;
  }
  const NodeMove first = moves[0], second = cost.at(one_of(nodes.hard, random));
  if (first.node == second.node) return 1;
  moves[0] = {first.node, second.x, second.y, first.orientation};
  moves[1] = {second.node, first.x, first.y, second.orientation};
  return 2;
}

}  // namespace

std::int64_t random_walk(IncrementalCost& cost, std::int64_t moves, std::uint64_t seed, double accept_probability) {
  const Movable nodes = movable(cost.design());
  if (nodes.hard.empty() && nodes.soft.empty()) return 0;
  Random random(seed);
  NodeMove drawn[2];
  std::int64_t accepted = 0;
  for (std::int64_t move = 0; move < moves; ++move) {
    cost.propose(drawn, draw(cost, nodes, random, drawn));
    if (random.fraction() < accept_probability) {
      cost.accept();
      ++accepted;
    } else {
      cost.undo();
    }
  }
  return accepted;
}

}  // namespace placement
