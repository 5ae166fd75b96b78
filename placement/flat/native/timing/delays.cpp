#include "delays.hpp"

#include <algorithm>
#include <cmath>

namespace placement::flat::timing {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

void price_net(const Library& library, const Netlist& netlist, const WireModel& model, std::int64_t net,
               std::int32_t driver, const float* x, const float* y, Delays& into) {
  const std::int32_t begin = netlist.net_start[net], end = netlist.net_start[net + 1];
  if (begin == end) return;
  float low_x = x[begin], high_x = x[begin], low_y = y[begin], high_y = y[begin], rise = 0, fall = 0;
  for (std::int32_t pin = begin; pin < end; ++pin) {
    low_x = std::min(low_x, x[pin]);
    high_x = std::max(high_x, x[pin]);
    low_y = std::min(low_y, y[pin]);
    high_y = std::max(high_y, y[pin]);
    if (netlist.load_at != nullptr) {
      rise += netlist.load_at[pin];
      fall += netlist.load_at[pin];
    }
    const std::int32_t library_pin = netlist.library_pin[pin];
    if (library_pin >= 0 && pin != driver) {
      rise += library.rise_capacitance[library_pin];
      fall += library.fall_capacitance[library_pin];
    }
  }
  const std::int32_t driving = driver < 0 ? -1 : netlist.library_pin[driver];
  float most = model.most_load;
  if (driving >= 0 && library.max_capacitance[driving] > 0) most = std::min(most, library.max_capacitance[driving]);
  const float wire = model.capacitance_per_um * (high_x - low_x + high_y - low_y);
  into.load[0][at(net)] = std::min(rise + wire, most);
  into.load[1][at(net)] = std::min(fall + wire, most);
  const float excess = std::max(rise, fall) / most;
  const float tree = excess > 1 ? model.stage_delay * std::log(excess) / std::log(model.fanout_ratio) : 0.0F;
  for (std::int32_t pin = begin; pin < end && driver >= 0; ++pin) {
    const float distance = std::abs(x[pin] - x[driver]) + std::abs(y[pin] - y[driver]);
    into.wire[at(pin)] = pin == driver ? 0.0F : model.delay_per_um * distance + tree;
  }
}

bool price_pin(const Library& library, const Graph& graph, const float* slew_at, std::int32_t pin, Delays& into,
               std::vector<std::int32_t>* sources) {
  const std::int32_t driver = graph.driver[at(pin)];
  bool has_changed = false;
  for (std::int32_t falls = 0; falls < 2; ++falls) {
    const std::int64_t vertex = 2 * static_cast<std::int64_t>(pin) + falls;
    float slew = driver >= 0 ? into.slew[at(2 * static_cast<std::int64_t>(driver) + falls)] : 0.0F;
    const float load = into.load[falls][at(graph.net[at(pin)])];
    for (std::int32_t edge = graph.edge_start[at(vertex)]; edge < graph.edge_start[at(vertex + 1)]; ++edge) {
      const Edge& one = graph.edges[at(edge)];
      if (one.from < 0) continue;
      const float source = into.slew[at(one.from)], delay = into.cell_factor * library.look_up(one.delay_table, source, load);
      if (sources != nullptr && delay != into.edge[at(edge)]) sources->push_back(one.from / 2);
      into.edge[at(edge)] = delay;
      if (one.slew_table >= 0) slew = std::max(slew, library.look_up(one.slew_table, source, load));
    }
    if (!std::isnan(slew_at[pin])) slew = slew_at[pin];
    has_changed |= slew != into.slew[at(vertex)];
    into.slew[at(vertex)] = slew;
  }
  return has_changed;
}

void compute_delays(const Library& library, const Netlist& netlist, const Graph& graph, const WireModel& model,
                    const float* x, const float* y, const float* slew_at, Delays& into) {
  into.wire.assign(at(netlist.pins), 0.0F);
  into.slew.assign(at(2 * netlist.pins), 0.0F);
  into.edge.assign(graph.edges.size(), 0.0F);
  into.cell_factor = model.cell_factor;
  for (auto& load : into.load) load.assign(at(netlist.nets), 0.0F);
  for (std::int64_t net = 0; net < netlist.nets; ++net) {
    price_net(library, netlist, model, net, graph.net_driver[at(net)], x, y, into);
  }
  for (const std::int32_t pin : graph.order) price_pin(library, graph, slew_at, pin, into, nullptr);
}

}  // namespace placement::flat::timing
