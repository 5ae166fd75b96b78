// Rectilinear trees for one net: a spanning tree, then Steiner points where two edges of a node have a common stretch.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace placement::route {

struct Point {
  float x, y;  // µm
};

// Nodes and edges of a tree; the first nodes are the distinct pins.
struct Tree {
  std::vector<Point> nodes;
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;

  // Sum of the edges' lengths, µm.
  double length() const;
};

// Builds trees; reuses its workspace for all nets.
class TreeBuilder {
 public:
  // Returns a tree that connects `count` pins. Equal pins count once.
  const Tree& build(const Point* pins, std::int64_t count);

 private:
  void spanning_tree();
  void chain_of_strips();
  void forget_neighbours();
  void add_steiner_points();
  bool improve(std::int32_t node);

  Tree tree_;
  std::vector<std::vector<std::int32_t>> neighbours_;
  std::vector<float> distance_;
  std::vector<std::int32_t> parent_;
};

}  // namespace placement::route
