// Plays whole episodes again from their actions and writes the observation before each action.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "pool/plan_list.hpp"

namespace placement {

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
