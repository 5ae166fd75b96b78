#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "chip_constants.hpp"
#include "grid_packing.hpp"

namespace nb = nanobind;

NB_MODULE(_native, m) {
  m.doc() = "Reading large netlist files. Use it through the typed faces in placement.netlist.formats.";
  nb::exception<netlist_text::ParseError>(m, "ParseError", PyExc_ValueError);
  m.attr("DENSITY") = placement::kTargetDensity;
  m.attr("CELL_SHARE") = placement::kCellShare;
  netlist_text::bind_def(m);
  m.def("empty_share", &netlist_text::empty_share, nb::arg("width"), nb::arg("height"), nb::arg("columns"), nb::arg("rows"),
        nb::arg("macro_width"), nb::arg("macro_height"), nb::arg("tolerance"),
        nb::call_guard<nb::gil_scoped_release>());
  netlist_text::bind_protobuf(m);
}
