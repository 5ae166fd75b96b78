#include "gcells.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace placement::route {
namespace {

constexpr float kFull = 0.8f;     // of an edge's capacity: from there on a crossing costs more
constexpr float kSteep = 10.0f;   // lengths that a crossing at double capacity costs
constexpr float kHistory = 0.5f;  // lengths that a round over capacity adds

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

}  // namespace placement::route
