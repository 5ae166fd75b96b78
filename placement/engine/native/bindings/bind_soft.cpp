#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "bindings/bindings.hpp"
#include "bindings/cost_bindings.hpp"
#include "search/annealed_soft.hpp"

namespace nb = nanobind;

namespace placement {
namespace {

// A placer with the design it was made for, so that array lengths can be checked.
class CheckedSoftPlacer {
 public:
  CheckedSoftPlacer(const std::string& name, std::shared_ptr<const Design> design, const Weights& weights)
      : design_(design), placer_(make_soft_placer(name, std::move(design), weights)) {}

  void place(double* x, double* y, const std::int8_t* orientation, std::size_t nodes) {
    if (nodes != static_cast<std::size_t>(design_->nodes())) {
      throw std::invalid_argument("place: arrays of " + std::to_string(nodes) + " nodes for a design of " +
                                  std::to_string(design_->nodes()));
    }
    placer_->place(x, y, orientation);
  }

 private:
  std::shared_ptr<const Design> design_;
  std::unique_ptr<SoftPlacer> placer_;
};

}  // namespace

void bind_soft(nb::module_& m) {
  m.def("soft_placer_names", &soft_placer_names);
  nb::class_<CheckedSoftPlacer>(m, "SoftPlacer",
                                "Places the soft macros of one design; one instance per thread (it owns workspace).")
      .def(
          "__init__",
          [](CheckedSoftPlacer* self, const std::string& name, std::shared_ptr<Design> design,
             const BoundWeights& weights) {
            new (self) CheckedSoftPlacer(name, std::move(design), as_weights(weights));
          },
          nb::arg("name"), nb::arg("design"), nb::arg("weights") = BoundWeights(1, 0.5, 0.5, "proxy", 0.0))
      .def(
          "place",
          [](CheckedSoftPlacer& self, OutputVector<double> x, OutputVector<double> y, InputVector<std::int8_t> orientation) {
            const std::size_t nodes = x.shape(0);
            if (y.shape(0) != nodes || orientation.shape(0) != nodes) {
              throw std::invalid_argument("place: x, y and orientation must have one value per node each");
            }
            double* x_data = x.data();
            double* y_data = y.data();
            const std::int8_t* orientation_data = orientation.data();
            nb::gil_scoped_release release;
            self.place(x_data, y_data, orientation_data, nodes);
          },
          nb::arg("x"), nb::arg("y"), nb::arg("orientation"));
}

}  // namespace placement
