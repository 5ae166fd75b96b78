// The inner sums of the flat placer: as XLA programs' foreign calls on the CPU (placement/flat/native_sums.py), and for
// NumPy's arrays (placement/flat/electrostatic.py).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

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

namespace {

using FloatArray = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using IntegerArray = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatsOut = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstMap = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MapOut = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool fits) {
  if (!fits) throw nb::value_error("arrays of different lengths");
}

double wirelength_of(FloatArray x, FloatArray y, IntegerArray net_start, IntegerArray pin_node, FloatArray offset_x,
                     FloatArray offset_y, FloatArray net_weight, IntegerArray node_start, IntegerArray node_pins,
                     float per_gamma, FloatsOut gradient_x, FloatsOut gradient_y) {
  const auto nodes = static_cast<std::int64_t>(gradient_x.size()), nets = static_cast<std::int64_t>(net_weight.size());
  const auto pins = static_cast<std::int64_t>(pin_node.size());
  require(gradient_y.size() == gradient_x.size() && static_cast<std::int64_t>(x.size()) == nodes + 1 &&
          y.size() == x.size() && static_cast<std::int64_t>(node_start.size()) == nodes + 1 &&
          static_cast<std::int64_t>(net_start.size()) == nets + 1 && net_start.data()[nets] == pins &&
          static_cast<std::int64_t>(offset_x.size()) == pins && offset_y.size() == offset_x.size());
  const Nets all{nodes, nets, net_start.data(), pin_node.data(), offset_x.data(), offset_y.data(), net_weight.data(),
                 node_start.data(), node_pins.data()};
  return weighted_average(all, x.data(), y.data(), per_gamma, gradient_x.data(), gradient_y.data());
}

Rectangles rectangles(const FloatArray& x, const FloatArray& y, const FloatArray& half_width,
                      const FloatArray& half_height, const FloatArray& charge) {
  require(y.size() == x.size() && half_width.size() == x.size() && half_height.size() == x.size() &&
          charge.size() == x.size());
  return {static_cast<std::int64_t>(x.size()), x.data(), y.data(), half_width.data(), half_height.data()};
}

void spread_onto(FloatArray x, FloatArray y, FloatArray half_width, FloatArray half_height, FloatArray charge, MapOut map) {
  const Bins bins{static_cast<std::int64_t>(map.shape(0)), static_cast<std::int64_t>(map.shape(1))};
  spread(rectangles(x, y, half_width, half_height, charge), charge.data(), bins, map.data());
}

void gather_from(FloatArray x, FloatArray y, FloatArray half_width, FloatArray half_height, FloatArray charge,
                 ConstMap map_x, ConstMap map_y, FloatsOut mean_x, FloatsOut mean_y) {
  const Bins bins{static_cast<std::int64_t>(map_x.shape(0)), static_cast<std::int64_t>(map_x.shape(1))};
  require(map_y.shape(0) == map_x.shape(0) && map_y.shape(1) == map_x.shape(1) && mean_x.size() == x.size() &&
          mean_y.size() == x.size());
  gather(rectangles(x, y, half_width, half_height, charge), charge.data(), bins, map_x.data(), map_y.data(),
         mean_x.data(), mean_y.data());
}

}  // namespace

NB_MODULE(_sums, m) {
  m.doc() = "Inner sums of the flat placer; use placement.flat.";
  m.def("weighted_average", &wirelength_of);
  m.def("spread", &spread_onto);
  m.def("gather", &gather_from);
  nb::dict handlers;
#ifdef PLACEMENT_XLA
  handlers["placement_flat_wirelength"] = capsule(wirelength_handler);
  handlers["placement_flat_spread"] = capsule(spread_handler);
  handlers["placement_flat_gather"] = capsule(gather_handler);
#endif
  m.attr("XLA_HANDLERS") = handlers;
}

}  // namespace placement::flat
