// Packs macros into a grid of gcells by a simple rule, to measure how much of it they leave free.
#pragma once

#include <cstdint>
#include <vector>

namespace netlist_text {

// Macros are placed in the given order, each with its centre at the centre of the first gcell (row by row from the
// lower left one) where it lies within the canvas and overlaps no earlier macro by more than `tolerance` µm in both
// directions. Returns the share of gcells that no macro touches, or -1 if a macro does not fit.
double empty_share(double width, double height, std::int32_t columns, std::int32_t rows,
                   const std::vector<double>& macro_width, const std::vector<double>& macro_height, double tolerance);

}  // namespace netlist_text
