// Delays of a placed netlist: wires as optimally repeated ones, cells by their tables.
//
// A wire's delay is linear in the distance from its driver. The driver's load is the pins of its net and the wire, but
// at most the first segment of a repeated wire or its own limit: a heavier net is assumed to be buffered, in a tree
// whose stages multiply their drive by `fanout_ratio`.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.hpp"
#include "library.hpp"

namespace placement::flat::timing {

struct WireModel {
  float delay_per_um;        // ps
  float capacitance_per_um;  // fF
  float most_load;           // fF, limit for a driver: the first segment and the repeater's input
  float stage_delay;         // ps, of a repeater including its segment
  float fanout_ratio;        // above 1
  float cell_factor;         // factor of the delays of cells
};

struct Delays {
  std::vector<float> wire;     // [pins], ps from the driver of each pin; 0 for drivers
  std::vector<float> load[2];  // [nets], fF, load of the driver, rising and falling
  std::vector<float> slew;     // [vertices], ps, full swing
  std::vector<float> edge;     // [edges], ps
  float cell_factor = 1;       // factor of the delays of cells
};

// Computes the wires and the load of one net, whose driver is a pin, or -1.
void price_net(const Library& library, const Netlist& netlist, const WireModel& model, std::int64_t net,
               std::int32_t driver, const float* x, const float* y, Delays& into);

// Computes the slews of a pin and the delays of the edges into it, from the slews before it and the load of its net.
// Returns whether a slew changed; adds the pins from which edges changed their delay to `sources` if it is not null.
bool price_pin(const Library& library, const Graph& graph, const float* slew_at, std::int32_t pin, Delays& into,
               std::vector<std::int32_t>* sources);

// `x` and `y` of [pins] in µm; `slew_at` (ps, [pins]) is the slew of pins in the network of a clock and of ports, NaN
// elsewhere.
void compute_delays(const Library& library, const Netlist& netlist, const Graph& graph, const WireModel& model,
                    const float* x, const float* y, const float* slew_at, Delays& into);

}  // namespace placement::flat::timing
