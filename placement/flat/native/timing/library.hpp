// The columns of a timing library (`placement.netlist.timing_library`): cells, pins, arcs and their tables. Times in
// ps, loads in fF, full-swing slews in ps.
#pragma once

#include <algorithm>
#include <cstdint>

namespace placement::flat::timing {

enum ArcKind : std::int8_t {
  kCombinational = 0,
  kRisingEdge = 1,
  kFallingEdge = 2,
  kSetupRising = 3,
  kSetupFalling = 4,
  kTransparent = 5,
};

struct Library {
  std::int64_t cells, pins, arcs, tables, count;  // `count`: number of table values
  const std::int32_t* pin_start;  // [cells + 1]
  const std::int32_t* arc_start;  // [cells + 1]
  const std::int8_t* is_latch;    // [cells]
  const std::int8_t* direction;   // [pins]; 1 input, 2 output, 3 both
  const float* rise_capacitance;  // [pins]
  const float* fall_capacitance;
  const float* max_capacitance;   // 0: no limit
  const std::int32_t* arc_from;   // [arcs], pins
  const std::int32_t* arc_to;
  const std::int8_t* arc_kind;
  const std::int8_t* arc_sense;
  const std::int32_t* arc_tables;  // [arcs, 4]; -1: none
  const std::int32_t* rows;        // [tables]
  const std::int32_t* columns;
  const std::int32_t* offset;
  const float* numbers;

  // Bilinear interpolation between the four values around (x, y); extrapolates from the outermost values beyond the
  // table.
  float look_up(std::int32_t table, float x, float y) const {
    const std::int32_t across = columns[table], down = rows[table];
    const float* const xs = numbers + offset[table];
    const float* const ys = xs + down;
    const float* const values = ys + across;
    const std::int32_t row = interval(xs, down, x), column = interval(ys, across, y);
    const float* const at = values + row * across + column;
    const float v = across > 1 ? (y - ys[column]) / (ys[column + 1] - ys[column]) : 0.0F;
    const float low = across > 1 ? at[0] + v * (at[1] - at[0]) : at[0];
    if (down == 1) return low;
    const float u = (x - xs[row]) / (xs[row + 1] - xs[row]);
    const float* const next = at + across;
    const float high = across > 1 ? next[0] + v * (next[1] - next[0]) : next[0];
    return low + u * (high - low);
  }

 private:
  // The interval of increasing values that contains `value`, or the outermost one.
  static std::int32_t interval(const float* values, std::int32_t size, float value) {
    std::int32_t at = 0;
    while (at + 2 < size && value >= values[at + 1]) ++at;
    return at;
  }
};

}  // namespace placement::flat::timing
