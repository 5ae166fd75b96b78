#include "cost/random_walk.hpp"

#include <vector>

namespace placement {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int below(int count) { return static_cast<int>(next() % static_cast<std::uint64_t>(count)); }
  double fraction() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  std::int32_t of(const std::vector<std::int32_t>& values) { return values[below(static_cast<int>(values.size()))]; }

 private:
  std::uint64_t state_;
};

struct Movable {
  std::vector<std::int32_t> hard, soft;
};

Movable movable(const Design& design) {
  Movable nodes;
  for (int node = 0; node < design.nodes(); ++node) {
    if (design.fixed[node]) continue;
    if (design.kind_of(node) == Kind::hard) nodes.hard.push_back(node);
    if (design.kind_of(node) == Kind::soft) nodes.soft.push_back(node);
  }
  return nodes;
}

// Writes a random move; returns how many nodes it moves.
int draw(const IncrementalCost& cost, const Movable& nodes, Random& random, NodeMove* moves) {
  const Canvas& canvas = cost.design().canvas;
  int kind = random.below(10);
  if (nodes.hard.empty()) kind = 4;
  if (nodes.soft.empty() && kind >= 4 && kind < 8) kind = 0;
  if (kind < 8) {
    moves[0] = cost.at(random.of(kind < 4 ? nodes.hard : nodes.soft));
    moves[0].x = (random.below(canvas.columns) + 0.5) * canvas.cell_width();
    moves[0].y = (random.below(canvas.rows) + 0.5) * canvas.cell_height();
    return 1;
  }
  moves[0] = cost.at(random.of(nodes.hard));
  if (kind == 9) {
    moves[0].orientation = static_cast<std::int8_t>(random.below(8));
    return 1;
  }
  const NodeMove first = moves[0], second = cost.at(random.of(nodes.hard));
  if (first.node == second.node) return 1;
  moves[0] = {first.node, second.x, second.y, first.orientation};
  moves[1] = {second.node, first.x, first.y, second.orientation};
  return 2;
}

}  // namespace

Walk random_walk(IncrementalCost& cost, std::int64_t moves, std::uint64_t seed, double accept_probability) {
  const Movable nodes = movable(cost.design());
  Walk walk;
  if (nodes.hard.empty() && nodes.soft.empty()) return walk;
  Random random(seed);
  NodeMove drawn[2];
  for (; walk.moves < moves; ++walk.moves) {
    const int count = draw(cost, nodes, random, drawn);
    cost.propose(drawn, count);
    if (random.fraction() < accept_probability) {
      cost.accept();
      ++walk.accepted;
    } else {
      cost.undo();
    }
  }
  return walk;
}

}  // namespace placement
