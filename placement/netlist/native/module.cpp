#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "chip_constants.hpp"
#include "grid_packing.hpp"
#include "protobuf_reader.hpp"

using namespace nanobind::literals;

namespace netlist_text {
namespace {

// Returns None if the text is not plain.
nb::object read_protobuf(const nb::bytes& data) {
  const std::string_view text(data.c_str(), data.size());
  ProtobufContents from;
  bool is_plain = false;
  {
    nb::gil_scoped_release release;
    is_plain = read_plain_protobuf(text, from);
  }
  if (!is_plain) return nb::none();
  return columns(text, "names", from.name, "type", from.type, "width", from.width, "height", from.height, "x", from.x,
                 "y", from.y, "x_offset", from.x_offset, "y_offset", from.y_offset, "weight", from.weight,
                 "orientation", from.orientation, "macro", from.macro, "master", from.master, "masters", from.masters,
                 "start", from.start, "sinks", from.sinks, "begin", from.begin, "findings", from.findings);
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Reading large netlist files. Use it through the typed faces in placement.netlist.formats.";
  nb::exception<ParseError>(m, "ParseError", PyExc_ValueError);
  m.attr("DENSITY") = placement::kTargetDensity;
  m.attr("CELL_SHARE") = placement::kCellShare;
  bind_def(m);
  bind_liberty(m);
  bind_verilog(m);
  m.def("empty_share", &empty_share, "width"_a, "height"_a, "columns"_a, "rows"_a, "macro_width"_a,
        "macro_height"_a, "tolerance"_a, nb::call_guard<nb::gil_scoped_release>());
  m.def("read_plain_protobuf", &read_protobuf, "data"_a);
}

}  // namespace netlist_text
