#include "cost/net_points.hpp"

namespace placement {

PointPlacer::PointPlacer(const Design& design, const CompactNets& nets)
    : turned_(design.nodes()),
      start_(nets.point_start),
      columns_(design.canvas.columns),
      rows_(design.canvas.rows),
      cell_size_{design.canvas.cell_width(), design.canvas.cell_height()},
      last_cell_{static_cast<double>(columns_ - 1), static_cast<double>(rows_ - 1)} {
  // Soft macros keep their pins as they are; ports and standard cells are points.
  for (int node = 0; node < design.nodes(); ++node) turned_[node] = design.kind_of(node) == Kind::hard;
  for (int point = 0; point < nets.points(); ++point) {
    const double dx = nets.point_dx[point], dy = nets.point_dy[point];
    offsets_.insert(offsets_.end(), {dx, dy});
    swapped_offsets_.insert(swapped_offsets_.end(), {dy, dx});
  }
}

}  // namespace placement
