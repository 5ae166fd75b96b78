// Each concept has its Python bindings in bind_<concept>.cpp; module.cpp calls them in order.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/design.hpp"

namespace placement {

// One-dimensional and two-dimensional read-only C-contiguous arrays in CPU memory, as passed by NumPy.
template <typename T>
using InputVector = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
// The same, writable.
template <typename T>
using OutputVector = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

// A copy owned by NumPy.
inline nanobind::ndarray<nanobind::numpy, double, nanobind::ndim<2>> grid_copy(const std::vector<double>& values, int rows,
                                                                               int columns) {
  auto* copy = new std::vector<double>(values);
  nanobind::capsule owner(copy, [](void* data) noexcept { delete static_cast<std::vector<double>*>(data); });
  return {copy->data(), {static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)}, owner};
}

// Writable grid: [rows, columns].
template <typename T>
using OutputMap = nanobind::ndarray<T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

template <typename T>
void require_shape(const OutputMap<T>& map, const Canvas& canvas) {
  if (map.shape(0) != static_cast<std::size_t>(canvas.rows) || map.shape(1) != static_cast<std::size_t>(canvas.columns)) {
    throw nanobind::value_error("a map must have the shape [rows, columns]");
  }
}

void bind_design(nanobind::module_& m);
void bind_cost(nanobind::module_& m);
void bind_search(nanobind::module_& m);
void bind_state(nanobind::module_& m);
void bind_pool(nanobind::module_& m);
void bind_rendering(nanobind::module_& m);
void bind_xla(nanobind::module_& m);

}  // namespace placement
