// Writer of an environment's observations; the arrays are described in placement/engine/observation.py. Axes: K maps,
// R, C the grid of the largest design in the pool, T its macros to place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "env/state.hpp"

namespace placement {

inline constexpr int kMaps = 3;  // occupancy, density, wire mask

// Sizes of an observation; smaller designs are padded with zeros at the end of each axis.
struct ObservationShape {
  int rows = 0, columns = 0, steps = 0;
  bool compact = false;  // whether batches hold the maps as bfloat16

  std::size_t cells() const { return static_cast<std::size_t>(rows) * columns; }
  void include(const EpisodePlan& plan) {
    rows = std::max(rows, plan.canvas.rows);
    columns = std::max(columns, plan.canvas.columns);
    steps = std::max(steps, plan.steps());
  }
  // Throws std::invalid_argument if a design does not fit.
  void require(const EpisodePlan& plan) const {
    if (plan.canvas.rows <= rows && plan.canvas.columns <= columns && plan.steps() <= steps) return;
    const auto described = [](int rows_, int columns_, int steps_) {
      return std::to_string(rows_) + " rows, " + std::to_string(columns_) + " columns and " + std::to_string(steps_) +
             " macros";
    };
    throw std::invalid_argument("a design of " + described(plan.canvas.rows, plan.canvas.columns, plan.steps()) +
                                " was drawn, which exceeds the bounds of " + described(rows, columns, steps));
  }
};

// An action is row · columns + column over the grid of the observation, padding included.
struct Action {
  int row, column;
  Action(std::int32_t action, const ObservationShape& shape)
      : row(action < 0 ? -1 : action / shape.columns), column(action < 0 ? -1 : action % shape.columns) {}
};

// The upper half of a float: bfloat16, rounded to nearest, ties to even. Not for NaN.
inline std::uint16_t to_bfloat16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// One environment's slot of a batch; the maps are in one of the two types.
struct ObservationSlot {
  std::int32_t* design = nullptr;
  std::int32_t* step = nullptr;
  std::uint8_t* mask = nullptr;  // [R, C]
  float* maps = nullptr;         // [K, R, C]; null if compact_maps is used
  float* x = nullptr;            // [T]
  float* y = nullptr;            // [T]
  std::uint16_t* compact_maps = nullptr;  // [K, R, C] as bfloat16

  // The slot `index` entries further, in arrays of this shape.
  ObservationSlot at(const ObservationShape& shape, std::size_t index) const {
    return {design + index,
            step + index,
            mask + index * shape.cells(),
            maps == nullptr ? nullptr : maps + index * shape.cells() * kMaps,
            x + index * shape.steps,
            y + index * shape.steps,
            compact_maps == nullptr ? nullptr : compact_maps + index * shape.cells() * kMaps};
  }
};

// Writes observations of states; owns its workspace, so one per thread.
class ObservationWriter {
 public:
  explicit ObservationWriter(const ObservationShape& shape)
      : shape_(shape), column_wire_(shape.columns), row_wire_(shape.rows), wire_(shape.columns) {}

  const ObservationShape& shape() const { return shape_; }

  void write(const PlacementState& state, int design_index, const ObservationSlot& slot) {
    const Canvas& canvas = state.plan().canvas;
    *slot.design = design_index;
    *slot.step = state.step();
    if (slot.maps == nullptr) maps_.resize(shape_.cells() * kMaps);
    float* maps = slot.maps == nullptr ? maps_.data() : slot.maps;
    if (canvas.rows < shape_.rows || canvas.columns < shape_.columns) {
      std::fill_n(slot.mask, shape_.cells(), std::uint8_t{0});
      std::fill_n(maps, shape_.cells() * kMaps, 0.0f);
    }
    state.write_mask(slot.mask, shape_.columns);
    write_areas(state, maps);
    write_wire(state, maps + 2 * shape_.cells());
    if (slot.maps == nullptr) std::transform(maps_.begin(), maps_.end(), slot.compact_maps, to_bfloat16);
    for (int t = 0; t < state.step(); ++t) {
      slot.x[t] = static_cast<float>(state.x(t) / canvas.width);
      slot.y[t] = static_cast<float>(state.y(t) / canvas.height);
    }
    std::fill(slot.x + state.step(), slot.x + shape_.steps, 0.0f);
    std::fill(slot.y + state.step(), slot.y + shape_.steps, 0.0f);
  }

  void write_zeros(const ObservationSlot& slot) const {
    *slot.design = *slot.step = 0;
    std::fill_n(slot.mask, shape_.cells(), std::uint8_t{0});
    if (slot.maps == nullptr) {
      std::fill_n(slot.compact_maps, shape_.cells() * kMaps, std::uint16_t{0});
    } else {
      std::fill_n(slot.maps, shape_.cells() * kMaps, 0.0f);
    }
    std::fill_n(slot.x, shape_.steps, 0.0f);
    std::fill_n(slot.y, shape_.steps, 0.0f);
  }

 private:
  void write_areas(const PlacementState& state, float* maps) const {
    const Canvas& canvas = state.plan().canvas;
    const float* shown = state.shown().data();
    if (canvas.columns == shape_.columns && canvas.rows == shape_.rows) {
      std::copy_n(shown, 2 * shape_.cells(), maps);
      return;
    }
    for (int map = 0; map < 2; ++map) {
      for (int row = 0; row < canvas.rows; ++row, shown += canvas.columns) {
        std::copy_n(shown, canvas.columns, maps + map * shape_.cells() + static_cast<std::size_t>(row) * shape_.columns);
      }
    }
  }

  void write_wire(const PlacementState& state, float* map) {
    const Canvas& canvas = state.plan().canvas;
    state.wire_mask(column_wire_.data(), row_wire_.data());
    const double scale = state.complete() ? 0.0 : state.plan().macros[state.step()].wire_scale;
    for (int column = 0; column < canvas.columns; ++column) {
      wire_[column] = static_cast<float>(column_wire_[column] * scale);
    }
    for (int row = 0; row < canvas.rows; ++row) {
      const auto added = static_cast<float>(row_wire_[row] * scale);
      float* out = map + static_cast<std::size_t>(row) * shape_.columns;
      for (int column = 0; column < canvas.columns; ++column) out[column] = std::min(wire_[column] + added, 1.0f);
    }
  }

  ObservationShape shape_;
  std::vector<double> column_wire_, row_wire_;  // [C], [R] weighted µm
  std::vector<float> wire_;                     // [C]
  std::vector<float> maps_;                     // [K, R, C], if a slot takes bfloat16
};

// Returns the plan of a playable design. Throws UnplayableDesign.
inline std::shared_ptr<const EpisodePlan> playable_plan(const std::shared_ptr<const Design>& design) {
  auto plan = std::make_shared<const EpisodePlan>(design);
  if (PlacementState(plan).legal_cells() == 0) {
    throw UnplayableDesign(plan->macros[0].node, "is placed first and has no legal gcell");
  }
  return plan;
}

// The designs of a pool, made once and shared by its environments.
struct PlanList {
  // Throws UnplayableDesign.
  explicit PlanList(const std::vector<std::shared_ptr<const Design>>& designs) {
    for (const auto& design : designs) {
      try {
        plans.push_back(playable_plan(design));
      } catch (UnplayableDesign& error) {
        error.design = static_cast<int>(&design - designs.data());
        throw;
      }
      shape.include(*plans.back());
    }
  }

  // Enlarges observations to a shape into which every design must fit; a shape of no rows changes nothing. Throws
  // std::invalid_argument.
  void grow_to(const ObservationShape& wanted) {
    if (wanted.rows == 0) return;
    for (const auto& plan : plans) wanted.require(*plan);
    shape = wanted;
  }

  std::vector<std::shared_ptr<const EpisodePlan>> plans;
  ObservationShape shape;
};

// An illegal action: by environment or, in a replay, by episode and step.
struct Refusal {
  int index, step, design_index;
  Verdict verdict;
  int obstacle;  // the obstructing node, for Verdict::overlaps

  std::tuple<int, int, int, Verdict, int> tuple() const { return {index, step, design_index, verdict, obstacle}; }
};

}  // namespace placement
