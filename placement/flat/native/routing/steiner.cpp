#include "steiner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace placement::route {
namespace {

float span(const Point& a, const Point& b) { return std::abs(a.x - b.x) + std::abs(a.y - b.y); }

float middle(float a, float b, float c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }

constexpr std::size_t kMostPrim = 4096;  // maximum number of pins, for which Prim's quadratic time is below 0.1 s

void replace(std::vector<std::int32_t>& list, std::int32_t from, std::int32_t to) { *std::find(list.begin(), list.end(), from) = to; }

}  // namespace

double Tree::length() const {
  double sum = 0;
  for (const auto& [a, b] : edges) sum += span(nodes[a], nodes[b]);
  return sum;
}

const Tree& TreeBuilder::build(const Point* pins, std::int64_t count) {
  tree_.nodes.assign(pins, pins + count);
  const auto before = [](const Point& a, const Point& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; };
  const auto equal = [](const Point& a, const Point& b) { return a.x == b.x && a.y == b.y; };
  std::sort(tree_.nodes.begin(), tree_.nodes.end(), before);
  tree_.nodes.erase(std::unique(tree_.nodes.begin(), tree_.nodes.end(), equal), tree_.nodes.end());
  tree_.edges.clear();
  if (tree_.nodes.size() == 2) {
    tree_.edges.emplace_back(0, 1);
  } else if (tree_.nodes.size() > 2) {
    if (tree_.nodes.size() <= kMostPrim) {
      spanning_tree();
    } else {
      chain_of_strips();
    }
    add_steiner_points();
  }
  return tree_;
}

void TreeBuilder::forget_neighbours() {
  neighbours_.resize(std::max(neighbours_.size(), 2 * tree_.nodes.size()));
  for (auto& list : neighbours_) list.clear();
}

// A chain up and down through strips, for nets of very many pins (Few: "The shortest path and the shortest road through
// n points", Mathematika 1955), in n log n. Strips of width sqrt(3 A / n) minimise the length of the chain in the
// Manhattan metric.
void TreeBuilder::chain_of_strips() {
  forget_neighbours();
  auto& nodes = tree_.nodes;  // sorted by x
  auto low = nodes.front(), high = nodes.back();
  for (const Point& node : nodes) {
    low.y = std::min(low.y, node.y);
    high.y = std::max(high.y, node.y);
  }
  const float area = std::max((high.x - low.x) * (high.y - low.y), 1e-6f);
  const float width = std::max(std::sqrt(3 * area / static_cast<float>(nodes.size())), 1e-3f * (high.x - low.x));
  const auto strip = [&](const Point& node) { return width > 0 ? static_cast<std::int32_t>((node.x - low.x) / width) : 0; };
  std::sort(nodes.begin(), nodes.end(), [&](const Point& a, const Point& b) {
    const std::int32_t at = strip(a), other = strip(b);
    if (at != other) return at < other;
    if (a.y != b.y) return at % 2 == 0 ? a.y < b.y : a.y > b.y;
    return a.x < b.x;
  });
  for (std::int32_t node = 1; node < static_cast<std::int32_t>(nodes.size()); ++node) {
    neighbours_[node].push_back(node - 1);
    neighbours_[node - 1].push_back(node);
  }
}

// Prim's algorithm.
void TreeBuilder::spanning_tree() {
  const auto count = static_cast<std::int32_t>(tree_.nodes.size());
  forget_neighbours();
  distance_.assign(count, std::numeric_limits<float>::max());
  parent_.assign(count, 0);
  std::int32_t last = 0;
  distance_[0] = -1;  // in the tree
  for (std::int32_t joined = 1; joined < count; ++joined) {
    std::int32_t next = -1;
    for (std::int32_t node = 0; node < count; ++node) {
      if (distance_[node] < 0) continue;
      const float apart = span(tree_.nodes[last], tree_.nodes[node]);
      if (apart < distance_[node]) {
        distance_[node] = apart;
        parent_[node] = last;
      }
      if (next < 0 || distance_[node] < distance_[next]) next = node;
    }
    neighbours_[next].push_back(parent_[next]);
    neighbours_[parent_[next]].push_back(next);
    distance_[next] = -1;
    last = next;
  }
}

void TreeBuilder::add_steiner_points() {
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::int32_t node = 0; node < static_cast<std::int32_t>(tree_.nodes.size()); ++node) {
      while (improve(node)) changed = true;
    }
  }
  for (std::int32_t node = 0; node < static_cast<std::int32_t>(tree_.nodes.size()); ++node) {
    for (const std::int32_t other : neighbours_[node]) {
      if (node < other) tree_.edges.emplace_back(node, other);
    }
  }
}

// Merges the two edges of `node` with the longest common stretch at a new node; returns false if none have one.
bool TreeBuilder::improve(std::int32_t node) {
  const Point at = tree_.nodes[node];
  const auto& list = neighbours_[node];
  float best = 1e-4f;
  std::int32_t first = -1, second = -1;
  Point joint{};
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (std::size_t j = i + 1; j < list.size(); ++j) {
      const Point &a = tree_.nodes[list[i]], &b = tree_.nodes[list[j]];
      const Point median{middle(at.x, a.x, b.x), middle(at.y, a.y, b.y)};
      const float shared = span(at, median);
      if (shared > best) {
        best = shared;
        first = list[i];
        second = list[j];
        joint = median;
      }
    }
  }
  if (first < 0) return false;
  for (const std::int32_t end : {first, second}) {  // a joint on an end coincides with it
    const std::int32_t other = end == first ? second : first;
    if (joint.x == tree_.nodes[end].x && joint.y == tree_.nodes[end].y) {
      replace(neighbours_[other], node, end);
      neighbours_[end].push_back(other);
      neighbours_[node].erase(std::find(neighbours_[node].begin(), neighbours_[node].end(), other));
      return true;
    }
  }
  const auto fresh = static_cast<std::int32_t>(tree_.nodes.size());
  tree_.nodes.push_back(joint);
  if (neighbours_.size() <= static_cast<std::size_t>(fresh)) neighbours_.resize(2 * fresh);
  neighbours_[fresh] = {node, first, second};
  replace(neighbours_[first], node, fresh);
  replace(neighbours_[second], node, fresh);
  auto& own = neighbours_[node];
  own.erase(std::find(own.begin(), own.end(), second));
  replace(own, first, fresh);
  return true;
}

}  // namespace placement::route
