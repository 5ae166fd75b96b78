// An order of boxes in which all of them fit: sequence pairs, annealed (Murata, Fujiyoshi, Nakatake, Kajitani 1996).
// Axes: B boxes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace placement {

// What boxes have to keep, µm. A box that does not move has low = high.
struct PackingProblem {
  std::vector<double> low_x, high_x, low_y, high_y;  // [B] limits of the centres
  std::vector<double> apart_x, apart_y;              // [B, B] least distance of centres on one of the axes; -inf: none
  int boxes() const { return static_cast<int>(low_x.size()); }
};

using Centres = std::pair<std::vector<double>, std::vector<double>>;  // x, y [B]

// Centres at which all boxes keep to their limits and apart; nothing where none were found with about so many
// comparisons of two boxes. Begins with the order in which the boxes are at x, y [B]. The same for the same seed.
std::optional<Centres> pack(const PackingProblem& problem, const std::vector<double>& x, const std::vector<double>& y,
                            std::int64_t comparisons, std::uint64_t seed);

}  // namespace placement
