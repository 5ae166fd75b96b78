// Reader of the timing of a Liberty library (NLDM): cells, pins with their capacitance, timing arcs and their tables.
//
// Units are converted: times to ps, capacitances to fF, slews to the full swing (0 to 100%), so that libraries with
// other thresholds are comparable. Arcs of one pair of pins that differ only in their condition (`when`) are merged:
// the slowest at every point of the table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text.hpp"

namespace netlist_text::liberty {

enum class ArcKind : std::int8_t {
  kCombinational = 0,
  kRisingEdge = 1,   // from a clock's rising edge to a register's output
  kFallingEdge = 2,
  kSetupRising = 3,  // `from` is the clock, `to` the data; the tables are limits
  kSetupFalling = 4,
  kTransparent = 5,  // from the data of a latch to its output
};

// Columns of a library. Pins of cell c are pin_start[c] to pin_start[c+1]; arcs likewise. Bits of buses are pins.
struct Library {
  std::string name;
  std::vector<std::string> cells;
  std::vector<std::int32_t> pin_start{0}, arc_start{0};
  std::vector<std::int8_t> is_latch;  // of each cell

  std::vector<std::string> pins;
  std::vector<std::int8_t> direction;  // 1 input, 2 output, 3 inout, 0 internal
  std::vector<std::int8_t> is_clock;
  std::vector<float> rise_capacitance, fall_capacitance, max_capacitance;  // fF; no limit: 0

  std::vector<std::int32_t> arc_from, arc_to;  // pins
  std::vector<std::int8_t> arc_kind, arc_sense;  // sense: 1 positive, -1 negative, 0 both
  std::vector<std::int32_t> arc_tables;  // four per arc: delay rise, fall, slew rise, fall; of a check limit rise, fall

  // Table t has rows[t] slews (of the source, or of the clock), columns[t] loads (or slews of the data), and its
  // numbers at `offset[t]` in `numbers`: rows, columns, then values row by row.
  std::vector<std::int32_t> rows, columns, offset;
  std::vector<float> numbers;

  double time_unit = 0, capacitance_unit = 0;  // ps and fF
  double slew_factor = 1;                      // factor from the file's slews to full-swing slews
  std::vector<Findings> notices;
};

// Throws ParseError with a line.
Library read_library(std::string_view text);

}  // namespace netlist_text::liberty
