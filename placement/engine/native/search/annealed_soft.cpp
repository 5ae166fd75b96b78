#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "search/annealer.hpp"

namespace placement {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::int64_t kMovesEach = 16;  // average per soft macro
constexpr std::int64_t kMostMoves = 20'000;

std::shared_ptr<const Design> with_hard_macros_fixed(const Design& design) {
  auto held = std::make_shared<Design>(design);
  for (int node = 0; node < held->nodes(); ++node) {
    if (held->kind_of(node) == Kind::hard) held->fixed[node] = 1;
  }
  return held;
}

// Weights of the moves, by name.
PerMove soft_mix() {
  static const std::map<std::string, double> weights = {{"soft_shift", 4}, {"soft_step", 2}, {"soft_median", 2},
                                                        {"soft_pull", 2},  {"soft_swap", 1}, {"soft_hot", 1}};
  PerMove mix;
  for (const Move& move : all_moves()) {
    const auto found = weights.find(move.name);
    mix.push_back(found == weights.end() ? 0.0 : found->second);
  }
  return mix;
}

// The fast analytic placement followed by moves of soft macros that lower the exact cost.
class AnnealedSoft final : public SoftPlacer {
 public:
  // `weights`: weights of the cost that is lowered.
  AnnealedSoft(std::shared_ptr<const Design> design, const Weights& weights);

  void place(double* x, double* y, const std::int8_t* orientation) override;

 private:
  std::shared_ptr<const Design> held_;  // the design with its hard macros fixed
  Weights weights_;
  std::int64_t moves_ = 0;
  std::unique_ptr<SoftPlacer> start_;
  std::unique_ptr<Annealer> annealer_;
  AnnealerState initial_;  // restored before each call: no placement may depend on previous ones
};

AnnealedSoft::AnnealedSoft(std::shared_ptr<const Design> design, const Weights& weights)
    : held_(with_hard_macros_fixed(*design)), weights_(weights) {
  for (int node = 0; node < held_->nodes(); ++node) {
    if (held_->kind_of(node) == Kind::soft && !held_->fixed[node]) moves_ += kMovesEach;
  }
  moves_ = std::min(moves_, kMostMoves);
  start_ = make_soft_placer("analytic_fast", std::move(design));
}

void AnnealedSoft::place(double* x, double* y, const std::int8_t* orientation) {
  start_->place(x, y, orientation);
  if (moves_ == 0) return;
  if (annealer_ == nullptr) {
    annealer_ = std::make_unique<Annealer>(held_, x, y, orientation, weights_, MoveOptions{}, kSeed);
    annealer_->set_mix(soft_mix());
    initial_ = annealer_->state();
  } else {
    annealer_->begin_anew(x, y, orientation);
    annealer_->set_state(initial_);
  }
  annealer_->run(moves_, 0);
  for (int node = 0; node < held_->nodes(); ++node) {
    if (held_->kind_of(node) != Kind::soft || held_->fixed[node]) continue;
    x[node] = annealer_->best_x()[node];
    y[node] = annealer_->best_y()[node];
  }
}

}  // namespace

std::unique_ptr<SoftPlacer> make_soft_placer(const std::string& name, std::shared_ptr<const Design> design,
                                             const Weights& weights) {
  if (name == "annealed") return std::make_unique<AnnealedSoft>(std::move(design), weights);
  return make_soft_placer(name, std::move(design));
}

}  // namespace placement
