// The module: the sums of the electrostatic placer, and the router.
#include "../sums/density.hpp"
#include "../sums/wirelength.hpp"
#include "bindings.hpp"

namespace nb = nanobind;

namespace placement::flat {
namespace {

using FloatsOut = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstMap = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Map = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool fits) {
  if (!fits) throw nb::value_error("arrays of different lengths");
}

double wirelength_of(Floats x, Floats y, Integers net_start, Integers pin_node, Floats offset_x, Floats offset_y,
                     Floats net_weight, Integers node_start, Integers node_pins, float per_gamma, FloatsOut gradient_x,
                     FloatsOut gradient_y) {
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

Rectangles rectangles(const Floats& x, const Floats& y, const Floats& half_width, const Floats& half_height,
                      const Floats& charge) {
  require(y.size() == x.size() && half_width.size() == x.size() && half_height.size() == x.size() &&
          charge.size() == x.size());
  return {static_cast<std::int64_t>(x.size()), x.data(), y.data(), half_width.data(), half_height.data()};
}

template <class AnyMap>
Bins bins_of(const AnyMap& map) {
  return {static_cast<std::int64_t>(map.shape(0)), static_cast<std::int64_t>(map.shape(1))};
}

void spread_onto(Floats x, Floats y, Floats half_width, Floats half_height, Floats charge, Map map) {
  spread(rectangles(x, y, half_width, half_height, charge), charge.data(), bins_of(map), map.data());
}

void gather_from(Floats x, Floats y, Floats half_width, Floats half_height, Floats charge, ConstMap map_x,
                 ConstMap map_y, FloatsOut mean_x, FloatsOut mean_y) {
  require(map_y.shape(0) == map_x.shape(0) && map_y.shape(1) == map_x.shape(1) && mean_x.size() == x.size() &&
          mean_y.size() == x.size());
  gather(rectangles(x, y, half_width, half_height, charge), charge.data(), bins_of(map_x), map_x.data(), map_y.data(),
         mean_x.data(), mean_y.data());
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Inner sums of the electrostatic placer, the router, and rows. Use them through placement.flat.";
  m.def("weighted_average", &wirelength_of);
  m.def("spread", &spread_onto);
  m.def("gather", &gather_from);
  bind_routing(m);
  bind_rows(m);
}

}  // namespace placement::flat
