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
  nb::dict to;
  to["names"] = strings(text, from.name);
  to["type"] = array(std::move(from.type));
  to["width"] = array(std::move(from.width));
  to["height"] = array(std::move(from.height));
  to["x"] = array(std::move(from.x));
  to["y"] = array(std::move(from.y));
  to["x_offset"] = array(std::move(from.x_offset));
  to["y_offset"] = array(std::move(from.y_offset));
  to["weight"] = array(std::move(from.weight));
  to["orientation"] = array(std::move(from.orientation));
  to["macro"] = array(std::move(from.macro));
  to["master"] = array(std::move(from.master));
  to["masters"] = strings(text, from.masters);
  to["start"] = array(std::move(from.start));
  to["sinks"] = array(std::move(from.sinks));
  to["begin"] = array(std::move(from.begin));
  to["findings"] = findings(text, from.findings);
  return to;
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
