// The engine's representation of a design: plain arrays, copied once from Python, then immutable and shared by all
// evaluators and environments. Axis legend as in placement/netlist/design.py: N nodes, P pins, E nets, L net pins.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace placement {

enum class Kind : std::int8_t { hard = 0, soft = 1, port = 2, cell = 3 };

// Orientations in the order N, FN, S, FS, E, FE, W, FW; from E on, width and height are exchanged.
inline constexpr std::array<std::array<double, 4>, 8> kTurn = {{{1, 0, 0, 1},
                                                                 {-1, 0, 0, 1},
                                                                 {-1, 0, 0, -1},
                                                                 {1, 0, 0, -1},
                                                                 {0, 1, -1, 0},
                                                                 {0, -1, -1, 0},
                                                                 {0, -1, 1, 0},
                                                                 {0, 1, 1, 0}}};
inline bool swaps_sides(std::int8_t orientation) { return orientation >= 4; }

struct Canvas {
  double width = 0, height = 0;  // µm
  int columns = 0, rows = 0;
  double routes_horizontal = 0, routes_vertical = 0;              // tracks per µm
  double macro_routes_horizontal = 0, macro_routes_vertical = 0;  // tracks per µm that a hard macro blocks
  int smoothing = 0;                                              // gcells on each side
  double overlap_threshold = 0;                                   // µm

  double cell_width() const { return width / columns; }
  double cell_height() const { return height / rows; }
  int cells() const { return columns * rows; }
  // The nearest gcell if the position is beyond the canvas.
  int column_of(double x) const { return static_cast<int>(std::clamp(x / cell_width(), 0.0, columns - 1.0)); }
  int row_of(double y) const { return static_cast<int>(std::clamp(y / cell_height(), 0.0, rows - 1.0)); }
};

// The columns (or rows) of a grid that an interval meets, and the covered share of each.
struct GridSpan {
  int first, last;   // empty if low >= high
  double low, high;  // in columns, within the grid

  // An interval of `size` µm around `centre`, on a grid of `count` columns with `per_side` columns per µm.
  GridSpan(double centre, double size, double per_side, int count)
      : low(std::max(0.0, (centre - size / 2) * per_side)),
        high(std::min(static_cast<double>(count), (centre + size / 2) * per_side)) {
    first = static_cast<int>(std::min(low, count - 1.0));  // an interval may be out of the range of int
    last = low < high ? std::min(static_cast<int>(high), count - 1) : first - 1;
  }
  // Covered share of a column in [first, last].
  double share(int column) const {
    return std::max(0.0, std::min(high, column + 1.0) - std::max(low, static_cast<double>(column)));
  }
};

// Areas closed to some sets of hard macros; see placement/netlist/keep_outs.py.
enum class KeepOutKind : std::int8_t { blockage = 0, region = 1, port = 2 };
struct KeepOut {
  double x, y, width, height;  // µm, centre and sides
  KeepOutKind kind;
};

// Legal positions of macros' lower left corners: offset + a whole number of pitches, in µm; pitch 0: anywhere.
struct SnapGrid {
  double pitch_x = 0, pitch_y = 0, offset_x = 0, offset_y = 0;
  bool is_set() const { return pitch_x > 0 || pitch_y > 0; }
  bool operator==(const SnapGrid& other) const {
    return pitch_x == other.pitch_x && pitch_y == other.pitch_y && offset_x == other.offset_x &&
           offset_y == other.offset_y;
  }
};

// Minimum width of a gap, other than an abutment, between two hard macros or a macro and the canvas edge, in µm; 0: no
// rule.
struct Channel {
  double x = 0, y = 0;
  bool is_set() const { return x > 0 || y > 0; }
};

// The halo around an oriented hard macro in µm: half the sum of opposite sides, and the offset of the centre of the
// macro with its halo from the macro's own, to the right and up.
struct Halo {
  double x = 0, y = 0, shift_x = 0, shift_y = 0;
  double left() const { return x - shift_x; }
  double right() const { return x + shift_x; }
  double low() const { return y - shift_y; }
  double high() const { return y + shift_y; }
  bool operator==(const Halo& other) const {
    return x == other.x && y == other.y && shift_x == other.shift_x && shift_y == other.shift_y;
  }
};

// Constraints on hard macros, see placement/netlist/constraints.py; the vectors are empty if `any` is false.
struct Constraints {
  bool any = false;
  bool halos = false;                         // whether any node has a halo
  std::vector<double> halo_x, halo_y;         // [N] µm, in orientation N, see Halo
  std::vector<double> halo_shift_x, halo_shift_y;  // the same; empty if opposite sides of all halos are equal
  std::vector<std::uint8_t> orientations;     // [N] bit o: orientation o is allowed
  std::vector<KeepOut> keep_outs;
  std::vector<std::int32_t> keep_set;         // [N] set of keep-outs that applies to a hard macro
  std::vector<std::int32_t> set_start, items; // set s: keep_outs[items[set_start[s]]] …
  SnapGrid grid;                              // for nodes without a grid of their own
  std::vector<std::int32_t> own_grid;         // [N] first of a node's eight own_grids, one per orientation; -1: none
  std::vector<SnapGrid> own_grids;            // both empty if no node has a separate grid
  SnapGrid coarsest;                          // the largest pitches of all grids
  Channel channel;

  bool allows(int node, std::int8_t orientation) const { return !any || ((orientations[node] >> orientation) & 1); }
  // Grid of a node's lower left corner.
  const SnapGrid& grid_of(int node, std::int8_t orientation) const {
    const int first = own_grid.empty() ? -1 : own_grid[node];
    return first < 0 ? grid : own_grids[first + orientation];
  }
  bool snaps() const { return coarsest.is_set(); }
  Halo halo_of(int node, std::int8_t orientation) const {
    if (!halos) return {};
    Halo halo{halo_x[node], halo_y[node]};
    if (swaps_sides(orientation)) std::swap(halo.x, halo.y);
    if (halo_shift_x.empty()) return halo;
    const auto& turn = kTurn[orientation];
    halo.shift_x = turn[0] * halo_shift_x[node] + turn[1] * halo_shift_y[node];
    halo.shift_y = turn[2] * halo_shift_x[node] + turn[3] * halo_shift_y[node];
    return halo;
  }
  // Calls visit(keep-out) for those that apply to a hard macro.
  template <typename Visit>
  void for_keep_outs(int node, Visit visit) const {
    if (!any) return;
    const int set = keep_set[node];
    for (int i = set_start[set]; i < set_start[set + 1]; ++i) visit(keep_outs[items[i]]);
  }
};

struct CompactNets;
struct SoftSprings;

// A value derived from a design alone, made on first request and shared. A copy of a design makes its own.
template <typename Made>
class Shared {
 public:
  Shared() = default;
  Shared(const Shared&) {}
  Shared& operator=(const Shared&) = delete;

  // Calls make() the first time; concurrent callers wait.
  template <typename Make>
  std::shared_ptr<const Made> get(Make make) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!made_) made_ = make();
    return made_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Made> made_;
};

struct Design {
  Canvas canvas;
  int action_scale = 1;  // cells of the action grid along each side of a gcell
  bool off_grid = false; // whether an action may place a macro anywhere in its cell, see env/off_grid.hpp
  std::vector<std::int32_t> bank;  // [N] hard macros of the same number form a bank; −1 or empty: no bank
  double pdn_channel = 0;  // µm around hard macros that cells leave free for the power grid
  double spacing = 0;  // default spacing of movable macros in searches, µm; not a constraint
  Constraints constraints;
  // [N]
  std::vector<std::int8_t> kind;
  std::vector<double> node_width, node_height;  // µm, in orientation N
  // [P]
  std::vector<std::int32_t> pin_node;
  std::vector<double> pin_dx, pin_dy;  // µm from the node's centre, in orientation N
  // [E], [E+1], [L]: the first pin of a net is its driver
  std::vector<double> net_weight;
  std::vector<std::int32_t> net_start, net_pins;
  // the design's initial placement, [N]; `fixed` nodes never move
  std::vector<double> initial_x, initial_y;
  std::vector<std::int8_t> initial_orientation;
  std::vector<std::uint8_t> placed, fixed;
  // [T] movable hard macros in the order in which an episode places them
  std::vector<std::int32_t> placing_order;
  Shared<CompactNets> shared_nets;                   // see shared_compact_nets
  Shared<SoftSprings> shared_stars, shared_cliques;  // see shared_soft_springs

  int nodes() const { return static_cast<int>(kind.size()); }
  int pins() const { return static_cast<int>(pin_node.size()); }
  int nets() const { return static_cast<int>(net_weight.size()); }
  // The canvas with the action grid of an episode; macros are centred on its cells.
  Canvas action_canvas() const {
    Canvas finer = canvas;
    finer.columns *= action_scale;
    finer.rows *= action_scale;
    return finer;
  }
  Kind kind_of(int node) const { return static_cast<Kind>(kind[node]); }

  double width_of(int node, std::int8_t orientation) const {
    return swaps_sides(orientation) ? node_height[node] : node_width[node];
  }
  double height_of(int node, std::int8_t orientation) const {
    return swaps_sides(orientation) ? node_width[node] : node_height[node];
  }
};

}  // namespace placement
