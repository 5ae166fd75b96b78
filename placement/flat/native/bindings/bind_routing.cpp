// The router for Python.
#include <stdexcept>
#include <vector>

#include "../routing/router.hpp"
#include "bindings.hpp"

namespace nb = nanobind;

namespace placement::flat {
namespace {

nb::ndarray<nb::numpy, float> owned(const std::vector<float>& values) {
  auto* copy = new std::vector<float>(values);
  nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
  return nb::ndarray<nb::numpy, float>(copy->data(), {copy->size()}, owner);
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

void bind_routing(nb::module_& m) {
  m.def("route", &route_nets, nb::arg("x"), nb::arg("y"), nb::arg("start"), nb::kw_only(), nb::arg("across"), nb::arg("up"),
        nb::arg("gcell_width"), nb::arg("gcell_height"), nb::arg("capacity"), nb::arg("rounds"));
  m.def("tree_length", &tree_length, nb::arg("x"), nb::arg("y"));
}

}  // namespace placement::flat
