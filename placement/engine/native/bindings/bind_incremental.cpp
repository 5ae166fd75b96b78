#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <stdexcept>

#include "bindings/bindings.hpp"
#include "bindings/cost_bindings.hpp"
#include "cost/incremental.hpp"
#include "cost/random_walk.hpp"

namespace nb = nanobind;

namespace placement {
namespace {

using OutputVector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutputOrientations = nb::ndarray<std::int8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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
      .def(
          "__init__",
          [](IncrementalCost* self, std::shared_ptr<const Design> design, Vector x, Vector y, Orientations orientation,
             double wirelength, double density, double congestion, const std::string& name) {
            require_placement(*design, x, y, orientation);
            new (self) IncrementalCost(std::move(design), x.data(), y.data(), orientation.data(),
                                       {wirelength, density, congestion, cost_name(name)});
          },
          nb::arg("design"), nb::arg("x"), nb::arg("y"), nb::arg("orientation"), nb::arg("wirelength"),
          nb::arg("density"), nb::arg("congestion"), nb::arg("name") = "proxy")
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
            return random_walk(self, moves, seed, accept_probability).accepted;
          },
          nb::arg("moves"), nb::arg("seed"), nb::arg("accept_probability"))
      .def(
          "write_placement",
          [](const IncrementalCost& self, OutputVector x, OutputVector y, OutputOrientations orientation) {
            const auto nodes = static_cast<std::size_t>(self.design().nodes());
            if (x.shape(0) != nodes || y.shape(0) != nodes || orientation.shape(0) != nodes) {
              throw nb::value_error("x, y and orientation must have one value per node");
            }
            std::copy(self.x().begin(), self.x().end(), x.data());
            std::copy(self.y().begin(), self.y().end(), y.data());
            std::copy(self.orientation().begin(), self.orientation().end(), orientation.data());
          },
          nb::arg("x"), nb::arg("y"), nb::arg("orientation"));
}

}  // namespace placement
