// Environments of one or more designs stepped together on the caller's thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "pool/batch.hpp"
#include "env/environment.hpp"

namespace placement {

// The designs of a pool, made once and shared by its environments.
struct PlanList {
  // Throws UnplayableDesign.
  explicit PlanList(const std::vector<std::shared_ptr<const Design>>& designs) {
    for (const auto& design : designs) {
      try {
        plans.push_back(std::make_shared<const EpisodePlan>(design));
        if (PlacementState(plans.back()).legal_cells() == 0) {
          throw UnplayableDesign(plans.back()->macros[0].node, "is placed first and has no legal gcell");
        }
      } catch (UnplayableDesign& error) {
        error.design = static_cast<int>(&design - designs.data());
        throw;
      }
      shape.include(*plans.back());
    }
  }

  std::vector<std::shared_ptr<const EpisodePlan>> plans;
  ObservationShape shape;
};

// An action that may not be taken: by environment or, in a replay, by episode and step.
struct Refusal {
  int index, step, design_index;
  Verdict verdict;
  int obstacle;  // the node in the way, for Verdict::overlaps
};

class EnvironmentPool {
 public:
  // Throws UnplayableDesign, or std::invalid_argument for an unknown soft placer.
  EnvironmentPool(const std::vector<std::shared_ptr<const Design>>& designs, const std::vector<int>& design_of_env,
                  const EnvironmentConfig& config)
      : designs_(designs),
        writer_(designs_.shape),
        batch_(std::make_shared<Batch>(designs_.shape, static_cast<int>(design_of_env.size()))) {
    for (const auto& plan : designs_.plans) scorers_.emplace_back(plan->design, config);
    for (const int design : design_of_env) {
      environments_.emplace_back(designs_.plans.at(design), design, config.dead_end_penalty);
    }
  }

  int size() const { return static_cast<int>(environments_.size()); }
  const PlanList& designs() const { return designs_; }
  const std::shared_ptr<Batch>& batch() const { return batch_; }
  const Environment& environment(int env) const { return environments_.at(env); }

  // Begins an episode in every environment and writes the first observations.
  void reset() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Environment& environment : environments_) environment.reset();
    write();
  }

  // actions [size()]: takes them all and writes the batch, or, where one may not be taken, changes nothing and says
  // which.
  std::optional<Refusal> step(const std::int32_t* actions) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int env = 0; env < size(); ++env) {
      const Environment& environment = environments_[env];
      int obstacle = -1;
      const Verdict verdict = environment.judge(Action(actions[env], designs_.shape), &obstacle);
      if (verdict != Verdict::legal) {
        return Refusal{env, environment.state().step(), environment.design_index(), verdict, obstacle};
      }
    }
    for (int env = 0; env < size(); ++env) {
      Environment& environment = environments_[env];
      environment.advance(Action(actions[env], designs_.shape), scorers_[environment.design_index()]);
    }
    write();
    return std::nullopt;
  }

 private:
  void write() {
    for (int env = 0; env < size(); ++env) {
      batch_->write(env, env, environments_[env], writer_);
    }
  }

  PlanList designs_;
  ObservationWriter writer_;
  std::shared_ptr<Batch> batch_;
  std::vector<EpisodeScorer> scorers_;  // one per design
  std::vector<Environment> environments_;
  std::mutex mutex_;
};

// Plays B episodes again from their actions [B, T] and writes what was seen before each of the first lengths[b] of
// them into [B, T] slots (zeros past the length). Stops at an action that may not be taken and says which. Safe to call
// from several threads at once.
inline std::optional<Refusal> render_episodes(const PlanList& designs, int episodes, int steps,
                                              const std::int32_t* design_index, const std::int32_t* actions,
                                              const std::int32_t* lengths, const ObservationSlot& first) {
  const ObservationShape& shape = designs.shape;
  ObservationWriter writer(shape);
  std::vector<std::unique_ptr<PlacementState>> states(designs.plans.size());
  for (int episode = 0; episode < episodes; ++episode) {
    const int design = design_index[episode];
    auto& state = states[design];
    if (state) state->reset();
    if (!state) state = std::make_unique<PlacementState>(designs.plans[design]);
    for (int step = 0; step < steps; ++step) {
      const std::size_t place = static_cast<std::size_t>(episode) * steps + step;
      const ObservationSlot slot = first.at(shape, place);
      if (step >= lengths[episode]) {
        writer.write_zeros(slot);
        continue;
      }
      writer.write(*state, design, slot);
      const Action action(actions[place], shape);
      int obstacle = -1;
      const Verdict verdict = state->judge(action.row, action.column, &obstacle);
      if (verdict != Verdict::legal) return Refusal{episode, step, design, verdict, obstacle};
      state->place(action.row, action.column);
    }
  }
  return std::nullopt;
}

}  // namespace placement
