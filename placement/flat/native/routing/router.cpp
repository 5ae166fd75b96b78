#include "router.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace placement::route {
namespace {

constexpr std::int32_t kMargin = 8;  // gcells around the ends' box open to a detour; half as many more in each round
constexpr std::size_t kPause = 256;    // nets or connections between two calls of `pause`

std::int32_t distance(const Gcell& a, const Gcell& b) { return std::abs(a.i - b.i) + std::abs(a.j - b.j); }

}  // namespace

Gcell Router::gcell_of(const Point& point) const {
  const GridSize& size = gcells_.size();
  const auto index = [](double at, double side, std::int32_t count) {
    return std::clamp(static_cast<std::int32_t>(std::floor(at / side)), 0, count - 1);
  };
  return {index(point.x, size.gcell_width, size.across), index(point.y, size.gcell_height, size.up)};
}

void Router::add_nets(const float* x, const float* y, const std::int32_t* start, std::int64_t nets) {
  std::vector<Point> pins;
  for (std::int64_t net = 0; net < nets; ++net) {
    if (net % kPause == 0) pause_();
    pins.clear();
    for (std::int32_t pin = start[net]; pin < start[net + 1]; ++pin) pins.push_back({x[pin], y[pin]});
    const Tree& tree = builder_.build(pins.data(), static_cast<std::int64_t>(pins.size()));
    tree_length_ += tree.length();
    for (const auto& [a, b] : tree.edges) add_edge(tree.nodes[a], tree.nodes[b]);
  }
  std::stable_sort(connections_.begin(), connections_.end(), [](const Connection& a, const Connection& b) {
    return distance(a.from, a.to) < distance(b.from, b.to);
  });
}

// A connection within one gcell crosses no edge, but its wire occupies tracks there.
void Router::add_edge(const Point& a, const Point& b) {
  const Gcell from = gcell_of(a), to = gcell_of(b);
  if (distance(from, to) == 0) {
    add_local(from, std::abs(a.x - b.x), std::abs(a.y - b.y));
  } else {
    connections_.push_back({from, to, {}});
  }
}

// Distributes `across` and `up` µm of wire over the edges on both sides of a gcell.
void Router::add_local(Gcell at, float across, float up) {
  const GridSize& size = gcells_.size();
  const auto half_across = static_cast<float>(0.5 * across / size.gcell_width);
  const auto half_up = static_cast<float>(0.5 * up / size.gcell_height);
  if (at.i > 0) gcells_.add(size.right_of(at.i - 1, at.j), half_across);
  if (at.i + 1 < size.across) gcells_.add(size.right_of(at.i, at.j), half_across);
  if (at.j > 0) gcells_.add(size.above(at.i, at.j - 1), half_up);
  if (at.j + 1 < size.up) gcells_.add(size.above(at.i, at.j), half_up);
}

void Router::occupy(const Path& path, float amount) {
  for (const std::int32_t edge : path) gcells_.add(edge, amount);
}

Estimate Router::route(std::int32_t rounds) {
  for (Connection& connection : connections_) {
    finder_.ell(connection.from, connection.to, connection.path);
    occupy(connection.path, 1);
  }
  Estimate found;
  while (found.rounds < rounds && reroute(found.rounds) > 0) ++found.rounds;
  found.tree_length = tree_length_;
  found.routed_length = tree_length_;
  const GridSize& size = gcells_.size();
  for (const Connection& connection : connections_) {
    for (const std::int32_t edge : connection.path) found.routed_length += gcells_.length(edge);
    found.routed_length -= std::abs(connection.from.i - connection.to.i) * size.gcell_width +
                           std::abs(connection.from.j - connection.to.j) * size.gcell_height;
  }
  for (int direction = 0; direction < 2; ++direction) {
    found.excess[direction] = gcells_.excess(direction);
    found.demand[direction] = gcells_.total(direction);
  }
  return found;
}

// Reroutes every connection that uses an edge over capacity; returns their number.
std::int64_t Router::reroute(std::int32_t round) {
  std::int64_t count = 0;
  gcells_.remember();
  Path maze;
  for (Connection& connection : connections_) {
    if (static_cast<std::size_t>(&connection - connections_.data()) % kPause == 0) pause_();
    if (std::none_of(connection.path.begin(), connection.path.end(), [&](std::int32_t edge) { return gcells_.over(edge); })) continue;
    ++count;
    occupy(connection.path, -1);
    finder_.zed(connection.from, connection.to, connection.path);
    if (std::any_of(connection.path.begin(), connection.path.end(), [&](std::int32_t edge) {
          return gcells_.demand()[edge] + 1 > gcells_.capacity()[edge];
        })) {
      finder_.maze(connection.from, connection.to, kMargin * (round + 2) / 2, maze);
      connection.path = maze;
    }
    occupy(connection.path, 1);
  }
  return count;
}

}  // namespace placement::route
