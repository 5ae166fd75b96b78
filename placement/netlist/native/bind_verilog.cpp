// Structural Verilog, flattened, as columns.
#include <nanobind/stl/vector.h>

#include <charconv>

#include "bindings.hpp"
#include "verilog_flattening.hpp"

namespace netlist_text {
namespace {

// The pins of a master by the name of their bus.
verilog::LeafPorts ports_of(const std::vector<std::string>& pins) {
  verilog::LeafPorts ports;
  for (const std::string& pin : pins) {
    const std::size_t open = pin.rfind('[');
    std::int32_t index = 0;
    const char* last = pin.data() + pin.size() - 1;
    const bool is_bit = open != std::string::npos && open > 0 && pin.back() == ']' &&
                        std::from_chars(pin.data() + open + 1, last, index).ptr == last && index >= 0 && index < 1'000'000;
    if (!is_bit) {
      ports.emplace(pin, verilog::LeafPort{});
      continue;
    }
    const auto [entry, is_new] = ports.emplace(pin.substr(0, open), verilog::LeafPort{true, index, index});
    if (!is_new) {
      entry->second.high = std::max(entry->second.high, index);
      entry->second.low = std::min(entry->second.low, index);
    }
  }
  return ports;
}

nb::list list_of(const std::vector<std::string>& names, std::string_view text) {
  nb::list list;
  for (const std::string& name : names) list.append(string(text, name));
  return list;
}

nb::dict read_verilog(const nb::bytes& data, const std::vector<std::string>& masters,
                      const std::vector<std::vector<std::string>>& pins, const std::string& top) {
  const std::string_view text(data.c_str(), data.size());
  if (masters.size() != pins.size()) throw nb::value_error("one list of pins for each master");
  verilog::FlatNetlist from;
  {
    nb::gil_scoped_release release;
    verilog::Leaves leaves;
    for (std::size_t at = 0; at < masters.size(); ++at) leaves.emplace(masters[at], ports_of(pins[at]));
    from = verilog::flatten(text, verilog::read_modules(text), leaves, top);
  }
  nb::dict to;
  to["top"] = string(text, from.top);
  to["names"] = list_of(from.names, text);
  to["master"] = array(std::move(from.master));
  to["masters"] = list_of(from.masters, text);
  to["begin"] = array(std::move(from.offset));
  to["ports"] = list_of(from.ports, text);
  to["direction"] = array(std::move(from.direction));
  to["start"] = array(std::move(from.start));
  to["component"] = array(std::move(from.component));
  to["pin"] = array(std::move(from.pin));
  to["pins"] = list_of(from.pins, text);
  to["constants"] = from.constants;
  to["open"] = from.open;
  to["faults"] = findings(text, from.faults);
  to["notices"] = findings(text, from.notices);
  return to;
}

}  // namespace

void bind_verilog(nb::module_& m) { m.def("read_verilog", &read_verilog); }

}  // namespace netlist_text
