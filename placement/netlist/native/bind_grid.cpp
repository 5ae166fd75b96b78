#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "grid_packing.hpp"

namespace netlist_text {

void bind_grid(nb::module_& m) {
  m.def("empty_share", &empty_share, nb::arg("width"), nb::arg("height"), nb::arg("columns"), nb::arg("rows"),
        nb::arg("macro_width"), nb::arg("macro_height"), nb::arg("tolerance"),
        nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace netlist_text
