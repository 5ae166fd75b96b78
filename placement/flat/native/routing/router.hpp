// A global router: trees over the pins, their edges over the gcells, rip-up and reroute with prices that grow where
// demand exceeds capacity. Axis legend: E nets, L net-pin incidences, X gcells across, Y gcells up.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "paths.hpp"
#include "steiner.hpp"

namespace placement::route {

struct Estimate {
  double tree_length = 0;      // µm, of all trees
  double routed_length = 0;    // µm, including detours
  double excess[2] = {0, 0};   // µm of wire above capacity, horizontal and vertical
  double demand[2] = {0, 0};   // µm of wire
  std::int32_t rounds = 0;     // rounds of rip-up and reroute
};

class Router {
 public:
  // `pause` is called every few hundred nets or connections; an exception from it ends the work.
  Router(const GridSize& size, std::vector<float> capacity, std::function<void()> pause)
      : gcells_(size, std::move(capacity)), finder_(gcells_), pause_(std::move(pause)) {}

  // Adds the nets' trees; pins [L] in µm from the grid's corner, net e from start[e] to start[e+1].
  void add_nets(const float* x, const float* y, const std::int32_t* start, std::int64_t nets);
  // Routes with at most `rounds` of rip-up and reroute.
  Estimate route(std::int32_t rounds);
  const Gcells& gcells() const { return gcells_; }

 private:
  struct Connection {
    Gcell from, to;
    Path path;
  };

  void add_edge(const Point& a, const Point& b);
  void add_local(Gcell at, float across, float up);
  Gcell gcell_of(const Point& point) const;
  std::int64_t reroute(std::int32_t round);
  void occupy(const Path& path, float amount);

  Gcells gcells_;
  PathFinder finder_;
  std::function<void()> pause_;
  TreeBuilder builder_;
  std::vector<Connection> connections_;
  double tree_length_ = 0;
};

}  // namespace placement::route
