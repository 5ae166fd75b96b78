#include "bindings.hpp"
#include "chip_constants.hpp"

NB_MODULE(_native, m) {
  m.doc() = "Reading large netlist files. Use it through the typed faces in placement.netlist.formats.";
  nanobind::exception<netlist_text::ParseError>(m, "ParseError", PyExc_ValueError);
  m.attr("DENSITY") = placement::kTargetDensity;
  m.attr("CELL_SHARE") = placement::kCellShare;
  netlist_text::bind_def(m);
  netlist_text::bind_grid(m);
  netlist_text::bind_protobuf(m);
}
