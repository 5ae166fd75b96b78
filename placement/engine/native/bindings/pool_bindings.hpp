// What the bindings of the pool and of the renderer share: batches as NumPy arrays, refusals as tuples.
#pragma once

#include <nanobind/stl/tuple.h>

#include <array>
#include <initializer_list>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "pool/state_queue.hpp"
#include "pool/plan_list.hpp"

namespace placement {

using RefusalTuple = std::tuple<int, int, int, Verdict, int>;

inline RefusalTuple as_tuple(const Refusal& refusal) {
  return {refusal.index, refusal.step, refusal.design_index, refusal.verdict, refusal.obstacle};
}

// NumPy arrays that look into a batch's memory: those of an observation, reward, terminated, truncated, those of info.
// They live as long as anything refers to them, and keep `owner` alive.
inline nanobind::list batch_views(Batch& batch, nanobind::handle owner) {
  namespace nb = nanobind;
  const ObservationShape& shape = batch.shape();
  const auto size = static_cast<std::size_t>(batch.size()), rows = static_cast<std::size_t>(shape.rows);
  const auto columns = static_cast<std::size_t>(shape.columns), steps = static_cast<std::size_t>(shape.steps);
  const ObservationSlot observation = batch.observation(0);
  const StepSlot step = batch.step(0);
  nb::list views;
  const auto add = [&views, owner](auto* data, std::initializer_list<std::size_t> dimensions) {
    using Scalar = std::remove_pointer_t<decltype(data)>;
    views.append(nb::ndarray<nb::numpy, Scalar>(data, dimensions, owner).cast());
  };
  add(observation.design, {size});
  add(observation.step, {size});
  add(observation.mask, {size, rows, columns});
  if (shape.compact) {
    add(observation.compact_maps, {size, kMaps, rows, columns});
  } else {
    add(observation.maps, {size, kMaps, rows, columns});
  }
  add(observation.x, {size, steps});
  add(observation.y, {size, steps});
  add(step.reward, {size});
  add(reinterpret_cast<bool*>(step.terminated), {size});
  add(reinterpret_cast<bool*>(batch.truncated()), {size});
  add(reinterpret_cast<bool*>(step.dead_end), {size});
  add(step.costs, {size, kCosts});
  add(step.elapsed_step, {size});
  add(batch.env_id(), {size});
  add(batch.rows(), {size});
  add(batch.columns(), {size});
  add(batch.macros(), {size});
  return views;
}

// A batch as Python takes it: (observation, reward, terminated, truncated, info).
class Result {
 public:
  Result() {
    for (const char* name : {"design", "step", "mask", "maps", "x", "y", "", "", "", "dead_end", "costs", "elapsed_step",
                             "env_id", "rows", "columns", "macros"}) {
      names_.push_back(nanobind::steal(PyUnicode_InternFromString(name)));
    }
  }

  // The first `size` rows of the arrays of `batch_views`.
  nanobind::tuple operator()(const nanobind::list& views, const Batch& batch, int size) const {
    namespace nb = nanobind;
    nb::dict observation, info;
    std::array<nb::object, kMiddle> middle;
    for (int i = 0; i < static_cast<int>(names_.size()); ++i) {
      nb::object array = views[i];
      if (size < batch.size()) array = array[nb::slice(0, size, 1)];
      if (i >= kObserved && i < kObserved + kMiddle) {
        middle[i - kObserved] = std::move(array);
      } else if (PyDict_SetItem((i < kObserved ? observation : info).ptr(), names_[i].ptr(), array.ptr()) != 0) {
        throw nb::python_error();
      }
    }
    return nb::make_tuple(observation, middle[0], middle[1], middle[2], info);
  }

 private:
  static constexpr int kObserved = 6, kMiddle = 3;
  std::vector<nanobind::object> names_;
};

}  // namespace placement
