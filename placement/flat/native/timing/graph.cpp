#include "graph.hpp"

#include <array>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace placement::flat::timing {
namespace {

constexpr std::size_t kShown = 10;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Appends the edges of an arc as pairs (falling source, falling target).
void each_edge(std::int8_t kind, std::int8_t sense, std::vector<std::pair<int, int>>& into) {
  into.clear();
  for (int from = 0; from < 2; ++from) {
    for (int to = 0; to < 2; ++to) {
      const bool is_taken = kind == kRisingEdge    ? from == 0
                            : kind == kFallingEdge ? from == 1
                            : sense > 0            ? from == to
                            : sense < 0            ? from != to
                                                   : true;
      if (is_taken) into.emplace_back(from, to);
    }
  }
}

}  // namespace

Graph::Graph(const Library& library, const Netlist& netlist) {
  find_drivers(library, netlist);
  add_arcs(library, netlist);
  sort();
  list_out();
}

void Graph::find_drivers(const Library& library, const Netlist& netlist) {
  net.resize(at(netlist.pins));
  driver.assign(at(netlist.pins), -1);
  net_driver.assign(at(netlist.nets), -1);
  for (std::int64_t e = 0; e < netlist.nets; ++e) {
    const std::int32_t begin = netlist.net_start[e], end = netlist.net_start[e + 1];
    int drivers = 0;
    for (std::int32_t pin = begin; pin < end; ++pin) {
      net[at(pin)] = static_cast<std::int32_t>(e);
      const std::int32_t model = netlist.library_pin[pin];
      const bool drives = netlist.instance[pin] < 0 ? netlist.port[pin] == 1 : model >= 0 && library.direction[model] == 2;
      if (drives && drivers++ == 0) net_driver[at(e)] = pin;
    }
    undriven_nets += drivers == 0;
    multiply_driven_nets += drivers > 1;
    const std::int32_t from = net_driver[at(e)];
    for (std::int32_t pin = begin; pin < end && from >= 0; ++pin) {
      const std::int32_t model = netlist.library_pin[pin];
      const bool is_output = netlist.instance[pin] >= 0 && model >= 0 && library.direction[model] == 2;
      if (pin != from && !is_output && !(netlist.instance[pin] < 0 && netlist.port[pin] == 1)) driver[at(pin)] = from;
    }
  }
}

void Graph::add_arcs(const Library& library, const Netlist& netlist) {
  // The pins of each instance, by counting sort.
  std::vector<std::int32_t> start(at(netlist.instances + 1), 0), members(at(netlist.pins));
  for (std::int64_t pin = 0; pin < netlist.pins; ++pin) {
    if (netlist.instance[pin] >= 0) ++start[at(netlist.instance[pin] + 1)];
  }
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<std::int32_t> fill(start.begin(), start.end() - 1);
  for (std::int64_t pin = 0; pin < netlist.pins; ++pin) {
    if (netlist.instance[pin] >= 0) members[at(fill[at(netlist.instance[pin])]++)] = static_cast<std::int32_t>(pin);
  }
  is_register_clock.assign(at(netlist.pins), 0);
  struct Found {
    std::int32_t to;
    Edge edge;
  };
  std::vector<Found> found;
  std::vector<std::int32_t> pin_of(at(library.pins), -1);
  std::vector<std::pair<int, int>> pairs;
  edge_start.assign(at(2 * netlist.pins + 1), 0);
  for (std::int64_t instance = 0; instance < netlist.instances; ++instance) {
    const std::int32_t cell = netlist.cell[instance];
    if (cell < 0) continue;
    const auto begin = start[at(instance)], end = start[at(instance + 1)];
    for (std::int32_t member = begin; member < end; ++member) {
      const std::int32_t pin = members[at(member)];
      if (netlist.library_pin[pin] >= 0) pin_of[at(netlist.library_pin[pin])] = pin;
    }
    const auto first_check = static_cast<std::int32_t>(checks.size());
    for (const bool wants_checks : {true, false}) {
      for (std::int32_t arc = library.arc_start[cell]; arc < library.arc_start[cell + 1]; ++arc) {
        const std::int32_t from = pin_of[at(library.arc_from[arc])], to = pin_of[at(library.arc_to[arc])];
        const std::int8_t kind = library.arc_kind[arc];
        const std::int32_t* const tables = library.arc_tables + 4 * static_cast<std::int64_t>(arc);
        const bool is_check = kind == kSetupRising || kind == kSetupFalling;
        if (from < 0 || to < 0 || is_check != wants_checks) continue;
        if (is_check) {
          checks.push_back({to, from, kind == kSetupFalling, library.is_latch[cell], {tables[0], tables[1]}});
          continue;
        }
        if (kind == kRisingEdge || kind == kFallingEdge) is_register_clock[at(from)] = 1;
        each_edge(kind, library.arc_sense[arc], pairs);
        for (const auto& [source, target] : pairs) {
          if (tables[target] < 0) continue;
          const std::int32_t vertex = 2 * from + source, end_vertex = 2 * to + target;
          if (kind != kTransparent) {
            found.push_back({end_vertex, {vertex, tables[target], tables[2 + target]}});
            ++edge_start[at(end_vertex + 1)];
            continue;
          }
          for (auto check = first_check; check < static_cast<std::int32_t>(checks.size()); ++check) {
            if (checks[at(check)].data == from) passages.push_back({check, vertex, end_vertex, tables[target]});
          }
        }
      }
    }
    for (std::int32_t member = begin; member < end; ++member) {
      const std::int32_t model = netlist.library_pin[members[at(member)]];
      if (model >= 0) pin_of[at(model)] = -1;
    }
  }
  std::partial_sum(edge_start.begin(), edge_start.end(), edge_start.begin());
  edges.resize(found.size());
  std::vector<std::int32_t> place(edge_start.begin(), edge_start.end() - 1);
  for (const Found& one : found) edges[at(place[at(one.to)]++)] = one.edge;
}

// Depth-first search against the edges; a pin leaves the stack after all that it depends on.
void Graph::sort() {
  const std::int64_t count = pins();
  std::vector<std::int8_t> state(at(count), 0);  // 1: on the stack, 2: done
  std::vector<std::pair<std::int32_t, std::int32_t>> stack;  // pin, index of its next edge
  order.reserve(at(count));
  for (std::int64_t root = 0; root < count; ++root) {
    if (state[at(root)] != 0) continue;
    stack.emplace_back(static_cast<std::int32_t>(root), edge_start[at(2 * root)]);
    state[at(root)] = 1;
    while (!stack.empty()) {
      auto& [pin, next] = stack.back();
      std::int32_t below = -1;
      Edge* edge = nullptr;
      if (driver[at(pin)] >= 0) {
        // A wire is its pin's only fan-in: `next` counts it.
        if (next == edge_start[at(2 * pin)]) below = driver[at(pin)];
        next = edge_start[at(2 * pin)] + 1;
      } else {
        while (next < edge_start[at(2 * pin + 2)] && below < 0) {
          edge = &edges[at(next++)];
          if (edge->from >= 0) below = edge->from / 2;
        }
      }
      if (below < 0) {
        state[at(pin)] = 2;
        order.push_back(pin);
        stack.pop_back();
      } else if (state[at(below)] == 1) {
        if (edge == nullptr) {
          driver[at(pin)] = -1;
        } else {
          edge->from = -1;
        }
        ++cut_edges;
        if (cut_pins.size() < kShown) cut_pins.push_back(below);
      } else if (state[at(below)] == 0) {
        state[at(below)] = 1;
        stack.emplace_back(below, edge_start[at(2 * below)]);
      }
    }
  }
}

void Graph::list_out() {
  rank.resize(order.size());
  for (std::size_t place = 0; place < order.size(); ++place) rank[at(order[place])] = static_cast<std::int32_t>(place);
  out_start.assign(edge_start.size(), 0);
  for (const Edge& edge : edges) {
    if (edge.from >= 0) ++out_start[at(edge.from + 1)];
  }
  std::partial_sum(out_start.begin(), out_start.end(), out_start.begin());
  out.resize(at(out_start.back()));
  std::vector<std::int32_t> place(out_start.begin(), out_start.end() - 1);
  for (std::int32_t vertex = 0; vertex < 2 * pins(); ++vertex) {
    for (std::int32_t edge = edge_start[at(vertex)]; edge < edge_start[at(vertex + 1)]; ++edge) {
      const std::int32_t from = edges[at(edge)].from;
      if (from >= 0) out[at(place[at(from)]++)] = {vertex, edge};
    }
  }
}

void Graph::spread_clocks(const std::vector<std::int32_t>& source, const std::vector<std::int32_t>& clock,
                          const std::vector<bool>& is_generated, std::vector<std::uint32_t>& plain, std::vector<std::uint32_t>& inverted) const {
  plain.assign(at(pins()), 0);
  inverted.assign(at(pins()), 0);
  std::vector<std::int8_t> ends(at(pins()), 0);
  for (std::size_t one = 0; one < source.size(); ++one) {
    if (clock[one] < 0 || clock[one] >= 32) throw std::invalid_argument("timing: at most 32 clocks");
    plain[at(source[one])] |= 1U << clock[one];
    if (is_generated[one]) ends[at(source[one])] = 1;
  }
  for (const std::int32_t pin : order) {
    if (ends[at(pin)]) continue;
    if (const std::int32_t from = driver[at(pin)]; from >= 0) {
      plain[at(pin)] |= plain[at(from)];
      inverted[at(pin)] |= inverted[at(from)];
      continue;
    }
    for (std::int32_t vertex = 2 * pin; vertex < 2 * pin + 2; ++vertex) {
      for (std::int32_t edge = edge_start[at(vertex)]; edge < edge_start[at(vertex + 1)]; ++edge) {
        const std::int32_t from = edges[at(edge)].from;
        if (from < 0 || is_register_clock[at(from / 2)]) continue;
        const bool inverts = (from & 1) != (vertex & 1);
        plain[at(pin)] |= (inverts ? inverted : plain)[at(from / 2)];
        inverted[at(pin)] |= (inverts ? plain : inverted)[at(from / 2)];
      }
    }
  }
}

}  // namespace placement::flat::timing
