#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/cost_bindings.hpp"
#include "search/annealer.hpp"
#include "search/legal_positions.hpp"
#include "search/nearest_legal_position.hpp"
#include "search/sequence_pair.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace placement {
namespace {

using StateTuple = std::tuple<std::uint64_t, std::int64_t, std::array<PerMove, 5>>;

// A placer with its design, so that array lengths can be checked.
struct BoundSoftPlacer {
  std::shared_ptr<const Design> design;
  std::unique_ptr<SoftPlacer> placer;
};

}  // namespace

void bind_search(nb::module_& m) {
  std::vector<std::string> names;
  for (const Move& move : all_moves()) names.push_back(move.name);
  m.attr("MOVES") = nb::cast(names);
  m.def(
      "placement_fits",
      [](std::shared_ptr<const Design> design, Vector x, Vector y, Orientations orientation, double spacing) {
        require_placement(*design, x, y, orientation);
        LegalPositions legal(*design, spacing);
        legal.place(x.data(), y.data(), orientation.data());
        return legal.all_fit();
      },
      "design"_a, "x"_a, "y"_a, "orientation"_a, "spacing"_a);
  m.def(
      "nearest_legal_position",
      [](const std::array<double, 2>& start, const std::array<double, 2>& low, const std::array<double, 2>& high,
         Vector x_low, Vector y_low, Vector x_high, Vector y_high) {
        const std::size_t count = x_low.shape(0);
        if (y_low.shape(0) != count || x_high.shape(0) != count || y_high.shape(0) != count) {
          throw nb::value_error("x_low, y_low, x_high and y_high must have the same length");
        }
        return nearest_legal_position(start, low, high,
                                      {count, x_low.data(), y_low.data(), x_high.data(), y_high.data()});
      },
      "start"_a, "low"_a, "high"_a, "x_low"_a, "y_low"_a, "x_high"_a, "y_high"_a);
  m.def(
      "pack_boxes",
      [](std::vector<double> low_x, std::vector<double> high_x, std::vector<double> low_y, std::vector<double> high_y,
         Vector apart_x, Vector apart_y, const std::vector<double>& x, const std::vector<double>& y,
         std::int64_t comparisons, std::uint64_t seed) {
        const std::size_t count = low_x.size();
        for (const std::size_t size : {high_x.size(), low_y.size(), high_y.size(), x.size(), y.size()}) {
          if (size != count) throw nb::value_error("limits and centres must have the same length");
        }
        if (apart_x.shape(0) != count * count || apart_y.shape(0) != count * count) {
          throw nb::value_error("apart_x and apart_y must have one value per pair of boxes");
        }
        const PackingProblem problem{std::move(low_x), std::move(high_x), std::move(low_y), std::move(high_y),
                                     {apart_x.data(), apart_x.data() + count * count},
                                     {apart_y.data(), apart_y.data() + count * count}};
        nb::gil_scoped_release released;
        return pack(problem, x, y, comparisons, seed);
      },
      "low_x"_a, "high_x"_a, "low_y"_a, "high_y"_a, "apart_x"_a, "apart_y"_a, "x"_a, "y"_a, "comparisons"_a, "seed"_a);
  nb::class_<Annealer>(m, "Annealer", "Simulated annealing on the exact cost; one per thread.")
      .def(
          "__init__",
          [](Annealer* self, std::shared_ptr<const Design> design, Vector x, Vector y, Orientations orientation,
             const BoundWeights& weights, double spacing, bool rotate, bool moves_soft, std::uint64_t seed) {
            require_placement(*design, x, y, orientation);
            const MoveOptions options{spacing, rotate, moves_soft};
            new (self) Annealer(std::move(design), x.data(), y.data(), orientation.data(), as_weights(weights), options,
                                seed);
          },
          "design"_a, "x"_a, "y"_a, "orientation"_a, "weights"_a, "spacing"_a, "rotate"_a, "moves_soft"_a,
          "seed"_a)
      .def("set_mix", &Annealer::set_mix, "weights"_a)
      .def("run", &Annealer::run, "moves"_a, "temperature"_a, "most"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("grow_clear", &Annealer::grow_clear)
      .def(
          "replace_soft",
          [](Annealer& self, const std::string& soft_placer) {
            const auto placer = make_soft_placer(soft_placer, self.cost().shared_design());
            return self.replace_soft(*placer);
          },
          "soft_placer"_a, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "restart",
          [](Annealer& self, Vector x, Vector y, Orientations orientation) {
            require_placement(self.cost().design(), x, y, orientation);
            self.restart(x.data(), y.data(), orientation.data());
          },
          "x"_a, "y"_a, "orientation"_a)
      .def("costs", [](const Annealer& self) { return as_tuple(self.cost().costs()); })
      .def_prop_ro("best_cost", [](const Annealer& self) { return self.best_cost(); })
      .def(
          "write",
          [](const Annealer& self, bool best, OutputVector<double> x, OutputVector<double> y,
             OutputVector<std::int8_t> orientation) {
            if (best) write_placement(self.best_x(), self.best_y(), self.best_orientation(), x, y, orientation);
            else write_placement(self.cost().x(), self.cost().y(), self.cost().orientation(), x, y, orientation);
          },
          "best"_a, "x"_a, "y"_a, "orientation"_a)
      .def("tally",
           [](const Annealer& self) {
             const MoveTally& tally = self.tally();
             return std::make_tuple(tally.drawn, tally.evaluated, tally.accepted, tally.saved);
           })
      .def("state",
           [](const Annealer& self) -> StateTuple {
             const AnnealerState state = self.state();
             return {state.random, state.moves,
                     {state.reach, state.share, state.recent_drawn, state.recent_accepted, state.recent_saved}};
           })
      .def(
          "set_state",
          [](Annealer& self, std::uint64_t random, std::int64_t moves, const std::array<PerMove, 5>& values) {
            for (const PerMove& one : values) {
              if (one.size() != all_moves().size()) throw nb::value_error("one value per move is needed");
            }
            self.set_state({random, moves, values[0], values[1], values[2], values[3], values[4]});
          },
          "random"_a, "moves"_a, "values"_a);

  m.def("soft_placer_names", &soft_placer_names);
  nb::class_<BoundSoftPlacer>(m, "SoftPlacer",
                              "Places the soft macros of one design; one instance per thread (it owns workspace).")
      .def(
          "__init__",
          [](BoundSoftPlacer* self, const std::string& name, std::shared_ptr<Design> design, const BoundWeights& weights) {
            new (self) BoundSoftPlacer{design, make_soft_placer(name, design, as_weights(weights))};
          },
          "name"_a, "design"_a, "weights"_a = BoundWeights(1, 0.5, 0.5, "proxy", 0.0))
      .def(
          "place",
          [](BoundSoftPlacer& self, OutputVector<double> x, OutputVector<double> y, InputVector<std::int8_t> orientation) {
            const std::size_t nodes = x.shape(0), wanted = static_cast<std::size_t>(self.design->nodes());
            if (nodes != wanted || y.shape(0) != nodes || orientation.shape(0) != nodes) {
              throw std::invalid_argument("place: the arrays have " + std::to_string(nodes) +
                                          " values and the design has " + std::to_string(wanted) +
                                          " nodes; x, y and orientation must have one value per node");
            }
            nb::gil_scoped_release release;
            self.placer->place(x.data(), y.data(), orientation.data());
          },
          "x"_a, "y"_a, "orientation"_a);
}

}  // namespace placement
