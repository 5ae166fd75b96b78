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

nb::dict read_verilog(const nb::bytes& data, const std::vector<std::string>& masters,
                      const std::vector<std::vector<std::string>>& pins, const std::string& top) {
  const std::string_view text(data.c_str(), data.size());
  if (masters.size() != pins.size()) throw nb::value_error("one list of pins per master is needed");
  verilog::FlatNetlist from;
  {
    nb::gil_scoped_release release;
    verilog::Leaves leaves;
    for (std::size_t at = 0; at < masters.size(); ++at) leaves.emplace(masters[at], ports_of(pins[at]));
    from = verilog::flatten(text, verilog::read_modules(text), leaves, top);
  }
  return columns(text, "top", from.top, "names", from.names, "master", from.master, "masters", from.masters,
                 "begin", from.offset, "ports", from.ports, "direction", from.direction, "start", from.start,
                 "component", from.component, "pin", from.pin, "pins", from.pins, "constants", from.constants,
                 "open", from.open, "faults", from.faults, "notices", from.notices);
}

}  // namespace

void bind_verilog(nb::module_& m) { m.def("read_verilog", &read_verilog); }

}  // namespace netlist_text
