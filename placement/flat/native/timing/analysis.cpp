#include "analysis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace placement::flat::timing {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();
constexpr int kMostRounds = 10;  // rounds of time borrowing between latches

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

Analysis::Analysis(const Library& library, const Netlist& netlist, const Graph& graph, const Delays& delays,
                   Constraints constraints)
    : library_(library), netlist_(netlist), graph_(graph), delays_(delays), constraints_(std::move(constraints)),
      times_(at(constraints_.tags)) {
  const auto count = at(graph.pins());
  std::stable_sort(constraints_.launches.begin(), constraints_.launches.end(),
                   [](const Launch& one, const Launch& other) { return one.vertex / 2 < other.vertex / 2; });
  std::stable_sort(constraints_.ports.begin(), constraints_.ports.end(),
                   [](const PortCheck& one, const PortCheck& other) { return one.pin < other.pin; });
  has_launch_.assign(count, 0);
  for (const Launch& launch : constraints_.launches) has_launch_[at(launch.vertex / 2)] = 1;
  is_end_.assign(count, 0);
  for (const PortCheck& port : constraints_.ports) is_end_[at(port.pin)] = 1;
  check_start_.assign(count + 1, 0);
  for (const Check& check : graph.checks) {
    ++check_start_[at(check.data + 1)];
    is_end_[at(check.data)] = 1;
  }
  std::partial_sum(check_start_.begin(), check_start_.end(), check_start_.begin());
  check_.resize(graph.checks.size());
  std::vector<std::int32_t> place(check_start_.begin(), check_start_.end() - 1);
  for (std::size_t check = 0; check < graph.checks.size(); ++check) {
    check_[at(place[at(graph.checks[check].data)]++)] = static_cast<std::int32_t>(check);
  }
}

void Analysis::run() {
  const auto count = at(graph_.pins());
  for (Times& times : times_) {
    times.arrival.assign(2 * count, -kNever);
    times.required.assign(2 * count, kNever);
    times.start.assign(2 * count, -1);
    times.borrowed.clear();
  }
  for (const std::int32_t pin : graph_.order) arrive(pin);
  has_settled = graph_.passages.empty();
  for (int round = 0; round < kMostRounds && !has_settled; ++round) has_settled = !borrow();
  worst_.resize(count);
  slack.resize(count);
  for (auto pin = graph_.order.rbegin(); pin != graph_.order.rend(); ++pin) require(*pin);
  list_ends();
}

void Analysis::list_ends() {
  endpoints.clear();
  for (std::size_t pin = 0; pin < is_end_.size(); ++pin) {
    if (is_end_[pin] && worst_[pin].pin >= 0) endpoints.push_back(worst_[pin]);
  }
}

bool Analysis::arrive(std::int32_t pin) {
  bool has_changed = false;
  for (std::int32_t tag = 0; tag < constraints_.tags; ++tag) has_changed |= arrive(tag, pin);
  return has_changed;
}

bool Analysis::arrive(std::int32_t tag, std::int32_t pin) {
  Times& times = times_[at(tag)];
  float latest[2] = {-kNever, -kNever};
  std::int32_t start[2] = {-1, -1};
  const bool is_blocked = constraints_.blocked[pin] != 0;
  if (has_launch_[at(pin)] && !is_blocked) {
    auto launch = std::lower_bound(constraints_.launches.begin(), constraints_.launches.end(), pin,
                                   [](const Launch& one, std::int32_t value) { return one.vertex / 2 < value; });
    for (; launch != constraints_.launches.end() && launch->vertex / 2 == pin; ++launch) {
      if (launch->tag != tag || launch->time <= latest[launch->vertex & 1]) continue;
      latest[launch->vertex & 1] = launch->time;
      start[launch->vertex & 1] = launch->vertex;
    }
  }
  const std::int32_t driver = graph_.driver[at(pin)];
  bool has_changed = false;
  for (std::int32_t falls = 0; falls < 2; ++falls) {
    const std::int64_t vertex = 2 * static_cast<std::int64_t>(pin) + falls;
    const auto reach = [&](std::int64_t from, float delay) {
      const float time = times.arrival[at(from)] + delay;
      if (time <= latest[falls]) return;
      latest[falls] = time;
      start[falls] = times.start[at(from)];
    };
    if (!graph_.is_register_clock[at(pin)] && !is_blocked) {  // only clocks launch at register clock pins
      if (driver >= 0) reach(2 * static_cast<std::int64_t>(driver) + falls, delays_.wire[at(pin)]);
      for (std::int32_t edge = graph_.edge_start[at(vertex)]; edge < graph_.edge_start[at(vertex + 1)]; ++edge) {
        if (graph_.edges[at(edge)].from >= 0) reach(graph_.edges[at(edge)].from, delays_.edge[at(edge)]);
      }
      if (!times.borrowed.empty() && times.borrowed[at(vertex)] > latest[falls]) {
        latest[falls] = times.borrowed[at(vertex)];
        start[falls] = static_cast<std::int32_t>(vertex);
      }
    }
    has_changed |= latest[falls] != times.arrival[at(vertex)] || start[falls] != times.start[at(vertex)];
    times.arrival[at(vertex)] = latest[falls];
    times.start[at(vertex)] = start[falls];
  }
  return has_changed;
}

// Capture times of a tag's data at a pin, by capturing clock edge.
const float* Analysis::captures(std::int32_t tag, std::int32_t pin) const {
  const std::int64_t row = static_cast<std::int64_t>(tag) * constraints_.groups + constraints_.group[pin];
  return constraints_.capture + row * constraints_.edges;
}

// Visits the clock edges (numbers, capture times) against which data of a tag is checked; for a latch, the closing
// edges.
template <typename Visit>
void Analysis::each_capture(const Check& check, std::int32_t tag, Visit visit) const {
  const float* const capture = captures(tag, check.data);
  const bool is_falling = check.is_falling != 0;
  for (std::int32_t edge = 0; edge < constraints_.edges; ++edge) {
    const bool falls = (edge & 1) != 0;
    const std::uint32_t mask = falls == is_falling ? constraints_.plain[check.clock] : constraints_.inverted[check.clock];
    if ((mask >> (edge / 2)) & 1U && std::isfinite(capture[edge])) visit(edge, capture[edge]);
  }
}

// Time that a latch is open before its closing edge.
float Analysis::open_time(std::int32_t edge) const {
  const float width = constraints_.edge_time[edge] - constraints_.edge_time[edge ^ 1];
  return width > 0 ? width : width + constraints_.period[edge / 2];
}

// Updates `borrowed`, the time that latches lend to the paths behind them; returns whether any grew.
bool Analysis::borrow() {
  std::vector<std::int8_t> grew(at(constraints_.tags), 0);
  for (const Passage& passage : graph_.passages) {
    const Check& check = graph_.checks[at(passage.check)];
    const float load = delays_.load[passage.to & 1][at(graph_.net[at(passage.to / 2)])];
    for (std::int32_t tag = 0; tag < constraints_.tags; ++tag) {
      const float time = times_[at(tag)].arrival[at(passage.from)];
      if (time == -kNever) continue;
      each_capture(check, tag, [&](std::int32_t closes, float closing) {
        const std::int32_t opens = closes ^ 1, to = constraints_.tag_of_edge[opens];
        const float width = open_time(closes), opening = closing - width;
        if (to < 0 || time <= opening) return;
        const float delay = delays_.cell_factor * library_.look_up(passage.delay_table, delays_.slew[at(passage.from)], load);
        const float opened = constraints_.edge_time[opens] + constraints_.edge_offset[opens];
        const float late = opened + std::min(time - opening, width) + delay;
        auto& borrowed = times_[at(to)].borrowed;
        if (borrowed.empty()) borrowed.assign(at(2 * graph_.pins()), -kNever);
        if (late > borrowed[at(passage.to)] && late > times_[at(to)].arrival[at(passage.to)]) {
          borrowed[at(passage.to)] = late;
          grew[at(to)] = 1;
        }
      });
    }
  }
  bool any = false;
  for (std::int32_t tag = 0; tag < constraints_.tags; ++tag) {
    if (!grew[at(tag)]) continue;
    any = true;
    for (const std::int32_t pin : graph_.order) arrive(tag, pin);
  }
  return any;
}

void Analysis::end(std::int32_t tag, std::int32_t vertex, float limit, float found) {
  float& required = times_[at(tag)].required[at(vertex)];
  required = std::min(required, limit);
  Endpoint& worst = worst_[at(vertex / 2)];
  if (found < worst.slack) worst = {vertex, tag, times_[at(tag)].start[at(vertex)], found};
}

// The limits of a tag's data at a pin, from the clocks that capture it.
void Analysis::check(std::int32_t tag, std::int32_t pin) {
  for (std::int32_t place = check_start_[at(pin)]; place < check_start_[at(pin + 1)]; ++place) {
    const Check& check = graph_.checks[at(check_[at(place)])];
    for (std::int32_t falls = 0; falls < 2; ++falls) {
      const std::int32_t vertex = 2 * pin + falls;
      const float time = times_[at(tag)].arrival[at(vertex)];
      if (time == -kNever || check.tables[falls] < 0) continue;
      const float clock_slew = delays_.slew[at(2 * static_cast<std::int64_t>(check.clock) + check.is_falling)];
      const float setup = library_.look_up(check.tables[falls], clock_slew, delays_.slew[at(vertex)]);
      if (!check.is_latch) {
        each_capture(check, tag, [&](std::int32_t, float capture) {
          end(tag, vertex, capture - setup, capture - setup - time);
        });
        continue;
      }
      each_capture(check, tag, [&](std::int32_t edge, float closing) {
        const float opening = closing - open_time(edge);
        const float found = time <= opening ? opening - time : std::min(closing - setup - time, 0.0F);
        end(tag, vertex, time + found, found);
      });
    }
  }
  auto port = std::lower_bound(constraints_.ports.begin(), constraints_.ports.end(), pin,
                               [](const PortCheck& one, std::int32_t value) { return one.pin < value; });
  for (; port != constraints_.ports.end() && port->pin == pin; ++port) {
    const float capture = captures(tag, pin)[port->edge];
    for (std::int32_t falls = 0; falls < 2 && std::isfinite(capture); ++falls) {
      const std::int32_t vertex = 2 * pin + falls;
      const float time = times_[at(tag)].arrival[at(vertex)];
      const float limit = capture - port->delay[falls];
      if (time != -kNever) end(tag, vertex, limit, limit - time);
    }
  }
}

bool Analysis::require(std::int32_t pin) {
  const std::int32_t net = graph_.net[at(pin)];
  const bool drives = graph_.net_driver[at(net)] == pin;
  bool has_changed = false;
  worst_[at(pin)] = {-1, -1, -1, kNever};
  slack[at(pin)] = kNever;
  for (std::int32_t tag = 0; tag < constraints_.tags; ++tag) {
    Times& times = times_[at(tag)];
    float* const limits = &times.required[at(2 * static_cast<std::int64_t>(pin))];
    const float before[2] = {limits[0], limits[1]};
    limits[0] = limits[1] = kNever;
    if (is_end_[at(pin)]) check(tag, pin);
    for (std::int32_t sink = netlist_.net_start[net]; drives && sink < netlist_.net_start[net + 1]; ++sink) {
      if (graph_.driver[at(sink)] != pin) continue;
      for (int falls = 0; falls < 2; ++falls) {
        limits[falls] = std::min(limits[falls], times.required[at(2 * static_cast<std::int64_t>(sink) + falls)] - delays_.wire[at(sink)]);
      }
    }
    for (int falls = 0; falls < 2; ++falls) {
      const std::int64_t vertex = 2 * static_cast<std::int64_t>(pin) + falls;
      for (std::int32_t out = graph_.out_start[at(vertex)]; out < graph_.out_start[at(vertex + 1)]; ++out) {
        const Graph::Out& one = graph_.out[at(out)];
        limits[falls] = std::min(limits[falls], times.required[at(one.to)] - delays_.edge[at(one.edge)]);
      }
      if (constraints_.blocked[pin]) limits[falls] = kNever;
      has_changed |= limits[falls] != before[falls];
      const float time = times.arrival[at(vertex)];
      if (time != -kNever) slack[at(pin)] = std::min(slack[at(pin)], limits[falls] - time);
    }
  }
  return has_changed;
}

std::vector<std::int32_t> Analysis::path(const Endpoint& end) const {
  const Times& times = times_[at(end.tag)];
  std::vector<std::int32_t> vertices = {end.pin};
  while (vertices.back() != end.start) {
    const std::int32_t vertex = vertices.back(), driver = graph_.driver[at(vertex / 2)];
    std::int32_t from = driver >= 0 ? 2 * driver + (vertex & 1) : -1;
    float latest = -kNever;
    for (std::int32_t edge = graph_.edge_start[at(vertex)]; edge < graph_.edge_start[at(vertex + 1)] && driver < 0; ++edge) {
      const std::int32_t source = graph_.edges[at(edge)].from;
      if (source < 0) continue;
      const float time = times.arrival[at(source)] + delays_.edge[at(edge)];
      if (time > latest) {
        latest = time;
        from = source;
      }
    }
    if (from < 0) break;
    vertices.push_back(from);
  }
  std::reverse(vertices.begin(), vertices.end());
  return vertices;
}

}  // namespace placement::flat::timing
