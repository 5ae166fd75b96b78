#include "analysis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace placement::flat::timing {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();
constexpr int kMostRounds = 10;  // of latches that lend time to each other

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

Analysis::Analysis(const Library& library, const Graph& graph, const Delays& delays, const Constraints& constraints)
    : library_(library), graph_(graph), delays_(delays), constraints_(constraints), times_(at(constraints.tags)) {
  for (std::int32_t tag = 0; tag < constraints.tags; ++tag) propagate(tag);
  has_settled = graph.passages.empty();
  for (int round = 0; round < kMostRounds && !has_settled; ++round) has_settled = !borrow();
  worst_.assign(at(graph.pins()), Endpoint{-1, -1, -1, kNever});
  for (auto& times : times_) times.required.assign(at(2 * graph.pins()), kNever);
  check();
  arrival.assign(at(graph.pins()), -kNever);
  required.assign(at(graph.pins()), kNever);
  slack.assign(at(graph.pins()), kNever);
  for (std::int32_t tag = 0; tag < constraints.tags; ++tag) require(tag);
  for (const Endpoint& one : worst_) {
    if (one.pin >= 0) endpoints.push_back(one);
  }
}

void Analysis::propagate(std::int32_t tag) {
  Times& times = times_[at(tag)];
  times.arrival.assign(at(2 * graph_.pins()), -kNever);
  times.start.assign(at(2 * graph_.pins()), -1);
  for (const Launch& launch : constraints_.launches) {
    if (launch.tag != tag || launch.time <= times.arrival[at(launch.vertex)]) continue;
    times.arrival[at(launch.vertex)] = launch.time;
    times.start[at(launch.vertex)] = launch.vertex;
  }
  for (const std::int32_t pin : graph_.order) {
    if (graph_.is_register_clock[at(pin)]) continue;  // only clocks launch there
    const std::int32_t driver = graph_.driver[at(pin)];
    for (std::int64_t vertex = 2 * static_cast<std::int64_t>(pin); vertex < 2 * static_cast<std::int64_t>(pin) + 2; ++vertex) {
      float latest = times.arrival[at(vertex)];
      std::int32_t start = times.start[at(vertex)];
      if (driver >= 0) {
        const std::int64_t from = 2 * static_cast<std::int64_t>(driver) + (vertex & 1);
        const float time = times.arrival[at(from)] + delays_.wire[at(pin)];
        if (time > latest) {
          latest = time;
          start = times.start[at(from)];
        }
      }
      for (std::int32_t edge = graph_.edge_start[at(vertex)]; edge < graph_.edge_start[at(vertex + 1)]; ++edge) {
        const std::int32_t from = graph_.edges[at(edge)].from;
        if (from < 0) continue;
        const float time = times.arrival[at(from)] + delays_.edge[at(edge)];
        if (time > latest) {
          latest = time;
          start = times.start[at(from)];
        }
      }
      if (!times.borrowed.empty() && times.borrowed[at(vertex)] > latest) {
        latest = times.borrowed[at(vertex)];
        start = static_cast<std::int32_t>(vertex);
      }
      times.arrival[at(vertex)] = latest;
      times.start[at(vertex)] = start;
    }
  }
}

// Visits the clock edges (numbers, capture times) against which data of a tag is checked: those that close a latch.
template <typename Visit>
void Analysis::each_capture(const Check& check, std::int32_t tag, Visit visit) const {
  const std::int32_t group = constraints_.group[check.data];
  const float* const capture =
      constraints_.capture + (static_cast<std::int64_t>(tag) * constraints_.groups + group) * constraints_.edges;
  const bool is_falling = check.is_falling != 0;
  for (std::int32_t edge = 0; edge < constraints_.edges; ++edge) {
    const bool falls = (edge & 1) != 0;
    const std::uint32_t mask = falls == is_falling ? constraints_.plain[check.clock] : constraints_.inverted[check.clock];
    if ((mask >> (edge / 2)) & 1U && std::isfinite(capture[edge])) visit(edge, capture[edge]);
  }
}

// How long a latch is open before the edge that closes it.
float Analysis::open_time(std::int32_t edge) const {
  const float width = constraints_.edge_time[edge] - constraints_.edge_time[edge ^ 1];
  return width > 0 ? width : width + constraints_.period[edge / 2];
}

// What latches lend to the paths behind them, into `borrowed`; whether any grew.
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
        const float delay = library_.look_up(passage.delay_table, delays_.slew[at(passage.from)], load);
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
    if (grew[at(tag)]) propagate(tag);
    any |= grew[at(tag)] != 0;
  }
  return any;
}

void Analysis::end(std::int32_t tag, std::int32_t vertex, float limit, float found) {
  float& required = times_[at(tag)].required[at(vertex)];
  required = std::min(required, limit);
  Endpoint& worst = worst_[at(vertex / 2)];
  if (found < worst.slack) worst = {vertex, tag, times_[at(tag)].start[at(vertex)], found};
}

void Analysis::check() {
  for (const Check& check : graph_.checks) {
    for (std::int32_t tag = 0; tag < constraints_.tags; ++tag) {
      for (std::int32_t falls = 0; falls < 2; ++falls) {
        const std::int32_t vertex = 2 * check.data + falls;
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
        // Data that comes while a latch is open takes the time from the path behind it.
        each_capture(check, tag, [&](std::int32_t edge, float closing) {
          const float opening = closing - open_time(edge);
          const float found = time <= opening ? opening - time : std::min(closing - setup - time, 0.0F);
          end(tag, vertex, time + found, found);
        });
      }
    }
  }
  for (const PortCheck& port : constraints_.ports) {
    for (std::int32_t tag = 0; tag < constraints_.tags; ++tag) {
      const std::int32_t group = constraints_.group[port.pin];
      const float capture =
          constraints_.capture[(static_cast<std::int64_t>(tag) * constraints_.groups + group) * constraints_.edges + port.edge];
      for (std::int32_t falls = 0; falls < 2 && std::isfinite(capture); ++falls) {
        const std::int32_t vertex = 2 * port.pin + falls;
        const float time = times_[at(tag)].arrival[at(vertex)];
        const float limit = capture - port.delay[falls];
        if (time != -kNever) end(tag, vertex, limit, limit - time);
      }
    }
  }
}

void Analysis::require(std::int32_t tag) {
  Times& times = times_[at(tag)];
  for (auto one = graph_.order.rbegin(); one != graph_.order.rend(); ++one) {
    const std::int32_t pin = *one, driver = graph_.driver[at(pin)];
    for (std::int64_t vertex = 2 * static_cast<std::int64_t>(pin); vertex < 2 * static_cast<std::int64_t>(pin) + 2; ++vertex) {
      const float limit = times.required[at(vertex)], time = times.arrival[at(vertex)];
      if (limit == kNever) continue;
      if (driver >= 0) {
        float& before = times.required[at(2 * static_cast<std::int64_t>(driver) + (vertex & 1))];
        before = std::min(before, limit - delays_.wire[at(pin)]);
      }
      for (std::int32_t edge = graph_.edge_start[at(vertex)]; edge < graph_.edge_start[at(vertex + 1)]; ++edge) {
        const std::int32_t from = graph_.edges[at(edge)].from;
        if (from >= 0) times.required[at(from)] = std::min(times.required[at(from)], limit - delays_.edge[at(edge)]);
      }
      if (time == -kNever || limit - time >= slack[at(pin)]) continue;
      slack[at(pin)] = limit - time;
      arrival[at(pin)] = time;
      required[at(pin)] = limit;
    }
  }
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
