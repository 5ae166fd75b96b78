// Random moves over the grid, for benchmarks and stress tests of the incremental cost.
#pragma once

#include <cstdint>

#include "cost/incremental.hpp"

namespace placement {

// `moves` proposals: of ten, four put a hard macro and four a soft macro on the middle of a random gcell, one swaps
// two hard macros and one turns a hard macro; each is accepted with the given probability, else undone. Only movable
// macros move. Deterministic for a seed. Returns how many were accepted.
std::int64_t random_walk(IncrementalCost& cost, std::int64_t moves, std::uint64_t seed, double accept_probability);

}  // namespace placement
