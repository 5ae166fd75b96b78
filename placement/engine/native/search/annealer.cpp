#include "search/annealer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace placement {
namespace {

constexpr std::int64_t kAdaptEvery = 4096;   // moves
constexpr std::int64_t kLeastFresh = 256;    // minimum number of moves between two calls of Move::refresh
constexpr std::int64_t kGcellsPerMove = 4;
constexpr double kWanted = 0.3;              // target acceptance rate of shifts
constexpr double kStep = 1.15;               // factor by which one adaptation changes a reach
constexpr double kEnough = 50;               // proposals of a move before its reach is adapted
constexpr double kForget = 0.8;              // decay of the statistics at each adaptation

// Relative to a move's base weight. The weights are tuned for the proxy cost's search, where the bounds are narrower.
struct ShareBounds {
  double least, most;
};
constexpr ShareBounds kProxyShares = {0.4, 2.5}, kChipShares = {0.2, 5.0};

int count_of_moves() { return static_cast<int>(all_moves().size()); }

}  // namespace

Annealer::Annealer(std::shared_ptr<const Design> design, const double* x, const double* y,
                   const std::int8_t* orientation, const Weights& weights, const MoveOptions& options,
                   std::uint64_t seed)
    : design_(design),
      cost_(make_incremental_cost(std::move(design), x, y, orientation, weights)),
      proposer_(*cost_, options),
      random_(seed),
      base_(count_of_moves()),
      share_(base_),
      cumulative_(base_),
      recent_drawn_(base_),
      recent_accepted_(base_),
      recent_saved_(base_),
      tally_(base_.size()),
      best_cost_(cost_->costs().total),
      best_x_(cost_->x()),
      best_y_(cost_->y()),
      best_orientation_(cost_->orientation()),
      is_changed_(design_->nodes(), 0) {
  require_legal();
  PerMove mix;
  const bool chip = weights.name == CostName::chip;
  for (const Move& move : all_moves()) mix.push_back(chip && move.weight_on_chip >= 0 ? move.weight_on_chip : move.weight);
  set_mix(mix);
}

void Annealer::require_legal() const {
  if (!proposer_.legal().all_fit()) {
    throw std::invalid_argument("a hard macro overlaps another one, extends beyond the canvas or violates a "
                                "constraint; legalise the placement first");
  }
}

void Annealer::set_mix(const PerMove& weights) {
  for (int move = 0; move < count_of_moves(); ++move) base_[move] = proposer_.possible(move) ? weights[move] : 0.0;
  share_ = base_;
  set_cumulative();
}

void Annealer::set_cumulative() { std::partial_sum(share_.begin(), share_.end(), cumulative_.begin()); }

int Annealer::pick() {
  const double at = random_.fraction() * cumulative_.back();
  int move = 0;
  while (move + 1 < count_of_moves() && at >= cumulative_[move]) ++move;
  return move;
}

void Annealer::run(std::int64_t moves, double temperature, double most) {
  if (!(cumulative_.back() > 0) || moves <= 0) return;
  const std::int64_t refresh_every = std::max(kLeastFresh, design_->canvas.cells() / kGcellsPerMove);
  proposer_.temperature = temperature;
  for (std::int64_t i = 0; i < moves; ++i) {
    if (i % kAdaptEvery == 0) adapt();
    if (i % refresh_every == 0) refresh(i == 0);
    ++moves_;
    const int move = pick();
    ++tally_.drawn[move];
    recent_drawn_[move] += 1;
    const int count = proposer_.propose(move, random_);
    if (count == 0) continue;
    ++tally_.evaluated[move];
    const NodeMove* proposal = proposer_.proposal.data();
    const double before = cost_->costs().total, plain_before = plain_cost();
    // The allowed increase is drawn first, so that most costlier moves need no full evaluation.
    const double allowed = temperature > 0 ? -temperature * std::log(random_.fraction()) : 0.0;
    if (!cost_->propose_within(proposal, count, before + allowed)) continue;
    const double change = cost_->costs().total - before;
    if (!(change <= allowed && (plain_cost() <= most || plain_cost() < plain_before))) {
      cost_->undo();
      continue;
    }
    cost_->accept();
    proposer_.accepted(count);
    for (int j = 0; j < count; ++j) mark(proposal[j].node);
    ++tally_.accepted[move];
    recent_accepted_[move] += 1;
    if (change < 0) {
      tally_.saved[move] -= change;
      recent_saved_[move] -= change;
      keep_if_best();
    }
  }
}

void Annealer::refresh(bool whole) {
  for (int move = 0; move < count_of_moves(); ++move) {
    if (base_[move] > 0 && all_moves()[move].refresh) all_moves()[move].refresh(proposer_, whole);
  }
}

void Annealer::mark(int node) {
  if (!is_changed_[node]) changed_.push_back(node);
  is_changed_[node] = 1;
}

void Annealer::keep_if_best() {
  if (!(cost_->costs().total < best_cost_)) return;
  best_cost_ = cost_->costs().total;
  for (const std::int32_t node : changed_) {
    best_x_[node] = cost_->x()[node];
    best_y_[node] = cost_->y()[node];
    best_orientation_[node] = cost_->orientation()[node];
    is_changed_[node] = 0;
  }
  changed_.clear();
}

// Adapts reaches so that about kWanted of the shifts are accepted, and shares so that moves that saved more per proposal
// are proposed more often.
void Annealer::adapt() {
  const Canvas& canvas = design_->canvas;
  const double most = std::max(canvas.columns, canvas.rows) / 2.0;
  cost_->refresh_maps();
  proposer_.find_congested();
  double saved = 0, drawn = 0;
  for (int move = 0; move < count_of_moves(); ++move) {
    if (all_moves()[move].adapts_reach && recent_drawn_[move] >= kEnough) {
      const double accepted = recent_accepted_[move] / recent_drawn_[move];
      double& reach = proposer_.reach[move];
      reach = std::clamp(accepted > kWanted ? reach * kStep : reach / kStep, MoveProposer::kLeastReach, most);
    }
    saved += recent_saved_[move];
    drawn += recent_drawn_[move];
  }
  if (saved > 0) {
    const ShareBounds& shares = cost_->weights().name == CostName::proxy ? kProxyShares : kChipShares;
    for (int move = 0; move < count_of_moves(); ++move) {
      const double per_draw = recent_drawn_[move] > 0 ? recent_saved_[move] / recent_drawn_[move] : 0.0;
      share_[move] = base_[move] * std::clamp(per_draw * drawn / saved, shares.least, shares.most);
    }
    set_cumulative();
  }
  for (auto* recent : {&recent_drawn_, &recent_accepted_, &recent_saved_}) {
    for (double& value : *recent) value *= kForget;
  }
}

void Annealer::grow_clear() {
  cost_->grow_clear();
  best_cost_ = std::numeric_limits<double>::infinity();
  for (int node = 0; node < design_->nodes(); ++node) mark(node);
  keep_if_best();
}

void Annealer::restart(const double* x, const double* y, const std::int8_t* orientation) {
  cost_->reset(x, y, orientation);
  proposer_.reset();
  require_legal();
  for (int node = 0; node < design_->nodes(); ++node) mark(node);
  keep_if_best();
}

void Annealer::begin_anew(const double* x, const double* y, const std::int8_t* orientation) {
  best_cost_ = std::numeric_limits<double>::infinity();
  restart(x, y, orientation);
}

bool Annealer::replace_soft(SoftPlacer& placer) {
  const std::vector<double> old_x = cost_->x(), old_y = cost_->y();
  const std::vector<std::int8_t> orientation = cost_->orientation();
  const double before = cost_->costs().total;
  std::vector<double> x = old_x, y = old_y;
  placer.place(x.data(), y.data(), orientation.data());
  cost_->reset(x.data(), y.data(), orientation.data());
  if (!(cost_->costs().total < before)) {
    cost_->reset(old_x.data(), old_y.data(), orientation.data());
    return false;
  }
  for (int node = 0; node < design_->nodes(); ++node) {
    if (x[node] != old_x[node] || y[node] != old_y[node]) mark(node);
  }
  keep_if_best();
  return true;
}

AnnealerState Annealer::state() const {
  return {random_.state(), moves_, proposer_.reach, share_, recent_drawn_, recent_accepted_, recent_saved_};
}

void Annealer::set_state(const AnnealerState& state) {
  random_.seed(state.random);
  moves_ = state.moves;
  proposer_.reach = state.reach;
  share_ = state.share;
  recent_drawn_ = state.recent_drawn;
  recent_accepted_ = state.recent_accepted;
  recent_saved_ = state.recent_saved;
  set_cumulative();
}

}  // namespace placement
