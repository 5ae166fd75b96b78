// The content of a DEF file as columns. Names are views into the file's text; lengths are database units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text.hpp"

namespace netlist_text {

using Names = std::vector<std::string_view>;
using Numbers = std::vector<std::int32_t>;
using Codes = std::vector<std::int8_t>;
using Offsets = std::vector<std::int64_t>;

// Recurring words (masters, pins of masters, layers), each stored once.
struct Words {
  Names names;
  std::unordered_map<std::string_view, std::int32_t> index;

  std::int32_t intern(std::string_view word) {
    const auto [entry, is_new] = index.try_emplace(word, static_cast<std::int32_t>(names.size()));
    if (is_new) names.push_back(word);
    return entry->second;
  }
};

// Whether a component or pin is placed; the values are those of `PlacementStatus` in def_file.py.
enum class Status : std::int8_t { kNone = 0, kUnplaced = 1, kPlaced = 2, kFixed = 3, kCover = 4 };

struct DefHeader {
  std::string_view version, divider = "/", bus_bits = "[]", design;
  double units = 0;
  Numbers die;  // x, y of each corner
};

struct DefRows {
  Names name;
  Words sites;
  Numbers site, x, y, count_x, count_y, step_x, step_y;
  Codes orientation;
};

struct DefTracks {
  Words layers;
  Numbers layer, start, count, step;
  Codes is_x;  // 1: lines at x positions, vertical; 0: at y positions, horizontal
};

struct DefComponents {
  Names name;
  Words masters;
  Numbers master, x, y;
  Codes status, orientation;
  Offsets begin, end;       // from the `-` to the `;`, inclusive
  Numbers halo_component;   // components with a halo
  Numbers halo;             // left, bottom, right, top of each
  Numbers region_component;  // components with a region of their own, and its name
  Words regions;
  Numbers region;
};

struct DefPins {
  Names name;
  Words nets, layers;
  Numbers net, layer, x, y;                // net and layer: -1: none
  Numbers box;                             // left, bottom, right, top of the shapes, relative to (x, y), unturned
  Codes status, orientation, direction, use, special;
  Offsets begin;
};

struct DefBlockages {
  Words layers, components;
  Numbers layer;                 // -1: a placement blockage
  Numbers component;             // -1: none
  Codes is_soft, is_pushdown;
  std::vector<double> partial;   // maximum density in per cent; NaN: none
  Numbers start = {0};           // blockage b has polygons [start[b], start[b+1])
  Numbers polygon_start = {0};   // polygon p has points [polygon_start[p], polygon_start[p+1])
  Numbers points;                // x, y; a rectangle is two points
  Offsets begin;
};

struct DefRegions {
  Names name;
  Codes is_guide, is_fence;
  Numbers start = {0};
  Numbers boxes;  // left, bottom, right, top
};

struct DefGroups {
  Names name, region;  // region: empty if there is none
  Numbers start = {0};
  Names patterns;
  Offsets begin;
};

struct DefNets {
  Names name;
  Numbers start = {0};  // net n has connections [start[n], start[n+1])
  Numbers component;  // of each connection; -1: a pin of the design
  Numbers pin;        // index in `pins`, or in DefPins if component is -1
  Words pins;
  Codes use;
  std::vector<double> weight;
  Offsets begin;
};

// Straight segments of supply nets with SHAPE STRIPE, each once.
struct DefStraps {
  Words layers;
  Numbers net, layer, width, at, low, high;  // net: number within the straps; at: across; low, high: along
  Codes is_vertical;
};

struct DefContents {
  DefHeader header;
  DefRows rows;
  DefTracks tracks;
  DefComponents components;
  DefPins pins;
  DefBlockages blockages;
  DefRegions regions;
  DefGroups groups;
  DefNets nets;
  DefStraps straps;
  std::vector<Findings> findings;
};

// Reads a whole file; throws ParseError if it is truncated or not DEF. `text` must outlive the result.
DefContents read_def(std::string_view text);

}  // namespace netlist_text
