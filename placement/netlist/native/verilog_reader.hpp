// Reader of structural Verilog, hierarchical or flat, into modules with numbered bits.
//
// Supported are module headers of both styles, declarations of nets and ports, `assign` of nets and constants, and
// instances with connections by name or by order. Parameters and `specify` blocks are skipped. Anything else (`always`,
// operators, generate blocks) is an error that names the line: a netlist after synthesis has none of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text.hpp"

namespace netlist_text::verilog {

// A bit of an expression: the index of a bit of its module, or one of these.
enum Constant : std::int32_t { kZero = -1, kOne = -2, kOpen = -3 };

enum class Direction : std::int8_t { kNone = 0, kInput = 1, kOutput = 2, kInout = 3 };

// A net or bus; bit `right` is `first`, and those towards `left` follow.
struct Signal {
  std::string_view name;
  std::int32_t first = 0;
  std::int32_t left = 0, right = 0;
  bool is_bus = false;
  Direction direction = Direction::kNone;

  std::int32_t width() const { return (left < right ? right - left : left - right) + 1; }
  // The bus index of the bit `first + offset`.
  std::int32_t index(std::int32_t offset) const { return left < right ? right - offset : right + offset; }
};

// `bits[begin:end]` of its module, most significant first, at a port; the name is empty for ports by order.
struct Connection {
  std::string_view port;
  std::int64_t begin = 0, end = 0;
};

struct Instance {
  std::string_view master, name;
  std::size_t first = 0, last = 0;  // connections[first:last] of its module
  std::int64_t offset = 0;          // in the text
};

struct Module {
  std::string_view name;
  std::int64_t offset = 0;
  std::vector<std::string_view> ports;  // in the header's order
  std::vector<Signal> signals;
  std::unordered_map<std::string_view, std::int32_t> signal_of;
  std::int32_t num_bits = 0;
  std::vector<Instance> instances;
  std::vector<Connection> connections;
  std::vector<std::int32_t> bits;
  std::vector<std::pair<std::int32_t, std::int32_t>> assigned;  // pairs of bits that are one net

  const Signal* find(std::string_view signal) const {
    const auto found = signal_of.find(signal);
    return found == signal_of.end() ? nullptr : &signals[static_cast<std::size_t>(found->second)];
  }
};

// The modules of a text, in its order. `text` must outlive them; throws ParseError with a line.
std::vector<Module> read_modules(std::string_view text);

}  // namespace netlist_text::verilog
