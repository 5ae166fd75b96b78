#include "cost/cell_room.hpp"

#include <algorithm>

#include "cost/grid_span.hpp"

namespace placement {
namespace {

// Share of the free room that a flow lets cells fill: OpenROAD's default, and what the flat check spreads them to
// (`DENSITY` in netlist/straps.py).
constexpr double kTargetDensity = 0.7;

// Bins along the sides of the smallest blocks that are held to it (docs/experiments/2026-11-target-density.md), and what
// the area beyond all room counts, where the area beyond that density counts wholly
// (docs/experiments/2026-11-density-weights.md).
constexpr double kLargeBlock = 8;
constexpr double kFullWeight = 0.5;

}  // namespace

CellRoom::CellRoom(const Canvas& bins, double most)
    : per_width_(1.0 / bins.cell_width()),
      per_height_(1.0 / bins.cell_height()),
      scale_(bins.cell_width() * bins.cell_height() * (bins.cell_width() + bins.cell_height()) / 2),
      rounder_(2.0 / kTargetDensity * (most + bins.cells())),
      hard_(bins.cells()),
      areas_(bins.cells()),
      folded_(bins.cells()),
      spread_(bins.cells()) {
  int columns = bins.columns, rows = bins.rows;
  for (double side = 1;; side *= 2) {
    Level& level = levels_.emplace_back(Level{columns, rows, side, {}, {}});
    level.full.spare.resize(static_cast<std::size_t>(columns) * rows);
    if (side >= kLargeBlock) level.spread.spare.resize(level.full.spare.size());
    if (columns == 1 && rows == 1) break;
    columns = (columns + 1) / 2;
    rows = (rows + 1) / 2;
  }
  clear();
}

void CellRoom::clear() {
  std::fill(hard_.begin(), hard_.end(), 0.0);
  for (Level& level : levels_) {
    level.full.clear();
    level.spread.clear();
  }
  std::fill(areas_.begin(), areas_.end(), -1.0);
  change(0, 0, levels_[0].columns, levels_[0].rows, true);
}

void CellRoom::Overfull::clear() {
  std::fill(spare.begin(), spare.end(), 0.0);
  area = 0;
}

void CellRoom::Overfull::add(const double* areas, int first, int stride, int columns, int rows) {
  double rise = 0;
  for (int row = 0; row < rows; ++row) {
    double* line = spare.data() + first + row * stride;
    for (int column = 0; column < columns; ++column, ++areas) {
      rise -= std::max(0.0, line[column]);
      line[column] += *areas;
      rise += std::max(0.0, line[column]);
    }
  }
  area += rise;
}

void CellRoom::add(double x, double y, double width, double height, bool hard, double sign) {
  const GridSpan columns(x, width, per_width_, levels_[0].columns), rows(y, height, per_height_, levels_[0].rows);
  double* added = areas_.data();
  for (int row = rows.first; row <= rows.last; ++row) {
    const double up = rows.share(row);
    for (int column = columns.first; column <= columns.last; ++column) {
      const double area = sign * rounder_(up * columns.share(column));
      if (!hard) {
        *added++ = area;
        continue;
      }
      double& covered = hard_[row * levels_[0].columns + column];
      const double free = std::max(0.0, 1.0 - covered);
      covered += area;
      *added++ = free - std::max(0.0, 1.0 - covered);
    }
  }
  change(columns.first, rows.first, columns.last - columns.first + 1, rows.last - rows.first + 1, hard);
}

// Adds areas_ to the bins of a box, and to the blocks that hold them: each block once, for sums are exact. A macro's
// area in a block is the same when it goes as when it came, so what it takes there spread is, too.
void CellRoom::change(int first_column, int first_row, int columns, int rows, bool hard) {
  if (columns <= 0 || rows <= 0) return;
  for (Level& level : levels_) {
    const int first = first_row * level.columns + first_column, count = columns * rows;
    level.full.add(areas_.data(), first, level.columns, columns, rows);
    if (!level.spread.spare.empty()) {
      if (!hard) {
        std::transform(areas_.begin(), areas_.begin() + count, spread_.begin(),
                       [this](double area) { return rounder_(area / kTargetDensity); });
      }
      level.spread.add((hard ? areas_ : spread_).data(), first, level.columns, columns, rows);
    }
    if (&level == &levels_.back()) return;
    const int next_column = first_column / 2, next_row = first_row / 2;
    const int next_columns = (first_column + columns - 1) / 2 - next_column + 1;
    const int next_rows = (first_row + rows - 1) / 2 - next_row + 1;
    std::fill_n(folded_.begin(), static_cast<std::size_t>(next_columns) * next_rows, 0.0);
    const double* area = areas_.data();
    for (int row = 0; row < rows; ++row) {
      double* folded = folded_.data() + ((first_row + row) / 2 - next_row) * next_columns;
      for (int column = 0; column < columns; ++column) folded[(first_column + column) / 2 - next_column] += *area++;
    }
    areas_.swap(folded_);
    first_column = next_column;
    first_row = next_row;
    columns = next_columns;
    rows = next_rows;
  }
}

double CellRoom::way() const {
  double way = 0;
  for (const Level& level : levels_) way += level.side * (kFullWeight * level.full.area + level.spread.area);
  return way * scale_;
}

}  // namespace placement
