// Timing of a Liberty library as columns.
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "liberty_reader.hpp"

namespace netlist_text {
namespace {

nb::dict read_liberty(const nb::bytes& data) {
  const std::string_view text(data.c_str(), data.size());
  liberty::Library from;
  {
    nb::gil_scoped_release release;
    from = liberty::read_library(text);
  }
  return columns(text, "name", from.name, "cells", from.cells, "pin_start", from.pin_start, "arc_start", from.arc_start,
                 "is_latch", from.is_latch, "pins", from.pins, "direction", from.direction, "is_clock", from.is_clock,
                 "rise_capacitance", from.rise_capacitance, "fall_capacitance", from.fall_capacitance,
                 "max_capacitance", from.max_capacitance, "arc_from", from.arc_from, "arc_to", from.arc_to,
                 "arc_kind", from.arc_kind, "arc_sense", from.arc_sense, "arc_tables", from.arc_tables,
                 "rows", from.rows, "columns", from.columns, "offset", from.offset, "numbers", from.numbers,
                 "time_unit", from.time_unit, "slew_factor", from.slew_factor, "capacitance_unit", from.capacitance_unit, "notices", from.notices);
}

}  // namespace

void bind_liberty(nb::module_& m) { m.def("read_liberty", &read_liberty, nb::arg("data")); }

}  // namespace netlist_text
