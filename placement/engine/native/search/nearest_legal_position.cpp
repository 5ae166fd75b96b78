#include "search/legal_positions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "cost/legality.hpp"

namespace placement {
namespace {

struct Interval {
  double low, high;
};

bool inside(double at, double low, double high) { return at >= low - kLengthTolerance && at <= high + kLengthTolerance; }

// The nearest place to `start` inside [low, high] and in the open inside of no interval; NaN where there is none.
// Sorts the intervals.
double nearest_free(std::vector<Interval>& taken, double start, double low, double high) {
  const double begin = std::min(std::max(start, low), high);
  double up = begin, down = begin;
  std::sort(taken.begin(), taken.end(), [](const Interval& a, const Interval& b) { return a.low < b.low; });
  for (const Interval& one : taken) {
    if (one.low + kLengthTolerance >= up) break;
    if (one.high - kLengthTolerance > up) up = one.high;
  }
  std::sort(taken.begin(), taken.end(), [](const Interval& a, const Interval& b) { return a.high > b.high; });
  for (const Interval& one : taken) {
    if (one.high - kLengthTolerance <= down) break;
    if (one.low + kLengthTolerance < down) down = one.low;
  }
  const bool can_up = inside(up, low, high), can_down = inside(down, low, high);
  if (can_up && (!can_down || std::abs(up - start) <= std::abs(down - start))) return up;
  return can_down ? down : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::optional<std::array<double, 2>> nearest_legal_position(const std::array<double, 2>& start, const std::array<double, 2>& low,
                                                   const std::array<double, 2>& high, const PlacedBoxes& boxes) {
  // A nearest place is where the box was, at a limit, or touches another box, on each axis.
  std::vector<double> across = {std::min(std::max(start[0], low[0]), high[0])};
  const auto add = [&](double at) {
    if (inside(at, low[0], high[0])) across.push_back(at);
  };
  add(low[0]);
  add(high[0]);
  for (std::size_t i = 0; i < boxes.count; ++i) {
    add(boxes.x[i] - boxes.reach_x[i]);
    add(boxes.x[i] + boxes.reach_x[i]);
  }
  std::sort(across.begin(), across.end(),
            [&](double a, double b) { return std::abs(a - start[0]) < std::abs(b - start[0]); });
  // By x, so that a place across is compared with the boxes around it only.
  std::vector<std::size_t> order(boxes.count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return boxes.x[a] < boxes.x[b]; });
  const double widest = boxes.count ? *std::max_element(boxes.reach_x, boxes.reach_x + boxes.count) : 0;
  std::optional<std::array<double, 2>> best;
  double least = std::numeric_limits<double>::infinity();
  std::vector<Interval> taken;
  for (const double x : across) {
    const double distance = std::abs(x - start[0]);
    if (distance >= least) break;
    taken.clear();
    const auto first = std::partition_point(order.begin(), order.end(),
                                            [&](std::size_t i) { return boxes.x[i] < x - widest; });
    for (auto at = first; at != order.end() && boxes.x[*at] <= x + widest; ++at) {
      const std::size_t i = *at;
      if (std::abs(x - boxes.x[i]) < boxes.reach_x[i] - kLengthTolerance) {
        taken.push_back({boxes.y[i] - boxes.reach_y[i], boxes.y[i] + boxes.reach_y[i]});
      }
    }
    const double y = nearest_free(taken, start[1], low[1], high[1]);
    if (distance + std::abs(y - start[1]) < least) {  // not where NaN
      least = distance + std::abs(y - start[1]);
      best = {x, y};
    }
  }
  return best;
}

}  // namespace placement
