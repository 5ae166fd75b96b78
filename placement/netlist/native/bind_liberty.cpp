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
  nb::dict to;
  const auto list = [&](const std::vector<std::string>& names) {
    nb::list made;
    for (const std::string& name : names) made.append(string(text, name));
    return made;
  };
  to["name"] = string(text, from.name);
  to["cells"] = list(from.cells);
  to["pin_start"] = array(std::move(from.pin_start));
  to["arc_start"] = array(std::move(from.arc_start));
  to["is_latch"] = array(std::move(from.is_latch));
  to["pins"] = list(from.pins);
  to["direction"] = array(std::move(from.direction));
  to["is_clock"] = array(std::move(from.is_clock));
  to["rise_capacitance"] = array(std::move(from.rise_capacitance));
  to["fall_capacitance"] = array(std::move(from.fall_capacitance));
  to["max_capacitance"] = array(std::move(from.max_capacitance));
  to["arc_from"] = array(std::move(from.arc_from));
  to["arc_to"] = array(std::move(from.arc_to));
  to["arc_kind"] = array(std::move(from.arc_kind));
  to["arc_sense"] = array(std::move(from.arc_sense));
  to["arc_tables"] = array(std::move(from.arc_tables));
  to["rows"] = array(std::move(from.rows));
  to["columns"] = array(std::move(from.columns));
  to["offset"] = array(std::move(from.offset));
  to["numbers"] = array(std::move(from.numbers));
  to["time_unit"] = from.time_unit;
  to["capacitance_unit"] = from.capacitance_unit;
  to["notices"] = findings(text, from.notices);
  return to;
}

}  // namespace

void bind_liberty(nb::module_& m) { m.def("read_liberty", &read_liberty, nb::arg("data")); }

}  // namespace netlist_text
