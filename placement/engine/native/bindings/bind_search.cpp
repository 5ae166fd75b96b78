#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "search/annealer.hpp"
#include "search/nearest_place.hpp"
#include "search/sequence_pair.hpp"
#include "bindings/bindings.hpp"
#include "bindings/cost_bindings.hpp"

namespace nb = nanobind;

namespace placement {
namespace {

using OutputVector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutputOrientations = nb::ndarray<std::int8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rectangles = std::vector<std::array<double, 4>>;

// An annealer with the soft placer that it uses, and the design both were made for.
class BoundAnnealer {
 public:
  BoundAnnealer(std::shared_ptr<const Design> design, Vector x, Vector y, Orientations orientation,
                const Weights& weights, const MoveOptions& options, const std::string& soft_placer, std::uint64_t seed)
      : design_(design) {
    require_placement(*design, x, y, orientation);
    if (!soft_placer.empty()) placer_ = make_soft_placer(soft_placer, design);
    annealer_ = std::make_unique<Annealer>(design, x.data(), y.data(), orientation.data(), weights, options, seed);
  }

  void restart(Vector x, Vector y, Orientations orientation) {
    require_placement(*design_, x, y, orientation);
    annealer_->restart(x.data(), y.data(), orientation.data());
  }

  bool replace_soft() {
    if (!placer_) throw nb::value_error("the annealer was made without a soft placer");
    nb::gil_scoped_release unlocked;
    return annealer_->replace_soft(*placer_);
  }

  void write(bool best, OutputVector x, OutputVector y, OutputOrientations orientation) const {
    const auto nodes = static_cast<std::size_t>(design_->nodes());
    if (x.shape(0) != nodes || y.shape(0) != nodes || orientation.shape(0) != nodes) {
      throw nb::value_error("x, y and orientation must have one value per node");
    }
    const auto& from_x = best ? annealer_->best_x() : annealer_->cost().x();
    const auto& from_y = best ? annealer_->best_y() : annealer_->cost().y();
    const auto& from_orientation = best ? annealer_->best_orientation() : annealer_->cost().orientation();
    std::copy(from_x.begin(), from_x.end(), x.data());
    std::copy(from_y.begin(), from_y.end(), y.data());
    std::copy(from_orientation.begin(), from_orientation.end(), orientation.data());
  }

  Annealer& annealer() { return *annealer_; }
  const Annealer& annealer() const { return *annealer_; }

 private:
  std::shared_ptr<const Design> design_;
  std::unique_ptr<SoftPlacer> placer_;
  std::unique_ptr<Annealer> annealer_;
};

MoveOptions move_options(double spacing, bool rotate, const Rectangles& blockages) {
  MoveOptions options{spacing, rotate, {}};
  for (const auto& [left, low, right, high] : blockages) options.blockages.push_back({left, low, right, high});
  return options;
}

using StateTuple = std::tuple<std::uint64_t, std::int64_t, std::array<PerKind, 5>>;

}  // namespace

void bind_search(nb::module_& m) {
  m.def("move_names", [] { return std::vector<std::string>(move_names().begin(), move_names().end()); });
  m.def(
      "placement_fits",
      [](std::shared_ptr<const Design> design, Vector x, Vector y, Orientations orientation, double spacing,
         const Rectangles& blockages) {
        require_placement(*design, x, y, orientation);
        HardRoom room(*design, spacing, move_options(spacing, false, blockages).blockages);
        room.stand(x.data(), y.data(), orientation.data());
        return room.all_fit();
      },
      nb::arg("design"), nb::arg("x"), nb::arg("y"), nb::arg("orientation"), nb::arg("spacing"), nb::arg("blockages"));
  m.def(
      "nearest_place",
      [](const std::array<double, 2>& start, const std::array<double, 2>& low, const std::array<double, 2>& high,
         Vector x, Vector y, Vector reach_x, Vector reach_y) {
        const std::size_t count = x.shape(0);
        if (y.shape(0) != count || reach_x.shape(0) != count || reach_y.shape(0) != count) {
          throw nb::value_error("x, y, reach_x and reach_y must have one length");
        }
        return nearest_place(start, low, high, {count, x.data(), y.data(), reach_x.data(), reach_y.data()});
      },
      nb::arg("start"), nb::arg("low"), nb::arg("high"), nb::arg("x"), nb::arg("y"), nb::arg("reach_x"),
      nb::arg("reach_y"));
  m.def(
      "pack_boxes",
      [](std::vector<double> low_x, std::vector<double> high_x, std::vector<double> low_y, std::vector<double> high_y,
         Vector apart_x, Vector apart_y, const std::vector<double>& x, const std::vector<double>& y,
         std::int64_t comparisons, std::uint64_t seed) {
        const std::size_t count = low_x.size();
        for (const std::size_t size : {high_x.size(), low_y.size(), high_y.size(), x.size(), y.size()}) {
          if (size != count) throw nb::value_error("limits and centres must have one length");
        }
        if (apart_x.shape(0) != count * count || apart_y.shape(0) != count * count) {
          throw nb::value_error("apart_x and apart_y must have a value for every two boxes");
        }
        const PackingProblem problem{std::move(low_x), std::move(high_x), std::move(low_y), std::move(high_y),
                                     {apart_x.data(), apart_x.data() + count * count},
                                     {apart_y.data(), apart_y.data() + count * count}};
        nb::gil_scoped_release released;
        return pack(problem, x, y, comparisons, seed);
      },
      nb::arg("low_x"), nb::arg("high_x"), nb::arg("low_y"), nb::arg("high_y"), nb::arg("apart_x"), nb::arg("apart_y"),
      nb::arg("x"), nb::arg("y"), nb::arg("comparisons"), nb::arg("seed"));
  nb::class_<BoundAnnealer>(m, "Annealer", "Simulated annealing on the exact cost; one per thread.")
      .def(
          "__init__",
          [](BoundAnnealer* self, std::shared_ptr<const Design> design, Vector x, Vector y, Orientations orientation,
             const BoundWeights& weights, double spacing, bool rotate, const Rectangles& blockages,
             const std::string& soft_placer, std::uint64_t seed) {
            new (self) BoundAnnealer(std::move(design), x, y, orientation, as_weights(weights),
                                     move_options(spacing, rotate, blockages), soft_placer, seed);
          },
          nb::arg("design"), nb::arg("x"), nb::arg("y"), nb::arg("orientation"), nb::arg("weights"), nb::arg("spacing"),
          nb::arg("rotate"), nb::arg("blockages"), nb::arg("soft_placer"), nb::arg("seed"))
      .def("set_mix", [](BoundAnnealer& self, const PerKind& weights, bool adaptive) {
            self.annealer().set_mix(weights, adaptive);
          }, nb::arg("weights"), nb::arg("adaptive"))
      .def(
          "run",
          [](BoundAnnealer& self, std::int64_t moves, double hot, double cold) {
            nb::gil_scoped_release unlocked;
            self.annealer().run(moves, hot, cold);
          },
          nb::arg("moves"), nb::arg("hot"), nb::arg("cold"))
      .def("replace_soft", &BoundAnnealer::replace_soft)
      .def("restart", &BoundAnnealer::restart, nb::arg("x"), nb::arg("y"), nb::arg("orientation"))
      .def("costs", [](const BoundAnnealer& self) { return as_tuple(self.annealer().cost().costs()); })
      .def_prop_ro("best_cost", [](const BoundAnnealer& self) { return self.annealer().best_cost(); })
      .def("write", &BoundAnnealer::write, nb::arg("best"), nb::arg("x"), nb::arg("y"), nb::arg("orientation"))
      .def("tally",
           [](const BoundAnnealer& self) {
             const MoveTally& tally = self.annealer().tally();
             return std::make_tuple(tally.drawn, tally.evaluated, tally.accepted, tally.saved);
           })
      .def("state",
           [](const BoundAnnealer& self) -> StateTuple {
             const AnnealerState state = self.annealer().state();
             return {state.random, state.moves,
                     {state.reach, state.share, state.recent_drawn, state.recent_accepted, state.recent_worth}};
           })
      .def(
          "set_state",
          [](BoundAnnealer& self, std::uint64_t random, std::int64_t moves, const std::array<PerKind, 5>& values) {
            self.annealer().set_state({random, moves, values[0], values[1], values[2], values[3], values[4]});
          },
          nb::arg("random"), nb::arg("moves"), nb::arg("values"));
}

}  // namespace placement
