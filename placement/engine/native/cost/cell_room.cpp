#include "cost/cell_room.hpp"

#include <algorithm>

namespace placement {

CellRoom::CellRoom(const Canvas& canvas)
    : columns_(canvas.columns),
      rows_(canvas.rows),
      cell_area_(canvas.cell_width() * canvas.cell_height()),
      side_((canvas.cell_width() + canvas.cell_height()) / 2),
      spare_(canvas.cells()) {}

double CellRoom::way(const std::vector<double>& hard, const std::vector<double>& soft) {
  double* spare = spare_.data();
  double overfull = 0;
  for (int i = 0; i < columns_ * rows_; ++i) {
    spare[i] = soft[i] - std::max(0.0, 1.0 - hard[i]);
    overfull += std::max(0.0, spare[i]);
  }
  double way = overfull;
  int columns = columns_, rows = rows_;
  for (double side = 2; columns > 1 || rows > 1; side *= 2) {
    const int wide = (columns + 1) / 2, tall = (rows + 1) / 2;
    overfull = 0;
    for (int row = 0; row < tall; ++row) {  // in place: a block's place is never after its parts'
      const double* low = spare + 2 * row * columns;
      const double* high = 2 * row + 1 < rows ? low + columns : nullptr;
      for (int column = 0; column < wide; ++column) {
        const int left = 2 * column, right = left + 1;
        double sum = low[left] + (high ? high[left] : 0.0);
        if (right < columns) sum += low[right] + (high ? high[right] : 0.0);
        spare[row * wide + column] = sum;
        overfull += std::max(0.0, sum);
      }
    }
    way += side * overfull;
    columns = wide;
    rows = tall;
  }
  return way * side_ * cell_area_;
}

}  // namespace placement
