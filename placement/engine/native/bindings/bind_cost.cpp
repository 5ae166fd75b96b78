#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "cost/cost.hpp"
#include "bindings/cost_bindings.hpp"
#include "cost/legality.hpp"

namespace nb = nanobind;

namespace placement {
namespace {

using OutputMap = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

}  // namespace

void bind_cost(nb::module_& m) {
  m.attr("LENGTH_TOLERANCE") = kLengthTolerance;
  m.attr("USABLE_TRACKS") = kUsableTracks;
  nb::class_<CostEvaluator>(m, "CostEvaluator", "The exact proxy and chip cost; one per thread.")
      .def(nb::init<std::shared_ptr<const Design>>(), nb::arg("design"))
      .def(
          "evaluate",
          [](CostEvaluator& self, Vector x, Vector y, Orientations orientation, const BoundWeights& weights) {
            require_placement(self.design(), x, y, orientation);
            const Weights chosen = as_weights(weights);
            nb::gil_scoped_release unlocked;
            return as_tuple(self.evaluate(x.data(), y.data(), orientation.data(), chosen));
          },
          nb::arg("x"), nb::arg("y"), nb::arg("orientation"), nb::arg("weights"))
      .def(
          "write_maps",
          [](const CostEvaluator& self, OutputMap density, OutputMap horizontal, OutputMap vertical) {
            const Canvas& canvas = self.design().canvas;
            for (const OutputMap* map : {&density, &horizontal, &vertical}) {
              if (map->shape(0) != static_cast<std::size_t>(canvas.rows) ||
                  map->shape(1) != static_cast<std::size_t>(canvas.columns)) {
                throw nb::value_error("a map must have the shape [rows, columns]");
              }
            }
            std::copy(self.density_map().begin(), self.density_map().end(), density.data());
            std::copy(self.vertical_map(), self.vertical_map() + canvas.cells(), vertical.data());
            for (int cell = 0; cell < canvas.cells(); ++cell) {
              const int row = cell / canvas.columns, column = cell % canvas.columns;
              horizontal.data()[cell] = self.horizontal_map()[column * canvas.rows + row];
            }
          },
          nb::arg("density"), nb::arg("horizontal"), nb::arg("vertical"))
      .def(
          "chip_overflow",
          [](const CostEvaluator& self) {
            if (self.chip() == nullptr) throw nb::value_error("the chip cost must be evaluated first");
            const Canvas& canvas = self.design().canvas;
            const CellOverflow& cells = self.chip()->overflow();
            std::vector<double> horizontal(canvas.cells()), vertical(canvas.cells());
            self.chip()->wires().write_beyond(horizontal.data(), vertical.data());
            return std::make_tuple(grid_copy(cells.spare(), cells.rows(), cells.columns()),
                                   grid_copy(horizontal, canvas.columns, canvas.rows),
                                   grid_copy(vertical, canvas.rows, canvas.columns));
          },
          "Of the last evaluation of the chip cost: cells less whitespace of each bin [rows, columns], over its area, and µm of "
          "wire less usable tracks of each gcell, horizontal [C, R] and vertical [R, C].");

  m.def(
      "check_legality",
      [](std::shared_ptr<const Design> design, Vector x, Vector y, Orientations orientation) {
        require_placement(*design, x, y, orientation);
        const Legality result = check_legality(*design, x.data(), y.data(), orientation.data());
        return std::make_tuple(result.overlaps, result.outside);
      },
      nb::arg("design"), nb::arg("x"), nb::arg("y"), nb::arg("orientation"));
  m.def(
      "check_constraints",
      [](std::shared_ptr<const Design> design, Vector x, Vector y, Orientations orientation) {
        require_placement(*design, x, y, orientation);
        const Violations result = check_constraints(*design, x.data(), y.data(), orientation.data());
        return std::make_tuple(result.halos, result.blockages, result.regions, result.orientations, result.grid,
                               result.port_keepout);
      },
      nb::arg("design"), nb::arg("x"), nb::arg("y"), nb::arg("orientation"));
}

}  // namespace placement
