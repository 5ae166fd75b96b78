// Delays of a placed netlist: wires as optimally repeated ones, cells by their tables.
//
// A wire's delay is linear in the distance from its driver. The driver sees the pins of its net and the wire, but no more
// than the first segment of a repeated wire or its own limit: a heavier net is assumed to be buffered, in a tree whose
// stages multiply what they drive by `fanout_ratio`.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.hpp"
#include "library.hpp"

namespace placement::flat::timing {

struct WireModel {
  float delay_per_um;        // ps
  float capacitance_per_um;  // fF
  float most_load;           // fF, of a driver: the first segment and the repeater's input
  float stage_delay;         // ps, of a repeater with its segment
  float fanout_ratio;        // above 1
};

struct Delays {
  std::vector<float> wire;     // [pins], ps from the driver of each pin; 0 of drivers
  std::vector<float> load[2];  // [nets], fF that the driver sees, rising and falling
  std::vector<float> slew;     // [vertices], ps of the whole swing
  std::vector<float> edge;     // [edges], ps
};

// `x` and `y` of [pins] in µm; `slew_at` (ps, [pins]) is the slew of pins in the network of a clock and of ports, NaN
// elsewhere.
void compute_delays(const Library& library, const Netlist& netlist, const Graph& graph, const WireModel& model,
                    const float* x, const float* y, const float* slew_at, Delays& into);

}  // namespace placement::flat::timing
