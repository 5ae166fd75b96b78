// Batches on their way from the workers to the caller. Each is a block of memory that the workers fill in place, slot by
// slot; the one that fills the last slot signals the caller.
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

#include "pool/batch.hpp"
#include "pool/semaphore.hpp"

namespace placement {

struct Block {
  Block(const ObservationShape& shape, int capacity) : batch(shape, capacity) {}

  Batch batch;
  int size = 0;                   // slots in use
  std::atomic<int> remaining{0};  // slots still to be filled

  // What went wrong in a worker, by environment; the mutex is only met then.
  std::mutex failures_mutex;
  std::vector<std::pair<int, std::string>> failures;
};

class StateQueue {
 public:
  // `batch_size` 0: call mode. At most `environments` results are ever on their way.
  StateQueue(const ObservationShape& shape, int environments, int batch_size)
      : shape_(shape), batch_size_(batch_size), capacity_(batch_size > 0 ? batch_size : environments) {
    // With one block more than the results on their way can fill, a block's turn comes only after the caller has taken
    // the block that was in its place.
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
    // Sequentially consistent, so that either the caller sees the last slot filled or this sees that it waits.
    if (block->remaining.fetch_sub(1, std::memory_order_seq_cst) == 1) ready_.post_up_to(1, 1);
  }

  // The caller, call mode: a block for a call of `size` environments.
  Block* open(int size) {
    Block* block = prepared(size);
    ring_[opened_++ % ring_.size()].store(block, std::memory_order_relaxed);
    return block;
  }

  // The caller: the oldest block, in whatever state. Call mode: one must be open.
  Block* front() { return ring_[taken_ % ring_.size()].load(std::memory_order_relaxed); }
  static bool complete(const Block* block) { return block->remaining.load(std::memory_order_seq_cst) == 0; }
  bool wait_for(double seconds) { return ready_.wait_for(seconds); }
  void wake() { ready_.post(); }

  // The caller: takes the oldest block, which is complete; it is lent until given back.
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
