#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "bindings/bindings.hpp"
#include "common/design.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace placement {
namespace {

using Rectangles = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // [K, 4]

template <typename T>
std::vector<T> copied(const InputVector<T>& array) {
  return std::vector<T>(array.data(), array.data() + array.shape(0));
}

// `sides`: [N, 4] µm, left, bottom, right, top.
void set_halos(const Rectangles& sides, Constraints& to) {
  for (auto* values : {&to.halo_x, &to.halo_y, &to.halo_shift_x, &to.halo_shift_y}) values->clear();
  bool is_uneven = false;
  for (std::size_t i = 0; i < sides.shape(0); ++i) {
    const double *at = sides.data() + 4 * i, left = at[0], low = at[1], right = at[2], high = at[3];
    to.halo_x.push_back((left + right) / 2);
    to.halo_y.push_back((low + high) / 2);
    to.halo_shift_x.push_back((right - left) / 2);
    to.halo_shift_y.push_back((high - low) / 2);
    is_uneven |= left != right || low != high;
  }
  if (!is_uneven) {
    to.halo_shift_x.clear();
    to.halo_shift_y.clear();
  }
  const auto above = [](double side) { return side > 0; };
  to.halos = std::any_of(to.halo_x.begin(), to.halo_x.end(), above) ||
             std::any_of(to.halo_y.begin(), to.halo_y.end(), above);
}

}  // namespace

void bind_design(nb::module_& m) {
  nb::class_<Design>(m, "Design", "The engine's form of a design; see placement.engine.native_design.")
      .def(
          "__init__",
          [](Design* self, double width, double height, int columns, int rows, double routes_horizontal,
             double routes_vertical, double macro_routes_horizontal, double macro_routes_vertical, int smoothing,
             double overlap_threshold, InputVector<std::int8_t> kind, InputVector<double> node_width,
             InputVector<double> node_height, InputVector<std::int32_t> pin_node, InputVector<double> pin_dx,
             InputVector<double> pin_dy, InputVector<double> net_weight, InputVector<std::int32_t> net_start,
             InputVector<std::int32_t> net_pins, InputVector<double> initial_x, InputVector<double> initial_y,
             InputVector<std::int8_t> initial_orientation, InputVector<std::uint8_t> placed,
             InputVector<std::uint8_t> fixed, InputVector<std::int32_t> placing_order, int action_scale,
             bool off_grid, double pdn_channel, double spacing, InputVector<std::int32_t> bank) {
            new (self) Design();
            self->canvas = Canvas{width,           height,
                                  columns,         rows,
                                  routes_horizontal, routes_vertical,
                                  macro_routes_horizontal, macro_routes_vertical,
                                  smoothing,       overlap_threshold};
            self->kind = copied(kind);
            self->node_width = copied(node_width);
            self->node_height = copied(node_height);
            self->pin_node = copied(pin_node);
            self->pin_dx = copied(pin_dx);
            self->pin_dy = copied(pin_dy);
            self->net_weight = copied(net_weight);
            self->net_start = copied(net_start);
            self->net_pins = copied(net_pins);
            self->initial_x = copied(initial_x);
            self->initial_y = copied(initial_y);
            self->initial_orientation = copied(initial_orientation);
            self->placed = copied(placed);
            self->fixed = copied(fixed);
            self->placing_order = copied(placing_order);
            self->action_scale = action_scale;
            self->off_grid = off_grid;
            self->pdn_channel = pdn_channel;
            self->spacing = spacing;
            self->bank = copied(bank);
          },
          nb::kw_only(), "width"_a, "height"_a, "columns"_a, "rows"_a, "routes_horizontal"_a, "routes_vertical"_a,
          "macro_routes_horizontal"_a, "macro_routes_vertical"_a, "smoothing"_a, "overlap_threshold"_a, "kind"_a,
          "node_width"_a, "node_height"_a, "pin_node"_a, "pin_dx"_a, "pin_dy"_a, "net_weight"_a, "net_start"_a,
          "net_pins"_a, "initial_x"_a, "initial_y"_a, "initial_orientation"_a, "placed"_a, "fixed"_a, "placing_order"_a,
          "action_scale"_a, "off_grid"_a, "pdn_channel"_a, "spacing"_a, "bank"_a)
      .def(
          "constrain",
          [](Design& self, Rectangles halos, InputVector<std::uint8_t> orientations, Rectangles rectangles, InputVector<std::int8_t> kind,
             InputVector<std::int32_t> keep_set, InputVector<std::int32_t> set_start, InputVector<std::int32_t> items,
             std::array<double, 4> grid, std::array<double, 2> channel, InputVector<std::int32_t> own_grid,
             const std::vector<std::array<double, 4>>& own_grids) {
            Constraints& to = self.constraints;
            to.any = true;
            set_halos(halos, to);
            to.orientations = copied(orientations);
            to.keep_outs.clear();
            for (std::size_t i = 0; i < rectangles.shape(0); ++i) {
              const double *at = rectangles.data() + 4 * i, left = at[0], low = at[1], right = at[2], high = at[3];
              to.keep_outs.push_back({(left + right) / 2, (low + high) / 2, right - left, high - low,
                                      static_cast<KeepOutKind>(kind.data()[i])});
            }
            to.keep_set = copied(keep_set);
            to.set_start = copied(set_start);
            to.items = copied(items);
            to.grid = {grid[0], grid[1], grid[2], grid[3]};
            to.coarsest = {grid[0], grid[1], 0, 0};
            to.own_grid = copied(own_grid);
            to.own_grids.clear();
            for (const auto& [pitch_x, pitch_y, offset_x, offset_y] : own_grids) {
              to.own_grids.push_back({pitch_x, pitch_y, offset_x, offset_y});
              to.coarsest.pitch_x = std::max(to.coarsest.pitch_x, pitch_x);
              to.coarsest.pitch_y = std::max(to.coarsest.pitch_y, pitch_y);
            }
            to.channel = {channel[0], channel[1]};
          },
          nb::kw_only(), "halos"_a, "orientations"_a, "rectangles"_a, "kind"_a, "keep_set"_a,
          "set_start"_a, "items"_a, "grid"_a, "channel"_a, "own_grid"_a,
          "own_grids"_a, "Sets the macros' constraints; must precede every use of the design.")
      .def_prop_ro("num_nodes", &Design::nodes)
      .def_prop_ro("num_nets", &Design::nets);
}

}  // namespace placement
