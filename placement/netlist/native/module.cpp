#include "bindings.hpp"

NB_MODULE(_native, m) {
  m.doc() = "Reading large netlist files. Use it through the typed faces in placement.netlist.formats.";
  nanobind::exception<netlist_text::ParseError>(m, "ParseError", PyExc_ValueError);
  netlist_text::bind_def(m);
  netlist_text::bind_grid(m);
  netlist_text::bind_protobuf(m);
}
