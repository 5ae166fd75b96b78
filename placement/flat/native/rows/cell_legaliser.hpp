// Legalisation of cells: from a global placement to sites of rows, without overlap, close to their positions.
//
// Single-row cells follow Abacus (Spindler, Schlichtmann, Johannes, ISPD 2008), which moves the cells of a run together
// so that their displacement is least; before them, multi-row cells are put one by one on the nearest free sites.
#pragma once
#include <cstdint>
#include <vector>

#include "row_area.hpp"

namespace placement::flat::rows {

// A cell to be placed; µm.
struct Cell {
  double x, y;  // lower left corner in the global placement
  double width, height;
};

// Position of a cell: the row of its lower edge, and its lower left corner; row -1: no free sites.
struct Place {
  std::int32_t row = -1;
  double x = 0, y = 0;
};

// Throws nothing; every cell placed in the result lies in `runs` and overlaps no other.
std::vector<Place> legalise(const std::vector<Row>& rows, const Levels& levels, const std::vector<Run>& runs,
                            const std::vector<Cell>& cells);

}  // namespace placement::flat::rows
