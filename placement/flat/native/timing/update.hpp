// Incremental timing after a few pins have moved: their nets, and only what these change before and behind them.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis.hpp"
#include "delays.hpp"

namespace placement::flat::timing {

// `delays` and `analysis` belong to the previous positions; afterwards both are bit-identical to the results of a full
// pass. If latches lend time, it is a full pass. `moved` are pins; `x` and `y` are the positions of all [pins], as in
// `compute_delays`.
void update(const Library& library, const Netlist& netlist, const Graph& graph, const WireModel& model,
            const std::vector<std::int32_t>& moved, const float* x, const float* y, const float* slew_at, Delays& delays,
            Analysis& analysis);

}  // namespace placement::flat::timing
