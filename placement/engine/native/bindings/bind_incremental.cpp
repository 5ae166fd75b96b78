#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <string>

#include "bindings/bindings.hpp"
#include "bindings/cost_bindings.hpp"
#include "cost/incremental.hpp"

namespace nb = nanobind;

namespace placement {
namespace {

void require_macro(const IncrementalCost& cost, int node) {
  const Design& design = cost.design();
  if (node < 0 || node >= design.nodes()) throw nb::index_error("no such node");
  const Kind kind = design.kind_of(node);
  if (kind != Kind::hard && kind != Kind::soft) throw nb::value_error("the node is no macro");
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
  if (first == second) throw nb::value_error("a macro cannot change places with itself");
  NodeMove moves[2] = {self.at(first), self.at(second)};
  std::swap(moves[0].x, moves[1].x);
  std::swap(moves[0].y, moves[1].y);
  return as_tuple(self.propose(moves, 2));
}

}  // namespace

void bind_incremental(nb::module_& m) {
  nb::class_<IncrementalCost>(m, "IncrementalCost", "The exact cost while macros move; one per thread.")
      .def(nb::new_([](std::shared_ptr<const Design> design, Vector x, Vector y, Orientations orientation,
                       const BoundWeights& weights) {
             require_placement(*design, x, y, orientation);
             return make_incremental_cost(std::move(design), x.data(), y.data(), orientation.data(), as_weights(weights));
           }),
           nb::arg("design"), nb::arg("x"), nb::arg("y"), nb::arg("orientation"), nb::arg("weights"))
      .def("costs", [](const IncrementalCost& self) { return as_tuple(self.costs()); })
      .def("at",
           [](const IncrementalCost& self, int node) {
             require_macro(self, node);
             const NodeMove at = self.at(node);
             return std::make_tuple(at.node, at.x, at.y, static_cast<int>(at.orientation));
           })
      .def("move", &move, nb::arg("node"), nb::arg("x"), nb::arg("y"), nb::arg("orientation"))
      .def("swap", &swap, nb::arg("first"), nb::arg("second"))
      .def("undo", &IncrementalCost::undo)
      .def("accept", &IncrementalCost::accept)
      .def_prop_ro("pending", &IncrementalCost::pending)
      .def(
          "random_walk",
          [](IncrementalCost& self, std::int64_t moves, std::uint64_t seed, double accept_probability) {
            nb::gil_scoped_release unlocked;
            return random_walk(self, moves, seed, accept_probability);
          },
          nb::arg("moves"), nb::arg("seed"), nb::arg("accept_probability"))
      .def(
          "write_placement",
          [](const IncrementalCost& self, OutputVector<double> x, OutputVector<double> y,
             OutputVector<std::int8_t> orientation) {
            write_placement(self.x(), self.y(), self.orientation(), x, y, orientation);
          },
          nb::arg("x"), nb::arg("y"), nb::arg("orientation"));
}

}  // namespace placement
