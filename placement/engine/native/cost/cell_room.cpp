#include "cost/cell_room.hpp"

#include <algorithm>

#include "cost/grid_span.hpp"

namespace placement {

CellRoom::CellRoom(const Canvas& bins, double most)
    : per_width_(1.0 / bins.cell_width()),
      per_height_(1.0 / bins.cell_height()),
      scale_(bins.cell_width() * bins.cell_height() * (bins.cell_width() + bins.cell_height()) / 2),
      rounder_(2.0 * (most + bins.cells())),
      hard_(bins.cells()) {
  int columns = bins.columns, rows = bins.rows;
  for (double side = 1;; side *= 2) {
    levels_.push_back({columns, rows, side, 0.0, std::vector<double>(static_cast<std::size_t>(columns) * rows)});
    if (columns == 1 && rows == 1) break;
    columns = (columns + 1) / 2;
    rows = (rows + 1) / 2;
  }
  clear();
}

void CellRoom::clear() {
  std::fill(hard_.begin(), hard_.end(), 0.0);
  for (Level& level : levels_) {
    std::fill(level.spare.begin(), level.spare.end(), 0.0);
    level.overfull = 0;
  }
  for (int row = 0; row < levels_[0].rows; ++row) {
    for (int column = 0; column < levels_[0].columns; ++column) change(column, row, -1.0);
  }
}

void CellRoom::add(double x, double y, double width, double height, bool hard, double sign) {
  const GridSpan columns(x, width, per_width_, levels_[0].columns), rows(y, height, per_height_, levels_[0].rows);
  for (int row = rows.first; row <= rows.last; ++row) {
    const double up = rows.share(row);
    for (int column = columns.first; column <= columns.last; ++column) {
      const double area = sign * rounder_(up * columns.share(column));
      if (!hard) {
        change(column, row, area);
        continue;
      }
      double& covered = hard_[row * levels_[0].columns + column];
      const double free = std::max(0.0, 1.0 - covered);
      covered += area;
      change(column, row, free - std::max(0.0, 1.0 - covered));
    }
  }
}

void CellRoom::change(int column, int row, double area) {
  for (Level& level : levels_) {
    double& spare = level.spare[row * level.columns + column];
    level.overfull -= std::max(0.0, spare);
    spare += area;
    level.overfull += std::max(0.0, spare);
    column >>= 1;
    row >>= 1;
  }
}

double CellRoom::way() const {
  double way = 0;
  for (const Level& level : levels_) way += level.side * level.overfull;
  return way * scale_;
}

}  // namespace placement
