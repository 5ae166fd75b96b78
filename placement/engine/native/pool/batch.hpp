// The memory of one batch of environments. Each environment writes its own place; NumPy reads it without a copy.
#pragma once

#include <memory>
#include <vector>

#include "env/environment.hpp"

namespace placement {

class Batch {
 public:
  Batch(const ObservationShape& shape, int size)
      : shape_(shape),
        size_(size),
        design_(size),
        step_(size),
        mask_(size * shape.cells()),
        maps_(shape.compact ? 0 : size * shape.cells() * kMaps),
        compact_maps_(shape.compact ? size * shape.cells() * kMaps : 0),
        x_(static_cast<std::size_t>(size) * shape.steps),
        y_(x_.size()),
        reward_(size),
        terminated_(size),
        truncated_(size),
        dead_end_(size),
        costs_(static_cast<std::size_t>(size) * kCosts),
        elapsed_step_(size),
        env_id_(size),
        rows_(size),
        columns_(size),
        macros_(size) {}

  int size() const { return size_; }
  const ObservationShape& shape() const { return shape_; }

  ObservationSlot observation(std::size_t index) {
    float* maps = shape_.compact ? nullptr : maps_.data();
    std::uint16_t* compact = shape_.compact ? compact_maps_.data() : nullptr;
    const ObservationSlot first{design_.data(), step_.data(), mask_.data(), maps, x_.data(), y_.data(), compact};
    return first.at(shape_, index);
  }
  StepSlot step(std::size_t index) {
    const StepSlot first{reward_.data(), terminated_.data(), dead_end_.data(), costs_.data(), elapsed_step_.data()};
    return first.at(index);
  }
  std::uint8_t* truncated() { return truncated_.data(); }
  std::int32_t* env_id() { return env_id_.data(); }
  std::int32_t* rows() { return rows_.data(); }
  std::int32_t* columns() { return columns_.data(); }
  std::int32_t* macros() { return macros_.data(); }

  // Writes the result of an environment's step into its place.
  void write(std::size_t index, int env_id, const Environment& environment, ObservationWriter& writer) {
    const EpisodePlan& plan = environment.state().plan();
    environment.write(writer, observation(index), step(index));
    truncated_[index] = false;  // no episode is cut short
    env_id_[index] = env_id;
    rows_[index] = plan.canvas.rows;
    columns_[index] = plan.canvas.columns;
    macros_[index] = plan.steps();
  }

 private:
  ObservationShape shape_;
  int size_;
  std::vector<std::int32_t> design_, step_;    // [B]
  std::vector<std::uint8_t> mask_;             // [B, R, C]
  std::vector<float> maps_;                    // [B, K, R, C], or
  std::vector<std::uint16_t> compact_maps_;    // the same as bfloat16
  std::vector<float> x_, y_;                   // [B, T]
  std::vector<float> reward_;                  // [B]
  std::vector<std::uint8_t> terminated_, truncated_, dead_end_;  // [B]
  std::vector<double> costs_;                  // [B, kCosts]
  std::vector<std::int32_t> elapsed_step_, env_id_;  // [B]
  std::vector<std::int32_t> rows_, columns_, macros_;  // [B] true sizes of the environment's design
};

}  // namespace placement
