// NumPy arrays that own their values.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

namespace placement::flat {

template <class Number>
using Owned = nanobind::ndarray<nanobind::numpy, Number, nanobind::ndim<1>>;

// Moves the values into a one-dimensional array without copying them.
template <class Number>
Owned<Number> owned(std::vector<Number> values) {
  auto* kept = new std::vector<Number>(std::move(values));
  nanobind::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<Number>*>(p); });
  return Owned<Number>(kept->data(), {kept->size()}, owner);
}

}  // namespace placement::flat
