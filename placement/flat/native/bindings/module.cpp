// The module: the sums of the electrostatic placer, the router, rows (bind_rows.cpp), and timing (bind_timing.cpp).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "../routing/router.hpp"
#include "../sums/sums.hpp"
#include "owned.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace placement::flat {

void bind_rows(nb::module_& m);    // bind_rows.cpp
void bind_timing(nb::module_& m);  // bind_timing.cpp

namespace {

using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
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

nb::dict estimate_of(const route::Estimate& found, const route::Gcells& gcells) {
  nb::dict result;
  result["tree_length"] = found.tree_length;
  result["routed_length"] = found.routed_length;
  result["excess"] = nb::make_tuple(found.excess[0], found.excess[1]);
  result["demand_length"] = nb::make_tuple(found.demand[0], found.demand[1]);
  result["demand"] = owned(gcells.demand());
  return result;
}

nb::dict route_nets(Floats x, Floats y, Integers start, std::int32_t across, std::int32_t up, double gcell_width,
                    double gcell_height, Floats capacity, std::int32_t rounds) {
  const route::GridSize size{across, up, gcell_width, gcell_height};
  if (across < 2 || up < 2) throw std::invalid_argument("route: the grid must be at least 2 x 2");
  if (capacity.size() != static_cast<std::size_t>(size.edges())) throw std::invalid_argument("route: one capacity per edge");
  if (start.size() < 1 || x.size() != y.size() || start.data()[0] != 0 ||
      start.data()[start.size() - 1] != static_cast<std::int32_t>(x.size())) {
    throw std::invalid_argument("route: net starts that do not fit the pins");
  }
  for (std::size_t net = 1; net < start.size(); ++net) {
    if (start.data()[net] < start.data()[net - 1]) throw std::invalid_argument("route: net starts must rise");
  }
  const auto hear_signals = [] {
    nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
  route::Router router(size, std::vector<float>(capacity.data(), capacity.data() + capacity.size()), hear_signals);
  route::Estimate found;
  {
    nb::gil_scoped_release release;
    router.add_nets(x.data(), y.data(), start.data(), static_cast<std::int64_t>(start.size()) - 1);
    found = router.route(rounds);
  }
  return estimate_of(found, router.gcells());
}

// The length of the tree over pins, µm.
double tree_length(Floats x, Floats y) {
  std::vector<route::Point> pins;
  for (std::size_t pin = 0; pin < x.size(); ++pin) pins.push_back({x.data()[pin], y.data()[pin]});
  route::TreeBuilder builder;
  return builder.build(pins.data(), static_cast<std::int64_t>(pins.size())).length();
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Inner sums of the electrostatic placer, the router, rows, and timing. Use them through placement.flat.";
  m.def("weighted_average", &wirelength_of);
  m.def("spread", &spread_onto);
  m.def("gather", &gather_from);
  m.def("route", &route_nets, "x"_a, "y"_a, "start"_a, nb::kw_only(), "across"_a, "up"_a,
        "gcell_width"_a, "gcell_height"_a, "capacity"_a, "rounds"_a);
  m.def("tree_length", &tree_length, "x"_a, "y"_a);
  bind_rows(m);
  bind_timing(m);
}

}  // namespace placement::flat
