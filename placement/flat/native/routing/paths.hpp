// The grid of gcells: capacity and demand between neighbours, and the cost of one more crossing. Paths of a two-point
// connection on it: L and Z shapes, and the cheapest path of any shape in a window.
//
// Axis legend: X gcells across, Y gcells up. Horizontal edges [X-1, Y] join (i, j) and (i+1, j); vertical edges [X,
// Y-1] join (i, j) and (i, j+1). All edges are stored in one array, the horizontal ones first.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace placement::route {

struct GridSize {
  std::int32_t across, up;
  double gcell_width, gcell_height;  // µm

  std::int32_t horizontal_edges() const { return (across - 1) * up; }
  std::int32_t edges() const { return horizontal_edges() + across * (up - 1); }
  std::int32_t right_of(std::int32_t i, std::int32_t j) const { return i * up + j; }
  std::int32_t above(std::int32_t i, std::int32_t j) const { return horizontal_edges() + i * (up - 1) + j; }
};

class Gcells {
 public:
  Gcells(const GridSize& size, std::vector<float> capacity);

  const GridSize& size() const { return size_; }
  float cost(std::int32_t edge) const { return cost_[edge]; }
  bool over(std::int32_t edge) const { return demand_[edge] > capacity_[edge]; }
  const std::vector<float>& demand() const { return demand_; }
  const std::vector<float>& capacity() const { return capacity_; }
  // Distance in µm between the two gcells of an edge.
  float length(std::int32_t edge) const {
    return static_cast<float>(edge < size_.horizontal_edges() ? size_.gcell_width : size_.gcell_height);
  }
  // Lower bound in µm of an edge's cost in that direction.
  float least_across() const { return static_cast<float>(size_.gcell_width); }
  float least_up() const { return static_cast<float>(size_.gcell_height); }

  void add(std::int32_t edge, float amount);
  // Raises the prices of edges over capacity (McMurchie, Ebeling: "PathFinder", 1995).
  void remember();
  // Demand beyond capacity, and demand, in µm of wire, of horizontal (0) or vertical (1) edges.
  double excess(int direction) const;
  double total(int direction) const;

 private:
  void reprice(std::int32_t edge);

  GridSize size_;
  std::vector<float> capacity_, demand_, history_, cost_;
};

struct Gcell {
  std::int32_t i, j;
};

// The edges of a connection, from one end to the other.
using Path = std::vector<std::int32_t>;

class PathFinder {
 public:
  explicit PathFinder(const Gcells& gcells);

  // The cheaper of the two L shapes; a bend costs `bend` µm.
  void ell(Gcell from, Gcell to, Path& path) const;
  // The cheapest of all L and Z shapes within the box of the two ends.
  void zed(Gcell from, Gcell to, Path& path) const;
  // The cheapest path within the box of the ends, enlarged by `margin` gcells (A*).
  void maze(Gcell from, Gcell to, std::int32_t margin, Path& path);
  double cost(const Path& path) const;

 private:
  double walk(Gcell from, Gcell to, Path* path) const;

  const Gcells& gcells_;
  float bend_;
  std::vector<float> reached_;
  std::vector<std::int8_t> came_;
  std::vector<std::int32_t> seen_;
  std::int32_t round_ = 0;
  std::vector<std::pair<float, std::int32_t>> heap_;
};

}  // namespace placement::route
