// What the files that bind the module have in common.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

namespace placement::flat {

using Floats = nanobind::ndarray<const float, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Integers = nanobind::ndarray<const std::int32_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

void bind_routing(nanobind::module_& m);
void bind_rows(nanobind::module_& m);

}  // namespace placement::flat
