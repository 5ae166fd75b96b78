// Batches in flight from the workers to the caller. Each is a block of memory that the workers fill in place, slot by
// slot; the worker that fills the last slot signals the caller.
//
// In turn mode ("first come, first served") slots are handed out by an atomic counter as results arrive and every block
// holds the same number. In call mode a block is opened for each call, with a slot for each environment of the call.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "env/environment.hpp"
#include "pool/semaphore.hpp"

namespace placement {

// The memory of one batch of environments. Each environment writes to its own slot; NumPy reads it without a copy.

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

  // Writes the result of an environment's step to its slot.
  void write(std::size_t index, int env_id, const Environment& environment, ObservationWriter& writer) {
    const EpisodePlan& plan = environment.state().plan();
    environment.write(writer, observation(index), step(index));
    truncated_[index] = false;  // episodes are never truncated
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

struct Block {
  Block(const ObservationShape& shape, int capacity) : batch(shape, capacity) {}

  Batch batch;
  int size = 0;                   // slots in use
  std::atomic<int> remaining{0};  // slots still to be filled

  // Failures of workers, by environment; the mutex is only locked on a failure.
  std::mutex failures_mutex;
  std::vector<std::pair<int, std::string>> failures;
};

class StateQueue {
 public:
  // `batch_size` 0: call mode. At most `environments` results are ever in flight.
  StateQueue(const ObservationShape& shape, int environments, int batch_size)
      : shape_(shape), batch_size_(batch_size), capacity_(batch_size > 0 ? batch_size : environments) {
    // With one block more than the results in flight can fill, a block is reused only after the caller has taken its
    // predecessor.
    ring_ = std::vector<std::atomic<Block*>>(
        batch_size > 0 ? (environments + batch_size - 1) / batch_size + 2 : environments + 1);
    for (auto& place : ring_) {
      place.store(batch_size > 0 ? prepared(batch_size) : nullptr, std::memory_order_relaxed);
    }
  }

  // Workers, turn mode: the slot for a result that is ready.
  std::pair<Block*, int> claim() {
    const std::uint64_t slot = next_slot_.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t block = slot / batch_size_;
    return {ring_[block % ring_.size()].load(std::memory_order_acquire), static_cast<int>(slot % batch_size_)};
  }

  // Workers: a slot has been filled.
  void filled(Block* block) {
    // Sequentially consistent, so that either the caller sees the last slot filled or this thread sees that it waits.
    if (block->remaining.fetch_sub(1, std::memory_order_seq_cst) == 1) ready_.post_up_to(1, 1);
  }

  // The caller, call mode: opens a block for a call of `size` environments.
  Block* open(int size) {
    Block* block = prepared(size);
    ring_[opened_++ % ring_.size()].store(block, std::memory_order_relaxed);
    return block;
  }

  // The caller: the oldest block, in any state. Call mode: one must be open.
  Block* front() { return ring_[taken_ % ring_.size()].load(std::memory_order_relaxed); }
  static bool complete(const Block* block) { return block->remaining.load(std::memory_order_seq_cst) == 0; }
  bool wait_for(double seconds) { return ready_.wait_for(seconds); }
  void wake() { ready_.post(); }

  // The caller: takes the oldest block, which is complete; it is lent until returned.
  Block* take() {
    Block* block = front();
    if (batch_size_ > 0) ring_[taken_ % ring_.size()].store(prepared(batch_size_), std::memory_order_release);
    ++taken_;
    return block;
  }
  void give_back(Block* block) { free_.push_back(block); }

 private:
  Block* prepared(int size) {
    if (free_.empty()) {
      blocks_.push_back(std::make_unique<Block>(shape_, capacity_));
      free_.reserve(blocks_.capacity());
      free_.push_back(blocks_.back().get());
    }
    Block* block = free_.back();
    free_.pop_back();
    block->size = size;
    block->remaining.store(size, std::memory_order_relaxed);
    return block;
  }

  ObservationShape shape_;
  int batch_size_, capacity_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Block*> free_;
  std::vector<std::atomic<Block*>> ring_;
  alignas(64) std::atomic<std::uint64_t> next_slot_{0};
  alignas(64) std::uint64_t opened_ = 0, taken_ = 0;
  Semaphore ready_;
};

}  // namespace placement
