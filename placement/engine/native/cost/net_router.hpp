// Nets in routing: the gcells that they meet, and the updates of their routes when points move.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "cost/compact_nets.hpp"
#include "cost/pair.hpp"

namespace placement {

// Calls visit(n) with a constant n: the number of points of a net, or 0 for one of the few nets with more than six. The
// loops over the points of most nets are thus unrolled.
template <typename Visit>
inline auto with_size(int points, Visit visit) {
  switch (points) {
    case 2: return visit(std::integral_constant<int, 2>());
    case 3: return visit(std::integral_constant<int, 3>());
    case 4: return visit(std::integral_constant<int, 4>());
    case 5: return visit(std::integral_constant<int, 5>());
    case 6: return visit(std::integral_constant<int, 6>());
    default: return visit(std::integral_constant<int, 0>());
  }
}

// Routes nets for any `Routes` with the interface of RouteShapes. Owns its workspace: one per thread. kPoints 0: a net
// of any number of points.
class NetRouter {
 public:
  NetRouter(const Canvas& canvas, int most_points)
      : stamp_(canvas.cells(), 0),
        before_(most_points),
        after_(most_points),
        before_cells_(most_points + 1),
        after_cells_(most_points + 1) {}

  // Adds the route of a net of `count` points and returns its half perimeter, µm.
  template <int kPoints, typename Routes>
  [[gnu::always_inline]] double add(const PointPlace* places, const std::int32_t* points, int count, double weight,
                                    Routes& routes) {
    if (kPoints > 0) count = kPoints;
    const double length = half_perimeter(places, points, count);
    if constexpr (kPoints == 2) {
      routes.add_two(places[points[0]], places[points[1]], weight);
    } else {
      Buffer<kPoints> cells(after_cells_);
      const auto at = [=](int i) { return places + points[i]; };
      routes.add(cells.data, find_distinct<kPoints>(at, count, cells.data), weight);
    }
    return length;
  }

  // Returns the half perimeter, µm, of a net whose points marked in `moved` [Q] move to `new_places`. If `routed`,
  // replaces its route.
  template <int kPoints, bool kLogged, typename Routes>
  [[gnu::always_inline]] double follow(const PointPlace* places, const PointPlace* new_places, const std::uint8_t* moved,
                                       const std::int32_t* points, int count, double weight, bool routed,
                                       Routes& routes) {
    if (kPoints > 0) count = kPoints;
    Buffer<kPoints> before(before_), after(after_);
    Pair low = Pair::of(INFINITY, INFINITY), high = Pair::of(-INFINITY, -INFINITY);
    bool same = true;  // whether the gcells are the same
    for (int i = 0; i < count; ++i) {
      const int point = points[i];
      before.data[i] = places + point;
      after.data[i] = (moved[point] ? new_places : places) + point;
      const Pair at = Pair::load(&after.data[i]->x);
      low = least(low, at);
      high = largest(high, at);
      same &= before.data[i]->cell == after.data[i]->cell;
    }
    const double half_perimeter = (high - low).sum();
    if (!routed || same) return half_perimeter;
    if constexpr (kPoints == 2) {
      routes.template add_two<kLogged>(*before.data[0], *before.data[1], -weight);
      routes.template add_two<kLogged>(*after.data[0], *after.data[1], weight);
    } else {
      Buffer<kPoints> before_cells(before_cells_), after_cells(after_cells_);
      const auto at_before = [&](int i) { return before.data[i]; };
      const auto at_after = [&](int i) { return after.data[i]; };
      const int count_before = find_distinct<kPoints>(at_before, count, before_cells.data);
      const int count_after = find_distinct<kPoints>(at_after, count, after_cells.data);
      routes.template change<kLogged>(before_cells.data, count_before, after_cells.data, count_after, weight);
    }
    return half_perimeter;
  }

 private:
  // An array for a net of few points, else the workspace.
  template <int kPoints>
  struct Buffer {
    explicit Buffer(std::vector<const PointPlace*>&) {}
    const PointPlace* data[kPoints + 1];
  };

  // Writes one point for each distinct gcell of place(0), place(1), …, the driver's first, to `cells`, which has space
  // for one more than the number of points. Returns the number of gcells.
  template <int kPoints, typename At>
  [[gnu::always_inline]] int find_distinct(const At& place, int count, const PointPlace** cells) {
    if constexpr (kPoints == 0) return find_distinct_of_many(place, count, cells);
    std::int32_t cell[kPoints + 1];
    cells[0] = place(0);
    cell[0] = cells[0]->cell;
    int distinct = 1;
#pragma GCC unroll 8
    for (int i = 1; i < kPoints; ++i) {
      const PointPlace* here = place(i);
      cell[i] = here->cell;
      bool fresh = true;
#pragma GCC unroll 8
      for (int j = 0; j < i; ++j) fresh &= cell[i] != cell[j];
      cells[distinct] = here;
      distinct += fresh;
    }
    return distinct;
  }
  template <typename At>
  int find_distinct_of_many(const At& place, int count, const PointPlace** cells) {
    if (++epoch_ == 0) {
      std::fill(stamp_.begin(), stamp_.end(), 0);
      epoch_ = 1;
    }
    std::uint32_t* stamp = stamp_.data();
    int distinct = 0;
    for (int i = 0; i < count; ++i) {
      cells[distinct] = place(i);
      distinct += stamp[cells[distinct]->cell] != epoch_;
      stamp[place(i)->cell] = epoch_;
    }
    return distinct;
  }

  std::vector<std::uint32_t> stamp_;  // [R·C] last net that met the gcell
  std::uint32_t epoch_ = 0;
  std::vector<const PointPlace*> before_, after_, before_cells_, after_cells_;  // for a net of many points
};

template <>
struct NetRouter::Buffer<0> {
  explicit Buffer(std::vector<const PointPlace*>& workspace) : data(workspace.data()) {}
  const PointPlace** data;
};

}  // namespace placement
