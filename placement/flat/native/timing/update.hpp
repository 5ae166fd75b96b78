// Timing after a few pins have moved: their nets, and only what these change before and behind them.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis.hpp"
#include "delays.hpp"

namespace placement::flat::timing {

// `delays` and `analysis` are of the places before; afterwards both are as a full pass finds them, bit by bit. Where
// latches lend time it is a full pass. `moved` are pins; `x` and `y` are the places of all [pins], as in `compute_delays`.
void update(const Library& library, const Netlist& netlist, const Graph& graph, const WireModel& model,
            const std::vector<std::int32_t>& moved, const float* x, const float* y, const float* slew_at, Delays& delays,
            Analysis& analysis);

}  // namespace placement::flat::timing
