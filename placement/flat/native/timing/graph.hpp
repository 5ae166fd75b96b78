// The timing graph of a netlist: pins with a rising and a falling vertex each, arcs within cells, wires between them.
//
// Pins are the connections of nets, net by net. Vertex 2p is pin p rising, 2p+1 falling. A loop is cut at the arc by
// which a depth-first search returns to a pin on its stack.
#pragma once

#include <cstdint>
#include <vector>

#include "library.hpp"

namespace placement::flat::timing {

struct Netlist {
  std::int64_t instances, pins, nets;
  const std::int32_t* cell;         // [instances], the library's cell; -1: unknown, no paths begin or end at its pins
  const std::int32_t* instance;     // [pins]; -1: a port
  const std::int32_t* library_pin;  // [pins]; -1: a port or unknown
  const std::int8_t* port;          // [pins]; 1: a port that drives its net (an input), 2: a driven port, 0: no port
  const std::int32_t* net_start;    // [nets + 1]
  const float* load_at = nullptr;   // [pins], fF besides the pin's capacitance; null: none
};

// From vertex `from`; the tables of its delay and of the slew at its end.
struct Edge {
  std::int32_t from;
  std::int32_t delay_table, slew_table;
};

// A check of a register's data against its clock: the tables for rising and falling data (-1: none).
struct Check {
  std::int32_t data, clock;  // pins
  std::int8_t is_falling;    // the capturing clock edge
  std::int8_t is_latch;
  std::int32_t tables[2];
};

// Transparency of a latch: its data passes through while it is open.
struct Passage {
  std::int32_t check;     // check of the data pin
  std::int32_t from, to;  // vertices
  std::int32_t delay_table;
};

class Graph {
 public:
  Graph(const Library& library, const Netlist& netlist);

  std::int64_t pins() const { return static_cast<std::int64_t>(driver.size()); }

  std::vector<std::int32_t> net;     // [pins]
  std::vector<std::int32_t> driver;  // [pins], the pin that drives this one through a wire; -1: none, or it drives
  std::vector<std::int32_t> net_driver;  // [nets]; -1: none
  std::vector<std::int32_t> order;       // all pins in topological order
  std::vector<std::int32_t> rank;        // [pins], index in `order`
  // Edges into vertex v: edge_start[v] to edge_start[v+1].
  std::vector<std::int32_t> edge_start;
  std::vector<Edge> edges;
  // Edges out of vertex v: out_start[v] to out_start[v+1] of `out`, without the cut ones.
  struct Out {
    std::int32_t to, edge;  // vertex, index in `edges`
  };
  std::vector<std::int32_t> out_start;
  std::vector<Out> out;
  std::vector<Check> checks;
  std::vector<Passage> passages;
  std::vector<std::int8_t> is_register_clock;  // [pins], whether edges of the clock begin there

  std::int64_t cut_edges = 0;
  std::vector<std::int32_t> cut_pins;  // the first ten pins whose edges were cut
  std::int64_t undriven_nets = 0, multiply_driven_nets = 0;

  // For each pin, masks of the clocks that reach it through wires and combinational cells, not inverted and inverted.
  // `source` and `clock` are pins and numbers of clocks below 32. Where a clock is generated, the others end.
  void spread_clocks(const std::vector<std::int32_t>& source, const std::vector<std::int32_t>& clock,
                     const std::vector<bool>& is_generated, std::vector<std::uint32_t>& plain, std::vector<std::uint32_t>& inverted) const;

 private:
  void find_drivers(const Library& library, const Netlist& netlist);
  void add_arcs(const Library& library, const Netlist& netlist);
  void sort();
  void list_out();
};

}  // namespace placement::flat::timing
