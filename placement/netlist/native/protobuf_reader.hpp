// Reads a netlist in Circuit Training's text-format protobuf, as its tools write it, into columns.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text.hpp"

namespace netlist_text {

// One entry per node but `__metadata__`, in file order; numbers that are not given are NaN.
struct ProtobufContents {
  std::vector<std::string_view> name;
  std::vector<std::int8_t> type;  // -1: none, 0: macro, 1: macro pin, 2: port, 3: standard cell
  std::vector<double> width, height, x, y, x_offset, y_offset, weight;
  std::vector<std::int8_t> orientation;  // -1: none, -2: unknown
  std::vector<std::int32_t> macro;       // the node that `macro_name` means; -1: none, -2: it does not exist
  std::vector<std::int32_t> master;      // the place of `ref_name` in `masters`; -1: none
  std::vector<std::string_view> masters;
  std::vector<std::int32_t> start;  // node n drives sinks [start[n], start[n+1])
  std::vector<std::int32_t> sinks;  // node indices
  std::vector<std::int64_t> begin;  // where each node begins in the text
  std::vector<Findings> findings;
};

// False where the text has anything that the tools do not write (escapes, lists, other quotes, repeated fields, …) or
// is wrong: the full grammar in protobuf_text.py then reads it. `text` must outlive the result.
bool read_plain_protobuf(std::string_view text, ProtobufContents& out);

}  // namespace netlist_text
