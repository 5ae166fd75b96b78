#include "paths.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <utility>

namespace placement::route {
namespace {

constexpr float kFull = 0.8f;     // fraction of an edge's capacity from which on a crossing costs more
constexpr float kSteep = 10.0f;   // cost of a crossing at double capacity, in edge lengths
constexpr float kHistory = 0.5f;  // price increase per round over capacity, in edge lengths
constexpr float kBend = 0.25f;  // cost of a bend's via, as a fraction of a gcell's width

}  // namespace

Gcells::Gcells(const GridSize& size, std::vector<float> capacity)
    : size_(size),
      capacity_(std::move(capacity)),
      demand_(capacity_.size(), 0.0f),
      history_(capacity_.size(), 0.0f),
      cost_(capacity_.size(), 0.0f) {
  for (std::int32_t edge = 0; edge < size_.edges(); ++edge) reprice(edge);
}

void Gcells::reprice(std::int32_t edge) {
  const float fill = (demand_[edge] + 1) / std::max(capacity_[edge], 0.1f);
  const float crowded = std::max(fill - kFull, 0.0f) / (2 - kFull);
  cost_[edge] = length(edge) * (1 + kSteep * std::min(crowded, 10.0f) + history_[edge]);
}

void Gcells::add(std::int32_t edge, float amount) {
  demand_[edge] += amount;
  reprice(edge);
}

void Gcells::remember() {
  for (std::int32_t edge = 0; edge < size_.edges(); ++edge) {
    if (!over(edge)) continue;
    const float beyond = demand_[edge] / std::max(capacity_[edge], 0.1f) - 1;
    history_[edge] += kHistory * (1 + std::min(beyond, 3.0f));
    reprice(edge);
  }
}

double Gcells::excess(int direction) const {
  double sum = 0;
  const std::int32_t first = direction == 0 ? 0 : size_.horizontal_edges();
  const std::int32_t last = direction == 0 ? size_.horizontal_edges() : size_.edges();
  for (std::int32_t edge = first; edge < last; ++edge) sum += std::max(demand_[edge] - capacity_[edge], 0.0f) * length(edge);
  return sum;
}

double Gcells::total(int direction) const {
  double sum = 0;
  const std::int32_t first = direction == 0 ? 0 : size_.horizontal_edges();
  const std::int32_t last = direction == 0 ? size_.horizontal_edges() : size_.edges();
  for (std::int32_t edge = first; edge < last; ++edge) sum += demand_[edge] * length(edge);
  return sum;
}

PathFinder::PathFinder(const Gcells& gcells)
    : gcells_(gcells), bend_(static_cast<float>(kBend * gcells.size().gcell_width)) {
  const std::size_t states = 2u * gcells.size().across * gcells.size().up;
  reached_.resize(states);
  came_.resize(states);
  seen_.assign(states, 0);
}

// Cost of the straight path between two gcells of one row or column; appends its edges to `path` if not null.
double PathFinder::walk(Gcell from, Gcell to, Path* path) const {
  double sum = 0;
  const GridSize& size = gcells_.size();
  const auto cross = [&](std::int32_t edge) {
    sum += gcells_.cost(edge);
    if (path) path->push_back(edge);
  };
  for (std::int32_t i = from.i; i < to.i; ++i) cross(size.right_of(i, from.j));
  for (std::int32_t i = from.i; i > to.i; --i) cross(size.right_of(i - 1, from.j));
  for (std::int32_t j = from.j; j < to.j; ++j) cross(size.above(to.i, j));
  for (std::int32_t j = from.j; j > to.j; --j) cross(size.above(to.i, j - 1));
  return sum;
}

double PathFinder::cost(const Path& path) const {
  double sum = 0;
  for (const std::int32_t edge : path) sum += gcells_.cost(edge);
  return sum;
}

void PathFinder::ell(Gcell from, Gcell to, Path& path) const {
  path.clear();
  const Gcell across{to.i, from.j}, up{from.i, to.j};
  const double first = walk(from, across, nullptr) + walk(across, to, nullptr);
  const double second = walk(from, up, nullptr) + walk(up, to, nullptr);
  const Gcell corner = second < first ? up : across;
  walk(from, corner, &path);
  walk(corner, to, &path);
}

void PathFinder::zed(Gcell from, Gcell to, Path& path) const {
  double best = std::numeric_limits<double>::max();
  Gcell first{}, second{};
  const auto consider = [&](Gcell a, Gcell b) {
    const bool bends_twice = (a.i != from.i || a.j != from.j) && (b.i != to.i || b.j != to.j);
    const double price = walk(from, a, nullptr) + walk(a, b, nullptr) + walk(b, to, nullptr) + (bends_twice ? 2 : 1) * bend_;
    if (price < best) {
      best = price;
      first = a;
      second = b;
    }
  };
  for (std::int32_t i = std::min(from.i, to.i); i <= std::max(from.i, to.i); ++i) consider({i, from.j}, {i, to.j});
  for (std::int32_t j = std::min(from.j, to.j); j <= std::max(from.j, to.j); ++j) consider({from.i, j}, {to.i, j});
  path.clear();
  walk(from, first, &path);
  walk(first, second, &path);
  walk(second, to, &path);
}

// A state is a gcell and the direction (0 across, 1 up) in which it was entered.
void PathFinder::maze(Gcell from, Gcell to, std::int32_t margin, Path& path) {
  const GridSize& size = gcells_.size();
  const std::int32_t low_i = std::max(std::min(from.i, to.i) - margin, 0), high_i = std::min(std::max(from.i, to.i) + margin, size.across - 1);
  const std::int32_t low_j = std::max(std::min(from.j, to.j) - margin, 0), high_j = std::min(std::max(from.j, to.j) + margin, size.up - 1);
  const auto still = [&](std::int32_t i, std::int32_t j) {
    return static_cast<float>(std::abs(to.i - i)) * gcells_.least_across() + static_cast<float>(std::abs(to.j - j)) * gcells_.least_up();
  };
  const std::greater<std::pair<float, std::int32_t>> later;
  ++round_;
  heap_.clear();
  const auto reach = [&](std::int32_t i, std::int32_t j, std::int32_t direction, float cost, std::int8_t came) {
    const std::int32_t state = 2 * (i * size.up + j) + direction;
    if (seen_[state] == round_ && reached_[state] <= cost) return;
    seen_[state] = round_;
    reached_[state] = cost;
    came_[state] = came;
    heap_.emplace_back(cost + still(i, j), state);
    std::push_heap(heap_.begin(), heap_.end(), later);
  };
  reach(from.i, from.j, 0, 0, -1);
  reach(from.i, from.j, 1, 0, -1);
  std::int32_t end = -1;
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const auto [estimate, state] = heap_.back();
    heap_.pop_back();
    const std::int32_t direction = state % 2, i = state / 2 / size.up, j = state / 2 % size.up;
    if (estimate > reached_[state] + still(i, j) + 1e-3f) continue;  // already reached at a lower cost
    if (i == to.i && j == to.j) {
      end = state;
      break;
    }
    const float here = reached_[state];
    // came: the step into this state (0 right, 1 left, 2 up, 3 down) plus 4 times the direction before it.
    const float across = here + (direction == 1 ? bend_ : 0), up = here + (direction == 0 ? bend_ : 0);
    const auto before = static_cast<std::int8_t>(4 * direction);
    if (i < high_i) reach(i + 1, j, 0, across + gcells_.cost(size.right_of(i, j)), before);
    if (i > low_i) reach(i - 1, j, 0, across + gcells_.cost(size.right_of(i - 1, j)), static_cast<std::int8_t>(before + 1));
    if (j < high_j) reach(i, j + 1, 1, up + gcells_.cost(size.above(i, j)), static_cast<std::int8_t>(before + 2));
    if (j > low_j) reach(i, j - 1, 1, up + gcells_.cost(size.above(i, j - 1)), static_cast<std::int8_t>(before + 3));
  }
  path.clear();
  for (std::int32_t state = end; came_[state] >= 0;) {
    std::int32_t i = state / 2 / size.up, j = state / 2 % size.up;
    const std::int32_t step = came_[state] % 4, direction = came_[state] / 4;
    if (step == 0) path.push_back(size.right_of(--i, j));
    if (step == 1) path.push_back(size.right_of(i++, j));
    if (step == 2) path.push_back(size.above(i, --j));
    if (step == 3) path.push_back(size.above(i, j++));
    state = 2 * (i * size.up + j) + direction;
  }
  std::reverse(path.begin(), path.end());
}

}  // namespace placement::route
