// The inner sums of the flat placer as XLA programs' foreign calls on the CPU (placement/flat/native_sums.py).
#include <nanobind/nanobind.h>

#include "density.hpp"
#include "wirelength.hpp"

#ifdef PLACEMENT_XLA
#include <cstring>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
#endif
namespace nb = nanobind;

namespace placement::flat {
#ifdef PLACEMENT_XLA
namespace {

using Scalar = ffi::Buffer<ffi::F32, 0>;
using Floats = ffi::Buffer<ffi::F32, 1>;
using Integers = ffi::Buffer<ffi::S32, 1>;
using Map = ffi::Buffer<ffi::F32, 2>;
using FloatsResult = ffi::ResultBuffer<ffi::F32, 1>;
using ScalarResult = ffi::ResultBuffer<ffi::F32, 0>;
using MapResult = ffi::ResultBuffer<ffi::F32, 2>;

ffi::Error wirelength(Floats x, Floats y, Integers net_start, Integers pin_node, Floats offset_x, Floats offset_y,
                      Floats net_weight, Integers node_start, Integers node_pins, Scalar per_gamma,
                      FloatsResult gradient_x, FloatsResult gradient_y, ScalarResult length) {
  const auto nodes = static_cast<std::int64_t>(gradient_x->element_count());
  const auto nets = static_cast<std::int64_t>(net_weight.element_count());
  if (static_cast<std::int64_t>(x.element_count()) != nodes + 1 ||
      static_cast<std::int64_t>(node_start.element_count()) != nodes + 1 ||
      static_cast<std::int64_t>(net_start.element_count()) != nets + 1 ||
      net_start.typed_data()[nets] != static_cast<std::int64_t>(pin_node.element_count())) {
    return ffi::Error::InvalidArgument("wirelength: arrays of different lengths");
  }
  const Nets all{nodes,
                 nets,
                 net_start.typed_data(),
                 pin_node.typed_data(),
                 offset_x.typed_data(),
                 offset_y.typed_data(),
                 net_weight.typed_data(),
                 node_start.typed_data(),
                 node_pins.typed_data()};
  length->typed_data()[0] = static_cast<float>(weighted_average(all, x.typed_data(), y.typed_data(), per_gamma.typed_data()[0],
                                                                gradient_x->typed_data(), gradient_y->typed_data()));
  return ffi::Error::Success();
}

Rectangles rectangles(const Floats& x, const Floats& y, const Floats& half_width, const Floats& half_height) {
  return {static_cast<std::int64_t>(x.element_count()), x.typed_data(), y.typed_data(), half_width.typed_data(),
          half_height.typed_data()};
}

ffi::Error spread_call(Floats x, Floats y, Floats half_width, Floats half_height, Floats charge, Map onto, MapResult map) {
  const Bins bins{map->dimensions()[0], map->dimensions()[1]};
  if (map->typed_data() != onto.typed_data()) {
    std::memcpy(map->typed_data(), onto.typed_data(), sizeof(float) * onto.element_count());
  }
  spread(rectangles(x, y, half_width, half_height), charge.typed_data(), bins, map->typed_data());
  return ffi::Error::Success();
}

ffi::Error gather_call(Floats x, Floats y, Floats half_width, Floats half_height, Floats charge, Map map_x, Map map_y,
                       FloatsResult mean_x, FloatsResult mean_y) {
  const Bins bins{map_x.dimensions()[0], map_x.dimensions()[1]};
  gather(rectangles(x, y, half_width, half_height), charge.typed_data(), bins, map_x.typed_data(), map_y.typed_data(),
         mean_x->typed_data(), mean_y->typed_data());
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER(wirelength_handler, wirelength,
                              ffi::Ffi::Bind()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Integers>()
                                  .Arg<Integers>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Integers>()
                                  .Arg<Integers>()
                                  .Arg<Scalar>()
                                  .Ret<Floats>()
                                  .Ret<Floats>()
                                  .Ret<Scalar>());
XLA_FFI_DEFINE_HANDLER(spread_handler, spread_call,
                              ffi::Ffi::Bind()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Map>()
                                  .Ret<Map>());
XLA_FFI_DEFINE_HANDLER(gather_handler, gather_call,
                              ffi::Ffi::Bind()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Map>()
                                  .Arg<Map>()
                                  .Ret<Floats>()
                                  .Ret<Floats>());

nb::capsule capsule(XLA_FFI_Handler* handler) { return nb::capsule(reinterpret_cast<void*>(handler)); }

}  // namespace
#endif

NB_MODULE(_sums, m) {
  m.doc() = "Inner sums of the flat placer for XLA on the CPU; use placement.flat.";
  nb::dict handlers;
#ifdef PLACEMENT_XLA
  handlers["placement_flat_wirelength"] = capsule(wirelength_handler);
  handlers["placement_flat_spread"] = capsule(spread_handler);
  handlers["placement_flat_gather"] = capsule(gather_handler);
#endif
  m.attr("XLA_HANDLERS") = handlers;
}

}  // namespace placement::flat
