#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/cost_bindings.hpp"
#include "cost/cost.hpp"
#include "cost/incremental.hpp"
#include "cost/legality.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace placement {
namespace {

void require_macro(const IncrementalCost& cost, int node) {
  const Design& design = cost.design();
  if (node < 0 || node >= design.nodes()) throw nb::index_error("the node's index is out of range");
  const Kind kind = design.kind_of(node);
  if (kind != Kind::hard && kind != Kind::soft) throw nb::value_error("the node is not a macro");
}

CostTuple move(IncrementalCost& self, int node, double x, double y, int orientation) {
  require_macro(self, node);
  if (!std::isfinite(x) || !std::isfinite(y)) throw nb::value_error("every coordinate must be finite");
  if (orientation < 0 || orientation > 7) throw nb::value_error("the orientation must be in [0, 8)");
  const NodeMove moved{node, x, y, static_cast<std::int8_t>(orientation)};
  return as_tuple(self.propose(&moved, 1));
}

CostTuple swap(IncrementalCost& self, int first, int second) {
  require_macro(self, first);
  require_macro(self, second);
  if (first == second) throw nb::value_error("a macro cannot be swapped with itself");
  NodeMove moves[2] = {self.at(first), self.at(second)};
  std::swap(moves[0].x, moves[1].x);
  std::swap(moves[0].y, moves[1].y);
  return as_tuple(self.propose(moves, 2));
}

}  // namespace

void bind_cost(nb::module_& m) {
  m.attr("LENGTH_TOLERANCE") = kLengthTolerance;
  m.attr("USABLE_TRACKS") = kUsableTracks;
  nb::class_<CostEvaluator>(m, "CostEvaluator", "The exact proxy and chip cost; one per thread.")
      .def(nb::init<std::shared_ptr<const Design>>(), "design"_a)
      .def(
          "evaluate",
          [](CostEvaluator& self, Vector x, Vector y, Orientations orientation, const BoundWeights& weights) {
            require_placement(self.design(), x, y, orientation);
            const Weights chosen = as_weights(weights);
            nb::gil_scoped_release unlocked;
            return as_tuple(self.evaluate(x.data(), y.data(), orientation.data(), chosen));
          },
          "x"_a, "y"_a, "orientation"_a, "weights"_a)
      .def(
          "write_maps",
          [](const CostEvaluator& self, OutputMap<double> density, OutputMap<double> horizontal,
             OutputMap<double> vertical) {
            const Canvas& canvas = self.design().canvas;
            for (const auto* map : {&density, &horizontal, &vertical}) require_shape(*map, canvas);
            std::copy(self.density_map().begin(), self.density_map().end(), density.data());
            std::copy(self.vertical_map(), self.vertical_map() + canvas.cells(), vertical.data());
            for (int cell = 0; cell < canvas.cells(); ++cell) {
              const int row = cell / canvas.columns, column = cell % canvas.columns;
              horizontal.data()[cell] = self.horizontal_map()[column * canvas.rows + row];
            }
          },
          "density"_a, "horizontal"_a, "vertical"_a)
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
      "design"_a, "x"_a, "y"_a, "orientation"_a);
  m.def(
      "tidiness",
      [](std::shared_ptr<const Design> design, Vector x, Vector y, Orientations orientation) {
        require_placement(*design, x, y, orientation);
        Tidiness tidiness(*design);
        for (int node = 0; node < design->nodes(); ++node) {
          tidiness.add(node, x.data()[node], y.data()[node], orientation.data()[node]);
        }
        const TidinessCounts counts = tidiness.counts();
        const Sides largest = tidiness.largest_empty();
        return std::make_tuple(tidiness.cost(), tidiness.channel(), counts.macros, counts.aligned, counts.banked,
                               counts.grouped, counts.alike, counts.turned, counts.sided, counts.facing,
                               counts.corners, std::make_tuple(largest.left, largest.low, largest.right, largest.high));
      },
      nb::arg("design"), nb::arg("x"), nb::arg("y"), nb::arg("orientation"));
  m.def(
      "check_constraints",
      [](std::shared_ptr<const Design> design, Vector x, Vector y, Orientations orientation) {
        require_placement(*design, x, y, orientation);
        const Violations result = check_constraints(*design, x.data(), y.data(), orientation.data());
        return std::make_tuple(result.halos, result.blockages, result.regions, result.orientations, result.grid,
                               result.port_keepout, result.channels);
      },
      "design"_a, "x"_a, "y"_a, "orientation"_a);

  nb::class_<IncrementalCost>(m, "IncrementalCost", "The exact cost while macros move; one per thread.")
      .def(nb::new_([](std::shared_ptr<const Design> design, Vector x, Vector y, Orientations orientation,
                       const BoundWeights& weights) {
             require_placement(*design, x, y, orientation);
             return make_incremental_cost(std::move(design), x.data(), y.data(), orientation.data(), as_weights(weights));
           }),
           "design"_a, "x"_a, "y"_a, "orientation"_a, "weights"_a)
      .def("costs", [](const IncrementalCost& self) { return as_tuple(self.costs()); })
      .def("at",
           [](const IncrementalCost& self, int node) {
             require_macro(self, node);
             const NodeMove at = self.at(node);
             return std::make_tuple(at.node, at.x, at.y, static_cast<int>(at.orientation));
           })
      .def("move", &move, "node"_a, "x"_a, "y"_a, "orientation"_a)
      .def("swap", &swap, "first"_a, "second"_a)
      .def("undo", &IncrementalCost::undo)
      .def("accept", &IncrementalCost::accept)
      .def_prop_ro("pending", &IncrementalCost::pending)
      .def(
          "random_walk",
          [](IncrementalCost& self, std::int64_t moves, std::uint64_t seed, double accept_probability) {
            nb::gil_scoped_release unlocked;
            return random_walk(self, moves, seed, accept_probability);
          },
          "moves"_a, "seed"_a, "accept_probability"_a)
      .def(
          "write_placement",
          [](const IncrementalCost& self, OutputVector<double> x, OutputVector<double> y,
             OutputVector<std::int8_t> orientation) {
            write_placement(self.x(), self.y(), self.orientation(), x, y, orientation);
          },
          "x"_a, "y"_a, "orientation"_a);
}

}  // namespace placement
