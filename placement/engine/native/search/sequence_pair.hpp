// Search for an order of boxes in which all of them fit: annealed sequence pairs (Murata, Fujiyoshi, Nakatake, Kajitani
// 1996). Axes: B boxes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace placement {

// Constraints on boxes, µm. A fixed box has low = high.
struct PackingProblem {
  std::vector<double> low_x, high_x, low_y, high_y;  // [B] limits of the centres
  std::vector<double> apart_x, apart_y;              // [B, B] minimum distance of centres on one axis; -inf: none
  int boxes() const { return static_cast<int>(low_x.size()); }
};

using Centres = std::pair<std::vector<double>, std::vector<double>>;  // x, y [B]

// Centres at which all boxes meet their limits and distances; empty if none were found within about `comparisons`
// comparisons of two boxes. Begins with the order of the boxes at x, y [B]. Deterministic for a seed.
std::optional<Centres> pack(const PackingProblem& problem, const std::vector<double>& x, const std::vector<double>& y,
                            std::int64_t comparisons, std::uint64_t seed);

}  // namespace placement
