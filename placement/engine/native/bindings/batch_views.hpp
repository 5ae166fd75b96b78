// NumPy arrays that look into a batch's memory, in the order of kBatchFields.
#pragma once

#include <array>
#include <initializer_list>

#include "pool/batch.hpp"
#include "bindings/bindings.hpp"

namespace placement {

inline constexpr std::array<const char*, 15> kBatchFields = {
    "design", "step",         "mask",   "maps", "x",       "y",      "reward", "terminated",
    "dead_end", "costs", "elapsed_step", "env_id", "rows", "columns", "macros"};

// The views live as long as anything refers to them, and keep `owner` alive.
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
  add(observation.maps, {size, kMaps, rows, columns});
  add(observation.x, {size, steps});
  add(observation.y, {size, steps});
  add(step.reward, {size});
  add(reinterpret_cast<bool*>(step.terminated), {size});
  add(reinterpret_cast<bool*>(step.dead_end), {size});
  add(step.costs, {size, kCosts});
  add(step.elapsed_step, {size});
  add(batch.env_id(), {size});
  add(batch.rows(), {size});
  add(batch.columns(), {size});
  add(batch.macros(), {size});
  return views;
}

}  // namespace placement
