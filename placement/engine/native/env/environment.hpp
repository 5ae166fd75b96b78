// One environment: an episode places the macros of one design and ends with the cost of the whole placement. The pool
// calls `advance` and `write`, from any of its threads.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../../include/placement_cost_term.hpp"
#include "common/design.hpp"
#include "common/random.hpp"
#include "cost/cost.hpp"
#include "env/observation.hpp"
#include "env/state.hpp"
#include "search/annealer.hpp"

namespace placement {

// Cost terms of libraries built separately from the engine (placement/engine/include/placement_cost_term.hpp).

struct WeightedTerm {
  const placement_cost_term* term;  // of a library that remains loaded
  double weight;
};

// The terms created for one design; owns their workspace, so one per thread.
class CostTerms {
 public:
  // Throws std::invalid_argument if a term cannot be used on the design.
  CostTerms(std::shared_ptr<const Design> design, const std::vector<WeightedTerm>& terms) : design_(std::move(design)) {
    const Design& d = *design_;
    const placement_design shown = {d.nodes(), d.pins(), d.nets(), d.canvas.columns, d.canvas.rows,
                                    d.canvas.width, d.canvas.height, d.kind.data(), d.node_width.data(),
                                    d.node_height.data(), d.pin_node.data(), d.pin_dx.data(), d.pin_dy.data(),
                                    d.net_weight.data(), d.net_start.data(), d.net_pins.data()};
    for (const WeightedTerm& one : terms) {
      made_.push_back({one, {one.term->make(&shown), one.term->destroy}});
      if (!made_.back().state) {
        throw std::invalid_argument("cost term '" + std::string(one.term->name) + "' cannot be used on this design");
      }
    }
  }

  // Their weighted sum; x, y [N] µm. Throws std::runtime_error if a term is not finite.
  double operator()(const double* x, const double* y, const std::int8_t* orientation) const {
    double sum = 0;
    for (const Made& one : made_) {
      const double value = one.weighted.term->evaluate(one.state.get(), x, y, orientation);
      if (!std::isfinite(value)) {
        throw std::runtime_error("cost term '" + std::string(one.weighted.term->name) +
                                 "' returned a value that is not finite");
      }
      sum += one.weighted.weight * value;
    }
    return sum;
  }

 private:
  struct Made {
    WeightedTerm weighted;
    std::unique_ptr<void, void (*)(void*)> state;
  };
  std::shared_ptr<const Design> design_;
  std::vector<Made> made_;
};

inline constexpr int kCosts = 5;  // wirelength (µm), wirelength, density, congestion and proxy cost

struct EnvironmentConfig {
  Weights weights;
  double dead_end_penalty = -4.0;
  std::string soft_placer = "force_directed";  // or "annealed"; or "none": initial positions
  std::vector<WeightedTerm> terms;             // subtracted from the reward, in addition to the cost
};

// Soft placer and cost for the end of an episode. Owns workspace: one per design and thread.
class EpisodeScorer {
 public:
  // Throws std::invalid_argument if the soft placer is unknown, or soft macros would have no position.
  EpisodeScorer(std::shared_ptr<const Design> design, const EnvironmentConfig& config)
      : design_(design), weights_(config.weights), costs_(design), terms_(design, config.terms) {
    if (config.soft_placer != "none") {
      soft_placer_ = make_soft_placer(config.soft_placer, design, config.weights);
      return;
    }
    for (int node = 0; node < design->nodes(); ++node) {
      if (design->kind_of(node) == Kind::soft && !design->placed[node]) {
        throw std::invalid_argument("soft macro number " + std::to_string(node) +
                                    " has no initial position, and the soft placer is 'none'");
      }
    }
  }

  // x, y [N] µm with the hard macros placed; writes the centres of the soft macros.
  Costs score(double* x, double* y) {
    const std::int8_t* orientation = design_->initial_orientation.data();
    if (soft_placer_) soft_placer_->place(x, y, orientation);
    return costs_.evaluate(x, y, orientation, weights_);
  }

  // Weighted sum of the user-defined cost terms.
  double terms(const double* x, const double* y) const { return terms_(x, y, design_->initial_orientation.data()); }

 private:
  std::shared_ptr<const Design> design_;
  Weights weights_;
  CostEvaluator costs_;
  CostTerms terms_;
  std::unique_ptr<SoftPlacer> soft_placer_;
};

// Destination of the results of an environment's step.
struct StepSlot {
  float* reward = nullptr;
  std::uint8_t* terminated = nullptr;
  std::uint8_t* dead_end = nullptr;
  double* costs = nullptr;  // [kCosts]
  std::int32_t* elapsed_step = nullptr;

  StepSlot at(std::size_t index) const {
    return {reward + index, terminated + index, dead_end + index, costs + index * kCosts, elapsed_step + index};
  }
};

class Environment {
 public:
  Environment(std::shared_ptr<const EpisodePlan> plan, int design_index, double dead_end_penalty)
      : state_(std::move(plan)), design_index_(design_index), dead_end_penalty_(dead_end_penalty) {
    reset();
  }

  // Begins an episode of another design.
  void play(std::shared_ptr<const EpisodePlan> plan, int design_index) {
    state_ = PlacementState(std::move(plan));
    design_index_ = design_index;
    reset();
  }

  void reset() {
    state_.reset();
    reward_ = 0;
    elapsed_step_ = 0;
    dead_end_ = ended_ = false;
    costs_.fill(std::numeric_limits<double>::quiet_NaN());
  }

  // Why the next `advance` may not take this action. An ended episode accepts any action: it is reset.
  Verdict judge(const Action& action, int* obstacle) const {
    return ended_ ? Verdict::legal : state_.judge(action.row, action.column, obstacle);
  }

  // Takes a legal action; the call after an episode's end ignores the action and begins the next episode.
  void advance(const Action& action, EpisodeScorer& scorer) {
    if (ended_) return reset();
    state_.place(action.row, action.column);
    ++elapsed_step_;
    if (state_.complete()) {
      finish(scorer);
    } else if (state_.legal_cells() == 0) {
      ended_ = dead_end_ = true;
      reward_ = dead_end_penalty_;
    }
  }

  // Whether the next `advance` with a legal action places the last macro, which takes milliseconds.
  bool ends_next() const { return !ended_ && state_.step() + 1 == state_.plan().steps(); }

  void write(ObservationWriter& writer, const ObservationSlot& observation, const StepSlot& step) const {
    writer.write(state_, design_index_, observation);
    if (step.reward == nullptr) return;
    *step.reward = static_cast<float>(reward_);
    *step.terminated = ended_;
    *step.dead_end = dead_end_;
    std::copy(costs_.begin(), costs_.end(), step.costs);
    *step.elapsed_step = elapsed_step_;
  }

  // A uniformly random legal gcell of the current macro, as an action; -1 if there is none. Uses the environment's own
  // random stream, which `seed` restarts and which nothing else uses.
  void seed(std::uint64_t seed) { random_.seed(seed); }
  std::int32_t sample_action(const ObservationShape& shape) {
    if (state_.legal_cells() == 0) return -1;
    const auto [row, column] = state_.nth_legal(static_cast<int>(random_.below(state_.legal_cells())));
    return row * shape.columns + column;
  }

  const PlacementState& state() const { return state_; }
  int design_index() const { return design_index_; }

  bool ended() const { return ended_; }

  // The placement of the last episode that placed every macro, [N] µm, and the design of that episode.
  bool has_finished() const { return has_finished_; }
  int last_design() const { return last_design_; }
  const std::vector<double>& last_x() const { return last_x_; }
  const std::vector<double>& last_y() const { return last_y_; }

  // The whole state of the current episode, as portable bytes; see snapshot.hpp.
  std::string snapshot() const;
  // Throws std::invalid_argument, without changing anything, unless `bytes` is a snapshot of an environment of this
  // design.
  void restore(const std::string& bytes);

 private:
  void finish(EpisodeScorer& scorer) {
    const Design& design = *state_.plan().design;
    last_x_.assign(design.initial_x.begin(), design.initial_x.end());
    last_y_.assign(design.initial_y.begin(), design.initial_y.end());
    last_design_ = design_index_;
    for (int t = 0; t < state_.step(); ++t) {
      const int node = state_.plan().macros[t].node;
      last_x_[node] = state_.x(t);
      last_y_[node] = state_.y(t);
    }
    const Costs costs = scorer.score(last_x_.data(), last_y_.data());
    const double terms = scorer.terms(last_x_.data(), last_y_.data());
    has_finished_ = ended_ = true;
    costs_ = {costs.wirelength, costs.wirelength_cost, costs.density_cost, costs.congestion_cost, costs.total};
    reward_ = -(costs.total + terms);
  }

  PlacementState state_;
  int design_index_;
  double dead_end_penalty_;
  double reward_ = 0;
  int elapsed_step_ = 0, last_design_ = 0;
  bool ended_ = false, dead_end_ = false, has_finished_ = false;
  Random random_;
  std::array<double, kCosts> costs_{};
  std::vector<double> last_x_, last_y_;
};

}  // namespace placement
