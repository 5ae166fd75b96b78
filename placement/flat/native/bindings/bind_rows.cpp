// Python bindings of the row area and the cell legaliser.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "../rows/cell_legaliser.hpp"
#include "../rows/row_area.hpp"
#include "owned.hpp"

namespace nb = nanobind;

namespace placement::flat {
namespace {

using Integers = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Boxes = nb::ndarray<const double, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;
// The rows of a floorplan and the areas that cover them.
struct Floor {
  std::vector<rows::Row> rows;
  std::vector<rows::Box> boxes;
};

Floor floor_of(const Doubles& x, const Doubles& y, const Doubles& height, const Doubles& site, const Integers& sites, const Boxes& boxes) {
  const std::size_t count = x.size();
  if (y.size() != count || height.size() != count || site.size() != count || sites.size() != count) {
    throw std::invalid_argument("rows: every column must have the same length");
  }
  Floor floor;
  for (std::size_t i = 0; i < count; ++i) {
    if (!(height.data()[i] > 0 && site.data()[i] > 0)) throw std::invalid_argument("rows: heights and sites must be above 0");
    floor.rows.push_back({x.data()[i], y.data()[i], height.data()[i], site.data()[i], sites.data()[i]});
  }
  for (std::size_t i = 0; i < boxes.shape(0); ++i) {
    const double* box = boxes.data() + 4 * i;
    floor.boxes.push_back({box[0], box[1], box[2], box[3]});
  }
  return floor;
}

using Columns = std::tuple<Owned<std::int32_t>, Owned<std::int32_t>, Owned<std::int32_t>, Owned<std::int32_t>>;

Columns free_runs(Doubles x, Doubles y, Doubles height, Doubles site, Integers sites, Boxes boxes) {
  const Floor floor = floor_of(x, y, height, site, sites, boxes);
  std::vector<std::int32_t> row, first, count, piece;
  {
    nb::gil_scoped_release release;
    const rows::Levels levels(floor.rows);
    const auto runs = rows::free_runs(floor.rows, levels, floor.boxes);
    piece = rows::pieces(floor.rows, levels, runs);
    for (const rows::Run& run : runs) {
      row.push_back(run.row);
      first.push_back(run.first);
      count.push_back(run.sites);
    }
  }
  return {owned(std::move(row)), owned(std::move(first)), owned(std::move(count)), owned(std::move(piece))};
}

using Places = std::tuple<Owned<std::int32_t>, Owned<double>, Owned<double>>;

Places legalise_cells(Doubles x, Doubles y, Doubles height, Doubles site, Integers sites, Boxes boxes, Doubles cell_x,
                      Doubles cell_y, Doubles cell_width, Doubles cell_height) {
  const Floor floor = floor_of(x, y, height, site, sites, boxes);
  const std::size_t count = cell_x.size();
  if (cell_y.size() != count || cell_width.size() != count || cell_height.size() != count) {
    throw std::invalid_argument("cells: every column must have the same length");
  }
  std::vector<rows::Cell> cells;
  for (std::size_t i = 0; i < count; ++i) {
    cells.push_back({cell_x.data()[i], cell_y.data()[i], cell_width.data()[i], cell_height.data()[i]});
  }
  std::vector<std::int32_t> row;
  std::vector<double> found_x, found_y;
  {
    nb::gil_scoped_release release;
    const rows::Levels levels(floor.rows);
    for (const rows::Place& place : rows::legalise(floor.rows, levels, rows::free_runs(floor.rows, levels, floor.boxes), cells)) {
      row.push_back(place.row);
      found_x.push_back(place.x);
      found_y.push_back(place.y);
    }
  }
  return {owned(std::move(row)), owned(std::move(found_x)), owned(std::move(found_y))};
}

}  // namespace

void bind_rows(nb::module_& m) {
  m.def("free_runs", &free_runs, nb::arg("x"), nb::arg("y"), nb::arg("height"), nb::arg("site"), nb::arg("sites"), nb::arg("boxes"));
  m.def("legalise", &legalise_cells, nb::arg("x"), nb::arg("y"), nb::arg("height"), nb::arg("site"), nb::arg("sites"),
        nb::arg("boxes"), nb::arg("cell_x"), nb::arg("cell_y"), nb::arg("cell_width"), nb::arg("cell_height"));
}

}  // namespace placement::flat
