// Reader of a netlist in Circuit Training's text-format protobuf, as written by its tools, into columns.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text.hpp"

namespace netlist_text {

// One entry per node except `__metadata__`, in file order; missing numbers are NaN.
struct ProtobufContents {
  std::vector<std::string_view> name;
  std::vector<std::int8_t> type;  // -1: none, 0: macro, 1: macro pin, 2: port, 3: standard cell
  std::vector<double> width, height, x, y, x_offset, y_offset, weight;
  std::vector<std::int8_t> orientation;  // -1: none, -2: unknown
  std::vector<std::int32_t> macro;       // the node of `macro_name`; -1: none, -2: it does not exist
  std::vector<std::int32_t> master;      // index of `ref_name` in `masters`; -1: none
  std::vector<std::string_view> masters;
  std::vector<std::int32_t> start;  // node n drives sinks [start[n], start[n+1])
  std::vector<std::int32_t> sinks;  // node indices
  std::vector<std::int64_t> begin;  // offset of each node in the text
  std::vector<Findings> findings;
};

// Returns false if the text is invalid or has anything that the tools do not write (escapes, lists, other quotes,
// repeated fields, …): the full grammar in protobuf_text.py then reads it. `text` must outlive the result.
bool read_plain_protobuf(std::string_view text, ProtobufContents& out);

}  // namespace netlist_text
