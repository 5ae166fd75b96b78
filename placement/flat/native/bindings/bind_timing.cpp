// Python bindings of the timing graph, which is built once and analysed for each placement.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../timing/analysis.hpp"
#include "../timing/delays.hpp"
#include "../timing/graph.hpp"
#include "../timing/update.hpp"
#include "owned.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace placement::flat {
namespace {

template <class Number>
using Column = nb::ndarray<const Number, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = Column<std::int32_t>;
using Bytes = Column<std::int8_t>;
using Floats = Column<float>;
using Masks = Column<std::uint32_t>;

void require(bool fits, const char* what) {
  if (!fits) throw std::invalid_argument(std::string("timing: ") + what);
}

void require_range(const Integers& values, std::int64_t low, std::int64_t high, const char* what) {
  for (std::size_t i = 0; i < values.size(); ++i) require(values.data()[i] >= low && values.data()[i] < high, what);
}

void require_starts(const Integers& starts, std::int64_t end, const char* what) {
  require(starts.size() > 0 && starts.data()[0] == 0 && starts.data()[starts.size() - 1] == end, what);
  for (std::size_t i = 1; i < starts.size(); ++i) require(starts.data()[i] >= starts.data()[i - 1], what);
}

struct LibraryColumns {
  Integers pin_start, arc_start, arc_from, arc_to, arc_tables, rows, columns, offset;
  Bytes is_latch, direction, arc_kind, arc_sense;
  Floats rise_capacitance, fall_capacitance, max_capacitance, numbers;

  explicit LibraryColumns(const nb::dict& from) {
    const auto take = [&](const char* name, auto& into) { into = nb::cast<std::decay_t<decltype(into)>>(from[name]); };
    take("pin_start", pin_start);
    take("arc_start", arc_start);
    take("arc_from", arc_from);
    take("arc_to", arc_to);
    take("arc_tables", arc_tables);
    take("rows", rows);
    take("columns", columns);
    take("offset", offset);
    take("is_latch", is_latch);
    take("direction", direction);
    take("arc_kind", arc_kind);
    take("arc_sense", arc_sense);
    take("rise_capacitance", rise_capacitance);
    take("fall_capacitance", fall_capacitance);
    take("max_capacitance", max_capacitance);
    take("numbers", numbers);
  }

  timing::Library view() const {
    const auto pins = static_cast<std::int64_t>(direction.size()), arcs = static_cast<std::int64_t>(arc_from.size());
    const auto tables = static_cast<std::int64_t>(rows.size());
    require(pin_start.size() == is_latch.size() + 1 && arc_start.size() == pin_start.size(), "cells of the library");
    require_starts(pin_start, pins, "pins of the library's cells");
    require_starts(arc_start, arcs, "arcs of the library's cells");
    require(rise_capacitance.size() == direction.size() && fall_capacitance.size() == direction.size() &&
                max_capacitance.size() == direction.size(), "capacitances of the library's pins");
    require(arc_to.size() == arc_from.size() && arc_kind.size() == arc_from.size() && arc_sense.size() == arc_from.size() &&
                arc_tables.size() == 4 * arc_from.size(), "arcs of the library");
    require_range(arc_from, 0, pins, "the library's arcs begin at pins");
    require_range(arc_to, 0, pins, "the library's arcs end at pins");
    require_range(arc_tables, -1, tables, "the library's arcs have tables");
    require(columns.size() == rows.size() && offset.size() == rows.size(), "tables of the library");
    for (std::int64_t table = 0; table < tables; ++table) {
      const std::int64_t down = rows.data()[table], across = columns.data()[table], begin = offset.data()[table];
      require(down > 0 && across > 0 && begin >= 0 &&
                  begin + down + across + down * across <= static_cast<std::int64_t>(numbers.size()), "numbers of the library");
    }
    return {static_cast<std::int64_t>(is_latch.size()), pins, arcs, tables, static_cast<std::int64_t>(numbers.size()),
            pin_start.data(), arc_start.data(), is_latch.data(), direction.data(), rise_capacitance.data(),
            fall_capacitance.data(), max_capacitance.data(), arc_from.data(), arc_to.data(), arc_kind.data(),
            arc_sense.data(), arc_tables.data(), rows.data(), columns.data(), offset.data(), numbers.data()};
  }
};

struct NetlistColumns {
  Integers cell, instance, library_pin, net_start;
  Bytes port;

  timing::Netlist view(const timing::Library& library) const {
    const auto pins = static_cast<std::int64_t>(instance.size()), instances = static_cast<std::int64_t>(cell.size());
    require(library_pin.size() == instance.size() && port.size() == instance.size(), "pins of the netlist");
    require_range(cell, -1, library.cells, "cells of the netlist");
    require_range(instance, -1, instances, "instances of the netlist's pins");
    require_range(library_pin, -1, library.pins, "pins of the netlist in the library");
    require_starts(net_start, pins, "nets of the netlist");
    return {instances, pins, static_cast<std::int64_t>(net_start.size()) - 1, cell.data(), instance.data(),
            library_pin.data(), port.data(), net_start.data()};
  }
};

class TimingGraph {
 public:
  TimingGraph(const nb::dict& library, Integers cell, Integers instance, Integers library_pin, Bytes port, Integers net_start)
      : library_columns_(library),
        netlist_columns_{cell, instance, library_pin, net_start, port},
        library_(library_columns_.view()),
        netlist_(netlist_columns_.view(library_)),
        graph_(std::make_unique<timing::Graph>(library_, netlist_)) {}

  nb::tuple clocks(const std::vector<std::int32_t>& pin, const std::vector<std::int32_t>& clock,
                   const std::vector<bool>& is_generated) const {
    require(pin.size() == clock.size() && pin.size() == is_generated.size(), "one clock for each source");
    for (const std::int32_t one : pin) require(one >= 0 && one < graph_->pins(), "sources of clocks");
    std::vector<std::uint32_t> plain, inverted;
    graph_->spread_clocks(pin, clock, is_generated, plain, inverted);
    return nb::make_tuple(owned(std::move(plain)), owned(std::move(inverted)));
  }

  void constrain(Integers launch_vertex, Integers launch_tag, Floats launch_time, Integers port_pin, Integers port_edge,
                 Floats port_delay, Floats capture, Integers group, Masks plain, Masks inverted, Floats edge_time,
                 Floats edge_offset, Floats period, Integers tag_of_edge, Floats slew_at, Floats load_at, Bytes blocked, std::int32_t tags, std::int32_t groups) {
    const auto pins = static_cast<std::size_t>(graph_->pins());
    const auto edges = static_cast<std::int32_t>(edge_time.size());
    require(launch_tag.size() == launch_vertex.size() && launch_time.size() == launch_vertex.size(), "launches");
    require(port_edge.size() == port_pin.size() && port_delay.size() == 2 * port_pin.size(), "checks of ports");
    require(tags >= 0 && groups > 0 && edges % 2 == 0 && edges <= 64, "at most 32 clocks");
    require(capture.size() == static_cast<std::size_t>(tags) * static_cast<std::size_t>(groups) * static_cast<std::size_t>(edges),
            "one capture time for each tag, group and edge");
    require(slew_at.size() == pins && load_at.size() == pins && blocked.size() == pins,
            "one slew, one load and one mark for each pin");
    require(group.size() == pins && plain.size() == pins && inverted.size() == pins, "one group and two masks for each pin");
    require_range(launch_vertex, 0, 2 * graph_->pins(), "launches begin at vertices");
    require_range(launch_tag, 0, tags, "launches have tags");
    require_range(port_pin, 0, graph_->pins(), "checks of ports are at pins");
    require_range(port_edge, 0, edges, "checks of ports have edges");
    require_range(group, 0, groups, "groups of endpoints");
    require(tag_of_edge.size() == edge_time.size() && edge_offset.size() == edge_time.size() &&
                2 * period.size() == edge_time.size(), "one tag and offset for each edge, one period for each clock");
    require_range(tag_of_edge, -1, tags, "tags of edges");
    timing::Constraints constraints{tags, groups, edges, {}, {}, capture.data(), group.data(), plain.data(),
                                    inverted.data(), edge_time.data(), edge_offset.data(), period.data(),
                                    tag_of_edge.data(), blocked.data()};
    for (std::size_t i = 0; i < launch_vertex.size(); ++i) {
      constraints.launches.push_back({launch_vertex.data()[i], launch_tag.data()[i], launch_time.data()[i]});
    }
    for (std::size_t i = 0; i < port_pin.size(); ++i) {
      constraints.ports.push_back({port_pin.data()[i], port_edge.data()[i], {port_delay.data()[2 * i], port_delay.data()[2 * i + 1]}});
    }
    columns_ = {capture, group, plain, inverted, edge_time, edge_offset, period, tag_of_edge, blocked};
    slew_at_ = slew_at;
    load_at_ = load_at;
    netlist_.load_at = load_at_.data();
    analysis_ = std::make_unique<timing::Analysis>(library_, netlist_, *graph_, delays_, std::move(constraints));
    is_timed_ = false;
  }

  void price(Floats x, Floats y, float delay_per_um, float capacitance_per_um, float most_load, float stage_delay,
             float fanout_ratio, float cell_factor) {
    const auto pins = static_cast<std::size_t>(graph_->pins());
    require(analysis_ != nullptr, "constrain the graph first");
    require(x.size() == pins && y.size() == pins, "one place for each pin");
    require(most_load > 0 && fanout_ratio > 1, "most_load must be above 0, fanout_ratio above 1");
    model_ = {delay_per_um, capacitance_per_um, most_load, stage_delay, fanout_ratio, cell_factor};
    nb::gil_scoped_release release;
    x_.assign(x.data(), x.data() + pins);
    y_.assign(y.data(), y.data() + pins);
    timing::compute_delays(library_, netlist_, *graph_, model_, x_.data(), y_.data(), slew_at_.data(), delays_);
    is_timed_ = false;
  }

  nb::dict analyse(std::int32_t worst) {
    require(delays_.wire.size() == static_cast<std::size_t>(graph_->pins()), "price the wires first");
    {
      nb::gil_scoped_release release;
      analysis_->run();
    }
    is_timed_ = true;
    return result(*analysis_, worst);
  }

  nb::dict move(Integers pin, Floats x, Floats y, std::int32_t worst) {
    require(is_timed_, "analyse the graph first");
    require(x.size() == pin.size() && y.size() == pin.size(), "one place for each moved pin");
    require_range(pin, 0, graph_->pins(), "moved pins");
    {
      nb::gil_scoped_release release;
      const std::vector<std::int32_t> moved(pin.data(), pin.data() + pin.size());
      for (std::size_t i = 0; i < moved.size(); ++i) {
        x_[static_cast<std::size_t>(moved[i])] = x.data()[i];
        y_[static_cast<std::size_t>(moved[i])] = y.data()[i];
      }
      timing::update(library_, netlist_, *graph_, model_, moved, x_.data(), y_.data(), slew_at_.data(), delays_, *analysis_);
    }
    return result(*analysis_, worst);
  }

  nb::dict facts() const {
    nb::dict to;
    to["cut_edges"] = graph_->cut_edges;
    to["cut_pins"] = owned(graph_->cut_pins);
    to["undriven_nets"] = graph_->undriven_nets;
    to["multiply_driven_nets"] = graph_->multiply_driven_nets;
    to["driver"] = owned(graph_->driver);
    to["net_driver"] = owned(graph_->net_driver);
    to["is_register_clock"] = owned(graph_->is_register_clock);
    std::vector<std::int32_t> data, clock;
    for (const timing::Check& check : graph_->checks) {
      data.push_back(check.data);
      clock.push_back(check.clock);
    }
    to["check_data"] = owned(std::move(data));
    to["check_clock"] = owned(std::move(clock));
    return to;
  }

  nb::dict delays() const {
    nb::dict to;
    to["wire"] = owned(delays_.wire);
    to["load_rise"] = owned(delays_.load[0]);
    to["load_fall"] = owned(delays_.load[1]);
    to["slew"] = owned(delays_.slew);
    return to;
  }

 private:
  nb::dict result(const timing::Analysis& found, std::int32_t worst) const {
    nb::dict to;
    to["slack"] = owned(found.slack);
    to["has_settled"] = found.has_settled;
    std::vector<std::int32_t> vertex, start, tag;
    std::vector<float> slack;
    std::vector<std::pair<float, std::size_t>> order;
    for (const timing::Endpoint& one : found.endpoints) {
      order.emplace_back(one.slack, vertex.size());
      vertex.push_back(one.pin);
      start.push_back(one.start);
      tag.push_back(one.tag);
      slack.push_back(one.slack);
    }
    std::sort(order.begin(), order.end());
    nb::list paths;
    for (std::size_t rank = 0; rank < order.size() && rank < static_cast<std::size_t>(std::max(worst, 0)); ++rank) {
      const timing::Endpoint& one = found.endpoints[order[rank].second];
      std::vector<std::int32_t> vertices = found.path(one);
      std::vector<float> times;
      for (const std::int32_t at : vertices) times.push_back(found.arrival_at(one.tag, at));
      paths.append(nb::make_tuple(one.slack, one.tag, owned(std::move(vertices)), owned(std::move(times))));
    }
    to["paths"] = paths;
    to["end"] = owned(std::move(vertex));
    to["start"] = owned(std::move(start));
    to["tag"] = owned(std::move(tag));
    to["end_slack"] = owned(std::move(slack));
    return to;
  }

  LibraryColumns library_columns_;
  NetlistColumns netlist_columns_;
  timing::Library library_;
  timing::Netlist netlist_;
  std::unique_ptr<timing::Graph> graph_;
  struct Columns {
    Floats capture;
    Integers group;
    Masks plain, inverted;
    Floats edge_time, edge_offset, period;
    Integers tag_of_edge;
    Bytes blocked;
  } columns_;  // storage of the constraints' arrays
  Floats slew_at_, load_at_;
  timing::WireModel model_{};
  std::vector<float> x_, y_;  // [pins]
  timing::Delays delays_;
  std::unique_ptr<timing::Analysis> analysis_;
  bool is_timed_ = false;  // whether the analysis belongs to the current delays
};

}  // namespace

void bind_timing(nb::module_& m) {
  nb::class_<TimingGraph>(m, "TimingGraph")
      .def(nb::init<const nb::dict&, Integers, Integers, Integers, Bytes, Integers>(), "library"_a, nb::kw_only(), "cell"_a,
           "instance"_a, "library_pin"_a, "port"_a, "net_start"_a)
      .def("facts", &TimingGraph::facts)
      .def("clocks", &TimingGraph::clocks, "pin"_a, "clock"_a, "is_generated"_a)
      .def("constrain", &TimingGraph::constrain, nb::kw_only(), "launch_vertex"_a, "launch_tag"_a, "launch_time"_a, "port_pin"_a,
           "port_edge"_a, "port_delay"_a, "capture"_a, "group"_a, "plain"_a, "inverted"_a, "edge_time"_a, "edge_offset"_a,
           "period"_a, "tag_of_edge"_a, "slew_at"_a, "load_at"_a, "blocked"_a, "tags"_a, "groups"_a)
      .def("price", &TimingGraph::price, "x"_a, "y"_a, nb::kw_only(), "delay_per_um"_a, "capacitance_per_um"_a, "most_load"_a,
           "stage_delay"_a, "fanout_ratio"_a, "cell_factor"_a)
      .def("delays", &TimingGraph::delays)
      .def("analyse", &TimingGraph::analyse, nb::kw_only(), "worst"_a)
      .def("move", &TimingGraph::move, "pin"_a, "x"_a, "y"_a, nb::kw_only(), "worst"_a);
}

}  // namespace placement::flat
