#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <tuple>

#include "bindings/batch_views.hpp"
#include "bindings/bindings.hpp"
#include "pool/pool.hpp"

namespace nb = nanobind;

namespace placement {
namespace {

using RefusalTuple = std::tuple<int, int, int, Verdict, int>;

std::optional<RefusalTuple> as_tuple(const std::optional<Refusal>& refusal) {
  if (!refusal) return std::nullopt;
  return RefusalTuple{refusal->index, refusal->step, refusal->design_index, refusal->verdict, refusal->obstacle};
}

using Coordinates = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

const Environment& checked_environment(const EnvironmentPool& pool, int env) {
  if (env < 0 || env >= pool.size()) throw nb::index_error("no such environment");
  return pool.environment(env);
}

template <typename T, int Dimensions>
using OutputArray = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
using Actions = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The typed face checks shapes with a kinder message; this keeps a slip in it from writing beyond an array.
std::optional<RefusalTuple> render(const PlanList& designs, InputVector<std::int32_t> design_index, Actions actions,
                                   InputVector<std::int32_t> lengths, OutputArray<std::int32_t, 2> design,
                                   OutputArray<std::int32_t, 2> step, OutputArray<std::uint8_t, 4> mask,
                                   OutputArray<float, 5> maps, OutputArray<float, 3> x, OutputArray<float, 3> y) {
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
    if (index < 0 || index >= static_cast<int>(designs.plans.size())) throw nb::index_error("no such design");
  }
  const ObservationSlot first{design.data(), step.data(), mask.data(), maps.data(), x.data(), y.data()};
  std::optional<Refusal> refusal;
  {
    nb::gil_scoped_release unlocked;
    refusal = render_episodes(designs, static_cast<int>(episodes), static_cast<int>(steps), design_index.data(),
                              actions.data(), lengths.data(), first);
  }
  return as_tuple(refusal);
}

}  // namespace

void bind_pool(nb::module_& m) {
  static PyObject* unplayable = PyErr_NewException("placement.engine._native.UnplayableDesign", PyExc_ValueError, nullptr);
  m.attr("UnplayableDesign") = nb::handle(unplayable);
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const UnplayableDesign& error) {
      PyErr_SetObject(unplayable, nb::make_tuple(error.design, error.node, error.what()).ptr());
    }
  });

  nb::class_<Batch>(m, "Batch", "The memory of one batch.");
  m.def("batch_arrays", [](nb::handle owner) { return batch_views(nb::cast<Batch&>(owner), owner); });
  nb::list fields;
  for (const char* field : kBatchFields) fields.append(field);
  m.attr("BATCH_FIELDS") = nb::tuple(fields);

  nb::class_<EnvironmentPool>(m, "EnvironmentPool", "Environments stepped together; see placement.engine.pool.")
      .def(
          "__init__",
          [](EnvironmentPool* self, const std::vector<std::shared_ptr<Design>>& designs,
             const std::vector<int>& design_of_env, std::tuple<double, double, double> weights,
             double dead_end_penalty, const std::string& soft_placer) {
            EnvironmentConfig config;
            config.weights = {std::get<0>(weights), std::get<1>(weights), std::get<2>(weights)};
            config.dead_end_penalty = dead_end_penalty;
            config.soft_placer = soft_placer;
            for (const int design : design_of_env) {
              if (design < 0 || design >= static_cast<int>(designs.size())) throw nb::index_error("no such design");
            }
            const std::vector<std::shared_ptr<const Design>> shared(designs.begin(), designs.end());
            new (self) EnvironmentPool(shared, design_of_env, config);
          },
          nb::kw_only(), nb::arg("designs"), nb::arg("design_of_env"), nb::arg("weights"),
          nb::arg("dead_end_penalty"), nb::arg("soft_placer"))
      .def_prop_ro("batch", &EnvironmentPool::batch)
      .def_prop_ro("shape",
                   [](const EnvironmentPool& self) {
                     const ObservationShape& shape = self.designs().shape;
                     return std::make_tuple(shape.rows, shape.columns, shape.steps);
                   })
      .def("reset", &EnvironmentPool::reset, nb::call_guard<nb::gil_scoped_release>())
      .def("step",
           [](EnvironmentPool& self, InputVector<std::int32_t> actions) {
             if (actions.shape(0) != static_cast<std::size_t>(self.size())) {
               throw nb::value_error("step: one action per environment is needed");
             }
             std::optional<Refusal> refusal;
             {
               nb::gil_scoped_release unlocked;
               refusal = self.step(actions.data());
             }
             return as_tuple(refusal);
           })
      .def("last_placement",
           [](const EnvironmentPool& self, int env, Coordinates x, Coordinates y) {
             const Environment& environment = checked_environment(self, env);
             if (x.shape(0) != environment.last_x().size() || y.shape(0) != environment.last_y().size()) {
               throw nb::value_error("last_placement: one value per node is needed");
             }
             if (!environment.has_finished()) return false;
             std::copy(environment.last_x().begin(), environment.last_x().end(), x.data());
             std::copy(environment.last_y().begin(), environment.last_y().end(), y.data());
             return true;
           })
      .def("cells",
           [](const EnvironmentPool& self, int env) {
             const PlacementState& state = checked_environment(self, env).state();
             std::vector<int> cells;
             for (int t = 0; t < state.step(); ++t) cells.push_back(state.cell(t));
             return cells;
           })
      .def(
          "render",
          [](const EnvironmentPool& self, InputVector<std::int32_t> design_index, Actions actions,
             InputVector<std::int32_t> lengths, OutputArray<std::int32_t, 2> design,
             OutputArray<std::int32_t, 2> step, OutputArray<std::uint8_t, 4> mask, OutputArray<float, 5> maps,
             OutputArray<float, 3> x, OutputArray<float, 3> y) {
            return render(self.designs(), design_index, actions, lengths, design, step, mask, maps, x, y);
          },
          nb::arg("design_index"), nb::arg("actions"), nb::arg("lengths"), nb::arg("design"), nb::arg("step"),
          nb::arg("mask"), nb::arg("maps"), nb::arg("x"), nb::arg("y"));
}

}  // namespace placement
