// Arrival and required times by launching tag, and the slack of every pin.
//
// A tag combines the properties that paths share: the clock edge that launches them, and the exceptions that match
// their startpoints. Times are in ps from the clock's zero; a capture time includes latency, uncertainty and
// exceptions.
#pragma once

#include <cstdint>
#include <vector>

#include "delays.hpp"
#include "graph.hpp"
#include "library.hpp"

namespace placement::flat::timing {

// The start of a path: vertex, tag, ps.
struct Launch {
  std::int32_t vertex, tag;
  float time;
};

// A port at which paths end: `edge` is the capturing clock edge (2 × clock + falling), `delay` ps before it.
struct PortCheck {
  std::int32_t pin, edge;
  float delay[2];
};

struct Constraints {
  std::int32_t tags, groups, edges;  // groups of endpoints; twice as many edges as clocks
  std::vector<Launch> launches;
  std::vector<PortCheck> ports;
  const float* capture;         // [tags, groups, edges]; infinite: no such check
  const std::int32_t* group;    // [pins], of endpoints
  const std::uint32_t* plain;   // [pins], mask of the clocks that reach them (`Graph::spread_clocks`)
  const std::uint32_t* inverted;
  const float* edge_time;       // [edges], in the first period
  const float* edge_offset;     // [edges], from edge_time to the capture at registers: latency less uncertainty
  const float* period;          // [edges / 2]
  const std::int32_t* tag_of_edge;  // [edges], tag of its launches without exceptions; -1: none
  const std::int8_t* blocked;       // [pins], whether no path begins at a pin or passes through it
};

struct Endpoint {
  std::int32_t pin, tag, start;  // vertex of the pin at which the worst path ends, its tag, its startpoint's vertex
  float slack;
};

class Analysis {
 public:
  // `library`, `netlist`, `graph`, `delays` and the arrays of `constraints` must outlive it.
  Analysis(const Library& library, const Netlist& netlist, const Graph& graph, const Delays& delays, Constraints constraints);

  // Recomputes all times with the current delays.
  void run();

  // Compute the times of one pin from those before it (arrival) or behind it (required and slack), and return whether
  // they changed. `list_ends` comes last.
  bool arrive(std::int32_t pin);
  bool require(std::int32_t pin);
  void list_ends();

  std::vector<float> slack;         // [pins], of the worst path through each; infinite: none
  std::vector<Endpoint> endpoints;  // those with a path, sorted by pin
  bool has_settled = true;          // false if the time that latches borrow was still growing

  // The vertices of the worst path to an endpoint, from its startpoint.
  std::vector<std::int32_t> path(const Endpoint& end) const;
  float arrival_at(std::int32_t tag, std::int32_t vertex) const { return times_[static_cast<std::size_t>(tag)].arrival[static_cast<std::size_t>(vertex)]; }

 private:
  struct Times {
    std::vector<float> arrival, required, borrowed;  // [vertices]; `borrowed` is empty if no latch lends
    std::vector<std::int32_t> start;                 // [vertices]
  };

  bool arrive(std::int32_t tag, std::int32_t pin);
  bool borrow();
  void check(std::int32_t tag, std::int32_t pin);
  const float* captures(std::int32_t tag, std::int32_t pin) const;
  template <typename Visit>
  void each_capture(const Check& check, std::int32_t tag, Visit visit) const;
  float open_time(std::int32_t edge) const;
  void end(std::int32_t tag, std::int32_t vertex, float limit, float slack);

  const Library& library_;
  const Netlist& netlist_;
  const Graph& graph_;
  const Delays& delays_;
  Constraints constraints_;      // launches and ports sorted by pin
  std::vector<std::int8_t> has_launch_, is_end_;     // [pins]
  std::vector<std::int32_t> check_start_, check_;    // checks of pin p: check_[check_start_[p]] to check_[check_start_[p+1]]
  std::vector<Times> times_;
  std::vector<Endpoint> worst_;  // [pins]
};

}  // namespace placement::flat::timing
