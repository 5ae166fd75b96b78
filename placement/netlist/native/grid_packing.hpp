// Packs macros into a grid of gcells the simplest way, to see how much of it they leave free.
#pragma once

#include <cstdint>
#include <vector>

namespace netlist_text {

// Macros are placed in the order given, each with its centre at the centre of the first gcell (row by row from the
// lower left one) where it lies within the canvas and overlaps no macro before it by more than `tolerance` µm in both
// directions. Returns the share of gcells that no macro touches, or -1 where a macro finds no place.
double empty_share(double width, double height, std::int32_t columns, std::int32_t rows,
                   const std::vector<double>& macro_width, const std::vector<double>& macro_height, double tolerance);

}  // namespace netlist_text
