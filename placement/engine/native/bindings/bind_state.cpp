#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <tuple>

#include "bindings/bindings.hpp"
#include "env/state.hpp"

namespace nb = nanobind;

namespace placement {
namespace {

auto on_grid(const PlacementState& state, const std::vector<double>& values) {
  const Canvas& canvas = state.plan().canvas;
  return grid_copy(values, canvas.rows, canvas.columns);
}

}  // namespace

void bind_state(nb::module_& m) {
  nb::enum_<Verdict>(m, "Verdict")
      .value("legal", Verdict::legal)
      .value("out_of_range", Verdict::out_of_range)
      .value("outside_canvas", Verdict::outside_canvas)
      .value("overlaps", Verdict::overlaps)
      .value("all_placed", Verdict::all_placed)
      .value("too_close", Verdict::too_close)
      .value("on_blockage", Verdict::on_blockage)
      .value("off_region", Verdict::off_region)
      .value("near_port", Verdict::near_port)
      .value("off_lines", Verdict::off_lines)
      .value("narrow_channel", Verdict::narrow_channel);

  nb::class_<PlacementState>(m, "PlacementState", "Macros placed one by one; see placement.engine.state.")
      .def("__init__",
           [](PlacementState* self, std::shared_ptr<const Design> design) {
             new (self) PlacementState(std::make_shared<const EpisodePlan>(std::move(design)));
           })
      .def("reset", &PlacementState::reset)
      .def("place",
           [](PlacementState& self, int row, int column) {
             int obstacle = -1;
             const Verdict verdict = self.judge(row, column, &obstacle);
             if (verdict == Verdict::legal) self.place(row, column);
             return std::make_tuple(verdict, obstacle);
           })
      .def("undo",
           [](PlacementState& self) {
             if (self.step() == 0) throw nb::value_error("undo: nothing is placed");
             self.undo();
           })
      .def_prop_ro("step", &PlacementState::step)
      .def_prop_ro("steps", [](const PlacementState& self) { return self.plan().steps(); })
      .def_prop_ro("legal_cells", &PlacementState::legal_cells)
      .def("cell",
           [](const PlacementState& self, int t) {
             if (t < 0 || t >= self.step()) throw nb::index_error("cell: that macro is not placed");
             return self.cell(t);
           })
      .def("centre",
           [](const PlacementState& self, int t) {
             if (t < 0 || t >= self.step()) throw nb::index_error("centre: that macro is not placed");
             return std::make_tuple(self.x(t), self.y(t));
           })
      .def("occupancy", [](const PlacementState& self) { return on_grid(self, self.occupancy()); })
      .def("density", [](const PlacementState& self) { return on_grid(self, self.density()); })
      .def("write_mask",
           [](const PlacementState& self, OutputMap<std::uint8_t> mask) {
             require_shape(mask, self.plan().canvas);
             self.write_mask(mask.data(), self.plan().canvas.columns);
           })
      .def("write_wire", [](const PlacementState& self, OutputVector<double> column_wire, OutputVector<double> row_wire) {
        const Canvas& canvas = self.plan().canvas;
        if (column_wire.shape(0) != static_cast<std::size_t>(canvas.columns) ||
            row_wire.shape(0) != static_cast<std::size_t>(canvas.rows)) {
          throw nb::value_error("column_wire must have one value per column and row_wire one per row");
        }
        self.wire_mask(column_wire.data(), row_wire.data());
        return self.complete() ? 0.0 : self.plan().macros[self.step()].wire_scale;
      });
}

}  // namespace placement
