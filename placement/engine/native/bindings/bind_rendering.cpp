#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "env/observation.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace placement {
namespace {

using RefusalTuple = decltype(Refusal().tuple());
template <typename T, int Dimensions>
using OutputArray = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
using Actions = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Replays B episodes from their actions [B, T] and writes the observation before each of the first lengths[b] of them
// into [B, T] slots (zeros past the length). Stops at an illegal action and returns it. Thread-safe.
std::optional<Refusal> render_episodes(const PlanList& designs, int episodes, int steps,
                                              const std::int32_t* design_index, const std::int32_t* actions,
                                              const std::int32_t* lengths, const ObservationSlot& first) {
  const ObservationShape& shape = designs.shape;
  ObservationWriter writer(shape);
  std::vector<std::unique_ptr<PlacementState>> states(designs.plans.size());
  for (int episode = 0; episode < episodes; ++episode) {
    const int design = design_index[episode];
    auto& state = states[design];
    if (state) state->reset();
    if (!state) state = std::make_unique<PlacementState>(designs.plans[design]);
    for (int step = 0; step < steps; ++step) {
      const std::size_t place = static_cast<std::size_t>(episode) * steps + step;
      const ObservationSlot slot = first.at(shape, place);
      if (step >= lengths[episode]) {
        writer.write_zeros(slot);
        continue;
      }
      writer.write(*state, design, slot);
      const Action action(actions[place], shape);
      int obstacle = -1;
      const Verdict verdict = state->judge(action.row, action.column, &obstacle);
      if (verdict != Verdict::legal) return Refusal{episode, step, design, verdict, obstacle};
      state->place(action.row, action.column);
    }
  }
  return std::nullopt;
}

float* full(float* maps) { return maps; }
float* full(std::uint16_t*) { return nullptr; }
std::uint16_t* compact(std::uint16_t* maps) { return maps; }
std::uint16_t* compact(float*) { return nullptr; }

// Number is float, or std::uint16_t for the bits of bfloat16.
template <typename Number>
std::optional<RefusalTuple> render(const PlanList& designs, InputVector<std::int32_t> design_index, Actions actions,
                                   InputVector<std::int32_t> lengths, OutputArray<std::int32_t, 2> design,
                                   OutputArray<std::int32_t, 2> step, OutputArray<std::uint8_t, 4> mask,
                                   OutputArray<Number, 5> maps, OutputArray<float, 3> x, OutputArray<float, 3> y) {
  const std::size_t episodes = actions.shape(0), steps = actions.shape(1), slots = episodes * steps;
  const ObservationShape& shape = designs.shape;
  const auto macros = static_cast<std::size_t>(shape.steps);
  if (design_index.shape(0) != episodes || lengths.shape(0) != episodes || design.size() != slots ||
      step.size() != slots || mask.size() != slots * shape.cells() || maps.size() != slots * shape.cells() * kMaps ||
      x.size() != slots * macros || y.size() != slots * macros) {
    throw nb::value_error("render: an array has the wrong shape");
  }
  for (std::size_t episode = 0; episode < episodes; ++episode) {
    const int index = design_index.data()[episode];
    if (index < 0 || index >= static_cast<int>(designs.plans.size())) {
      throw nb::index_error("the design's index is out of range");
    }
  }
  const ObservationSlot first{design.data(), step.data(), mask.data(), full(maps.data()), x.data(), y.data(),
                              compact(maps.data())};
  std::optional<Refusal> refusal;
  {
    nb::gil_scoped_release unlocked;
    refusal = render_episodes(designs, static_cast<int>(episodes), static_cast<int>(steps), design_index.data(),
                              actions.data(), lengths.data(), first);
  }
  return refusal ? std::optional<RefusalTuple>(refusal->tuple()) : std::nullopt;
}

}  // namespace

void bind_rendering(nb::module_& m) {
  static PyObject* unplayable = PyErr_NewException("placement.engine._native.UnplayableDesign", PyExc_ValueError, nullptr);
  m.attr("UnplayableDesign") = nb::handle(unplayable);
  static PyObject* coarse = PyErr_NewException("placement.engine._native.GridTooCoarse", unplayable, nullptr);
  m.attr("GridTooCoarse") = nb::handle(coarse);
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const UnplayableDesign& error) {
      PyObject* type = dynamic_cast<const GridTooCoarse*>(&error) != nullptr ? coarse : unplayable;
      PyErr_SetObject(type, nb::make_tuple(error.design, error.node, error.what()).ptr());
    }
  });

  nb::class_<PlanList>(m, "EpisodeRenderer", "Replays episodes; see placement.engine.rendering.")
      .def("__init__",
           [](PlanList* self, const std::vector<std::shared_ptr<Design>>& designs,
              const std::tuple<int, int, int>& drawn_shape) {
             const auto [rows, columns, steps] = drawn_shape;
             PlanList plans(std::vector<std::shared_ptr<const Design>>(designs.begin(), designs.end()));
             plans.grow_to({rows, columns, steps});
             new (self) PlanList(std::move(plans));
           },
           "designs"_a, "drawn_shape"_a = std::make_tuple(0, 0, 0))
      .def_prop_ro("shape",
                   [](const PlanList& self) { return std::make_tuple(self.shape.rows, self.shape.columns, self.shape.steps); })
      .def("render", &render<float>, "design_index"_a, "actions"_a, "lengths"_a, "design"_a,
           "step"_a, "mask"_a, "maps"_a.noconvert(), "x"_a, "y"_a)
      .def("render", &render<std::uint16_t>, "design_index"_a, "actions"_a, "lengths"_a, "design"_a,
           "step"_a, "mask"_a, "maps"_a.noconvert(), "x"_a, "y"_a);
}

}  // namespace placement
