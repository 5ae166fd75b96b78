#include "search/annealer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace placement {
namespace {

constexpr std::int64_t kAdaptEvery = 4096;   // moves
constexpr std::int64_t kLeastPriced = 256;   // moves between two pricings of the gcells, and one for so many gcells
constexpr std::int64_t kGcellsPerMove = 4;
constexpr double kWanted = 0.3;              // target acceptance rate of shifts
constexpr double kStep = 1.15;               // factor by which one adaptation changes a reach
constexpr double kEnough = 50;               // proposals of a kind before its reach is adapted
constexpr double kForget = 0.8;              // decay of the statistics at each adaptation

// Of a kind's base weight. The weights are those of the proxy cost's search, so there they hold more closely.
struct ShareBounds {
  double least, most;
};
constexpr ShareBounds kProxyShares = {0.4, 2.5}, kChipShares = {0.2, 5.0};

bool has_reach(MoveKind kind) { return kind == MoveKind::hard_shift || kind == MoveKind::soft_shift; }

}  // namespace

Annealer::Annealer(std::shared_ptr<const Design> design, const double* x, const double* y,
                   const std::int8_t* orientation, const Weights& weights, const MoveOptions& options,
                   std::uint64_t seed)
    : design_(design),
      cost_(std::move(design), x, y, orientation, weights),
      drawer_(cost_, options),
      random_(seed),
      best_cost_(cost_.costs().total),
      best_x_(cost_.x()),
      best_y_(cost_.y()),
      best_orientation_(cost_.orientation()),
      is_changed_(design_->nodes(), 0) {
  require_legal();
  PerKind all;
  all.fill(1.0);
  set_mix(all, false);
}

void Annealer::require_legal() const {
  if (!drawer_.room().all_fit()) {
    throw std::invalid_argument("a hard macro overlaps another or stands beyond the canvas, or breaks a constraint; "
                                "legalise the placement first");
  }
}

void Annealer::set_mix(const PerKind& weights, bool adaptive) {
  for (int kind = 0; kind < kMoveKinds; ++kind) {
    base_[kind] = drawer_.possible(static_cast<MoveKind>(kind)) ? weights[kind] : 0.0;
  }
  adaptive_ = adaptive;
  share_ = base_;
  set_cumulative();
}

void Annealer::set_cumulative() {
  double sum = 0;
  for (int kind = 0; kind < kMoveKinds; ++kind) cumulative_[kind] = sum += share_[kind];
}

MoveKind Annealer::pick() {
  const double at = random_.fraction() * cumulative_.back();
  int kind = 0;
  while (kind + 1 < kMoveKinds && at >= cumulative_[kind]) ++kind;
  return static_cast<MoveKind>(kind);
}

void Annealer::run(std::int64_t moves, double hot, double cold) {
  if (!(cumulative_.back() > 0) || moves <= 0) return;
  double temperature = hot;
  const bool prices = base_[static_cast<int>(MoveKind::soft_draw)] > 0;
  const std::int64_t price_every = std::max(kLeastPriced, design_->canvas.cells() / kGcellsPerMove);
  const double factor = hot > 0 && cold > 0 ? std::pow(cold / hot, 1.0 / static_cast<double>(moves)) : 1.0;
  for (std::int64_t i = 0; i < moves; ++i, temperature *= factor) {
    if (i % kAdaptEvery == 0) adapt();
    if (prices && i % price_every == 0) drawer_.price(i == 0);
    drawer_.temperature = temperature;
    ++moves_;
    const MoveKind picked = pick();
    const int kind = static_cast<int>(picked);
    ++tally_.drawn[kind];
    recent_drawn_[kind] += 1;
    const int count = drawer_.draw(picked, random_);
    if (count == 0) continue;
    ++tally_.evaluated[kind];
    const double before = cost_.costs().total;
    // What the move may cost is drawn first, so that most of those that cost more need no whole evaluation.
    const double allowed = temperature > 0 ? -temperature * std::log(random_.fraction()) : 0.0;
    if (!cost_.propose_within(drawer_.moves(), count, before + allowed)) continue;
    const double change = cost_.costs().total - before;
    if (!(change <= allowed)) {
      cost_.undo();
      continue;
    }
    cost_.accept();
    drawer_.accepted(count);
    for (int j = 0; j < count; ++j) mark(drawer_.moves()[j].node);
    ++tally_.accepted[kind];
    recent_accepted_[kind] += 1;
    if (change < 0) {
      tally_.saved[kind] -= change;
      recent_worth_[kind] -= change;
      keep_if_best();
    }
  }
}

void Annealer::mark(int node) {
  if (!is_changed_[node]) changed_.push_back(node);
  is_changed_[node] = 1;
}

void Annealer::keep_if_best() {
  if (!(cost_.costs().total < best_cost_)) return;
  best_cost_ = cost_.costs().total;
  for (const std::int32_t node : changed_) {
    best_x_[node] = cost_.x()[node];
    best_y_[node] = cost_.y()[node];
    best_orientation_[node] = cost_.orientation()[node];
    is_changed_[node] = 0;
  }
  changed_.clear();
}

// Adapts reaches so that about kWanted of the shifts are accepted, and shares so that kinds that saved more per
// proposal are proposed more often.
void Annealer::adapt() {
  const Canvas& canvas = design_->canvas;
  const double most = std::max(canvas.columns, canvas.rows) / 2.0;
  cost_.refresh_maps();
  drawer_.find_hot();
  double worth = 0, draws = 0;
  for (int kind = 0; kind < kMoveKinds; ++kind) {
    if (has_reach(static_cast<MoveKind>(kind)) && recent_drawn_[kind] >= kEnough) {
      const double accepted = recent_accepted_[kind] / recent_drawn_[kind];
      double& reach = drawer_.reach[kind];
      reach = std::clamp(accepted > kWanted ? reach * kStep : reach / kStep, MoveDrawer::kLeastReach, most);
    }
    worth += recent_worth_[kind];
    draws += recent_drawn_[kind];
  }
  if (adaptive_ && worth > 0) {
    const ShareBounds& shares = cost_.weights().name == CostName::proxy ? kProxyShares : kChipShares;
    for (int kind = 0; kind < kMoveKinds; ++kind) {
      const double per_draw = recent_drawn_[kind] > 0 ? recent_worth_[kind] / recent_drawn_[kind] : 0.0;
      share_[kind] = base_[kind] * std::clamp(per_draw * draws / worth, shares.least, shares.most);
    }
    set_cumulative();
  }
  for (auto* recent : {&recent_drawn_, &recent_accepted_, &recent_worth_}) {
    for (double& value : *recent) value *= kForget;
  }
}

void Annealer::restart(const double* x, const double* y, const std::int8_t* orientation) {
  cost_.reset(x, y, orientation);
  drawer_.reset();
  require_legal();
  for (int node = 0; node < design_->nodes(); ++node) mark(node);
  keep_if_best();
}

void Annealer::begin_anew(const double* x, const double* y, const std::int8_t* orientation) {
  best_cost_ = std::numeric_limits<double>::infinity();
  restart(x, y, orientation);
}

bool Annealer::replace_soft(SoftPlacer& placer) {
  const std::vector<double> old_x = cost_.x(), old_y = cost_.y();
  const std::vector<std::int8_t> orientation = cost_.orientation();
  const double before = cost_.costs().total;
  std::vector<double> x = old_x, y = old_y;
  placer.place(x.data(), y.data(), orientation.data());
  cost_.reset(x.data(), y.data(), orientation.data());
  if (!(cost_.costs().total < before)) {
    cost_.reset(old_x.data(), old_y.data(), orientation.data());
    return false;
  }
  for (int node = 0; node < design_->nodes(); ++node) {
    if (x[node] != old_x[node] || y[node] != old_y[node]) mark(node);
  }
  keep_if_best();
  return true;
}

AnnealerState Annealer::state() const {
  return {random_.state(), moves_, drawer_.reach, share_, recent_drawn_, recent_accepted_, recent_worth_};
}

void Annealer::set_state(const AnnealerState& state) {
  random_.seed(state.random);
  moves_ = state.moves;
  drawer_.reach = state.reach;
  share_ = state.share;
  recent_drawn_ = state.recent_drawn;
  recent_accepted_ = state.recent_accepted;
  recent_worth_ = state.recent_worth;
  set_cumulative();
}

}  // namespace placement
