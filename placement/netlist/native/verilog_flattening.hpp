// Flattening of a hierarchy of modules: its leaves as components, the nets between their pins, and the top's ports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text.hpp"
#include "verilog_reader.hpp"

namespace netlist_text::verilog {

// The pins of a master by the name of their bus: `A`, or the highest and lowest index of `D[…]`.
struct LeafPort {
  bool is_bus = false;
  std::int32_t high = 0, low = 0;
};
using LeafPorts = std::unordered_map<std::string, LeafPort>;
using Leaves = std::unordered_map<std::string_view, LeafPorts>;

struct FlatNetlist {
  std::string_view top;
  std::vector<std::string> names;      // of components, without backslashes, `/` between levels
  std::vector<std::int32_t> master;    // index in `masters` of each component
  std::vector<std::string> masters;
  std::vector<std::int64_t> offset;    // offset in the text of each component
  std::vector<std::string> ports;      // bits of the top's ports: `clk`, `data[3]`
  std::vector<std::int8_t> direction;  // of each port
  // Net n has the connections start[n] to start[n+1]; component -1: `pin` is a port, else an index in `pins`.
  std::vector<std::int32_t> start, component, pin;
  std::vector<std::string> pins;
  std::int64_t constants = 0, open = 0;  // numbers of leaf pins that are tied to a constant, and that are unconnected
  std::vector<Findings> faults, notices;
};

// Masters in `leaves` are leaves, even if the text has a module of their name, which then defines the order of their
// ports. `top` is the root module; "": the only one that no other instantiates. Throws ParseError.
FlatNetlist flatten(std::string_view text, const std::vector<Module>& modules, const Leaves& leaves, std::string_view top);

}  // namespace netlist_text::verilog
