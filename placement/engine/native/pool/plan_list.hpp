// The designs that a pool plays or a renderer replays, and why an action in one of them is rejected.
#pragma once

#include <memory>
#include <vector>

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

}  // namespace placement
