#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "chip_constants.hpp"
#include "grid_packing.hpp"

namespace nb = nanobind;
using namespace nb::literals;

NB_MODULE(_native, m) {
  m.doc() = "Reading large netlist files. Use it through the typed faces in placement.netlist.formats.";
  nb::exception<netlist_text::ParseError>(m, "ParseError", PyExc_ValueError);
  m.attr("DENSITY") = placement::kTargetDensity;
  m.attr("CELL_SHARE") = placement::kCellShare;
  netlist_text::bind_def(m);
  m.def("empty_share", &netlist_text::empty_share, "width"_a, "height"_a, "columns"_a, "rows"_a,
        "macro_width"_a, "macro_height"_a, "tolerance"_a, nb::call_guard<nb::gil_scoped_release>());
  netlist_text::bind_protobuf(m);
}
