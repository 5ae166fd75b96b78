// Paths of one two-point connection over the gcells: L and Z shapes, and the cheapest path of any shape in a window.
#pragma once
#include <cstdint>
#include <vector>

#include "gcells.hpp"

namespace placement::route {

struct Gcell {
  std::int32_t i, j;
};

// The edges that a connection crosses, from one end to the other.
using Path = std::vector<std::int32_t>;

class PathFinder {
 public:
  explicit PathFinder(const Gcells& gcells);

  // The cheaper of the two L shapes; a bend costs `bend` µm.
  void ell(Gcell from, Gcell to, Path& path) const;
  // The cheapest of all L and Z shapes within the box of the two ends.
  void zed(Gcell from, Gcell to, Path& path) const;
  // The cheapest path within the box of the ends widened by `margin` gcells (A*).
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
