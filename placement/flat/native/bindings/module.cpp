// The module: sums of the electrostatic placer, router, rows (bind_rows.cpp), and timing (bind_timing.cpp).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
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
  if (!fits) throw nb::value_error("the arrays must have the same length");
}

Wirelength wirelength_of(std::int64_t nodes, Integers net_start, Integers pin_node, Floats pin_x, Floats pin_y,
                         Floats net_weight) {
  const auto nets = static_cast<std::int64_t>(net_weight.size());
  require(static_cast<std::int64_t>(net_start.size()) == nets + 1 && pin_x.size() == pin_node.size() &&
          pin_y.size() == pin_node.size() && net_start.data()[nets] == static_cast<std::int64_t>(pin_node.size()));
  return {nodes, nets, net_start.data(), pin_node.data(), pin_x.data(), pin_y.data(), net_weight.data()};
}

double gradient_of(const Wirelength& wirelength, Floats x, Floats y, float per_gamma, FloatsOut gradient_x,
                   FloatsOut gradient_y) {
  const auto nodes = static_cast<std::size_t>(wirelength.nodes());
  require(x.size() == nodes && y.size() == nodes && gradient_x.size() == nodes && gradient_y.size() == nodes);
  return wirelength.gradient(x.data(), y.data(), per_gamma, gradient_x.data(), gradient_y.data());
}

Rectangles rectangles(const Floats& x, const Floats& y, const Floats& half_width, const Floats& half_height,
                      const Floats& charge) {
  require(y.size() == x.size() && half_width.size() == x.size() && half_height.size() == x.size() &&
          charge.size() == x.size());
  return {static_cast<std::int64_t>(x.size()), x.data(), y.data(), half_width.data(), half_height.data()};
}

template <class AnyMap>
Bins bins_of(const AnyMap& map) {
  if (map.shape(0) < 3 || map.shape(1) < 4) throw nb::value_error("the map must have at least 3 x 4 bins");
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

// For arrays [2, nodes].
void require_like(const Map& first, std::initializer_list<ConstMap> others) {
  for (const ConstMap& other : others) require(other.shape(0) == first.shape(0) && other.shape(1) == first.shape(1));
}

double step_to(ConstMap major, ConstMap reference, ConstMap gradient, ConstMap low, ConstMap high, float step,
               float carry, Map new_major, Map new_reference) {
  require_like(new_major, {major, reference, gradient, low, high, ConstMap(new_reference)});
  return nesterov_step(static_cast<std::int64_t>(new_major.size()), {major.data(), reference.data()}, gradient.data(),
                       low.data(), high.data(), step, carry, {new_major.data(), new_reference.data()});
}

void precondition(ConstMap wirelength, ConstMap density, Floats pins, Floats area, float weight, Map gradient) {
  require_like(gradient, {wirelength, density});
  const auto nodes = static_cast<std::int64_t>(gradient.shape(1));
  require(gradient.shape(0) == 2 && pins.size() == gradient.shape(1) && area.size() == pins.size());
  for (const std::int64_t first : {std::int64_t{0}, nodes}) {
    preconditioned(nodes, wirelength.data() + first, density.data() + first, pins.data(), area.data(), weight,
                   gradient.data() + first);
  }
}

double distance_between(ConstMap a, ConstMap b) {
  require(a.shape(0) == b.shape(0) && a.shape(1) == b.shape(1));
  return distance(static_cast<std::int64_t>(a.size()), a.data(), b.data());
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
  if (capacity.size() != static_cast<std::size_t>(size.edges())) {
    throw std::invalid_argument("route: one capacity per edge is needed");
  }
  if (start.size() < 1 || x.size() != y.size() || start.data()[0] != 0 ||
      start.data()[start.size() - 1] != static_cast<std::int32_t>(x.size())) {
    throw std::invalid_argument("route: the nets' starts do not match the pins");
  }
  for (std::size_t net = 1; net < start.size(); ++net) {
    if (start.data()[net] < start.data()[net - 1]) {
      throw std::invalid_argument("route: the nets' starts must not decrease");
    }
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

// Length of the tree over pins, µm.
double tree_length(Floats x, Floats y) {
  std::vector<route::Point> pins;
  for (std::size_t pin = 0; pin < x.size(); ++pin) pins.push_back({x.data()[pin], y.data()[pin]});
  route::TreeBuilder builder;
  return builder.build(pins.data(), static_cast<std::int64_t>(pins.size())).length();
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Inner sums of the electrostatic placer, the router, rows, and timing. Use them through placement.flat.";
  nb::class_<Wirelength>(m, "Wirelength")
      .def("__init__", [](Wirelength* self, std::int64_t nodes, Integers start, Integers node, Floats x, Floats y,
                          Floats weight) { new (self) Wirelength(wirelength_of(nodes, start, node, x, y, weight)); })
      .def("gradient", &gradient_of);
  m.def("spread", &spread_onto);
  m.def("gather", &gather_from);
  m.def("nesterov_step", &step_to);
  m.def("preconditioned", &precondition);
  m.def("distance", &distance_between);
  m.def("route", &route_nets, "x"_a, "y"_a, "start"_a, nb::kw_only(), "across"_a, "up"_a,
        "gcell_width"_a, "gcell_height"_a, "capacity"_a, "rounds"_a);
  m.def("tree_length", &tree_length, "x"_a, "y"_a);
  bind_rows(m);
  bind_timing(m);
}

}  // namespace placement::flat
