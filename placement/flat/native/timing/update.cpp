#include "update.hpp"

#include <algorithm>
#include <queue>

namespace placement::flat::timing {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// A queue of pins sorted by rank times `sign`, without duplicates.
class Queue {
 public:
  Queue(const Graph& graph, std::int32_t sign) : graph_(graph), sign_(sign), waits_(at(graph.pins()), 0) {}

  void add(std::int32_t pin) {
    if (waits_[at(pin)]) return;
    waits_[at(pin)] = 1;
    ranks_.push(-sign_ * graph_.rank[at(pin)]);
  }

  bool is_empty() const { return ranks_.empty(); }

  std::int32_t next() {
    const std::int32_t pin = graph_.order[at(-sign_ * ranks_.top())];
    ranks_.pop();
    waits_[at(pin)] = 0;
    return pin;
  }

 private:
  const Graph& graph_;
  std::int32_t sign_;
  std::vector<std::int8_t> waits_;
  std::priority_queue<std::int32_t> ranks_;
};

}  // namespace

void update(const Library& library, const Netlist& netlist, const Graph& graph, const WireModel& model,
            const std::vector<std::int32_t>& moved, const float* x, const float* y, const float* slew_at, Delays& delays,
            Analysis& analysis) {
  if (!graph.passages.empty()) {
    compute_delays(library, netlist, graph, model, x, y, slew_at, delays);
    analysis.run();
    return;
  }
  std::vector<std::int32_t> nets, sources;
  for (const std::int32_t pin : moved) nets.push_back(graph.net[at(pin)]);
  std::sort(nets.begin(), nets.end());
  nets.erase(std::unique(nets.begin(), nets.end()), nets.end());
  Queue forward(graph, 1), backward(graph, -1);
  for (const std::int32_t net : nets) {
    const std::int32_t driver = graph.net_driver[at(net)];
    price_net(library, netlist, model, net, driver, x, y, delays);
    for (std::int32_t pin = netlist.net_start[net]; pin < netlist.net_start[net + 1]; ++pin) forward.add(pin);
    if (driver >= 0) backward.add(driver);
  }
  while (!forward.is_empty()) {
    const std::int32_t pin = forward.next(), net = graph.net[at(pin)];
    sources.clear();
    const bool has_slewed = price_pin(library, graph, slew_at, pin, delays, &sources);
    for (const std::int32_t source : sources) backward.add(source);
    if (!analysis.arrive(pin) && !has_slewed) continue;
    backward.add(pin);
    for (std::int32_t sink = netlist.net_start[net]; sink < netlist.net_start[net + 1]; ++sink) {
      if (graph.driver[at(sink)] == pin) forward.add(sink);
    }
    for (std::int32_t out = graph.out_start[at(2 * pin)]; out < graph.out_start[at(2 * pin + 2)]; ++out) {
      forward.add(graph.out[at(out)].to / 2);
    }
  }
  while (!backward.is_empty()) {
    const std::int32_t pin = backward.next(), driver = graph.driver[at(pin)];
    if (!analysis.require(pin)) continue;
    if (driver >= 0) backward.add(driver);
    for (std::int32_t edge = graph.edge_start[at(2 * pin)]; edge < graph.edge_start[at(2 * pin + 2)]; ++edge) {
      const std::int32_t from = graph.edges[at(edge)].from;
      if (from >= 0) backward.add(from / 2);
    }
  }
  analysis.list_ends();
}

}  // namespace placement::flat::timing
