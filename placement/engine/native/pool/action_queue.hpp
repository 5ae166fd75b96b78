// The environments whose next step is to be computed: one producer at a time, any number of consumers, no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace placement {

class ActionQueue {
 public:
  // Holds up to `capacity` environments; the caller of `push` never puts in more.
  explicit ActionQueue(int capacity) {
    std::size_t size = 1;
    while (size < static_cast<std::size_t>(capacity)) size *= 2;
    ring_ = std::vector<std::atomic<std::int32_t>>(size);
  }

  // Only one thread at a time. The thread that pops sees what was written before.
  void push(const std::int32_t* environments, int count) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    for (int i = 0; i < count; ++i) at(tail + i).store(environments[i], std::memory_order_relaxed);
    tail_.store(tail + count, std::memory_order_seq_cst);
  }

  bool empty() const {
    return head_.load(std::memory_order_seq_cst) >= tail_.load(std::memory_order_seq_cst);
  }

  // False where the queue is empty.
  bool pop(std::int32_t* environment) {
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    while (head < tail_.load(std::memory_order_seq_cst)) {
      // Read before claiming: as long as nobody claimed it, the entry cannot have been written over.
      const std::int32_t value = at(head).load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel)) {
        *environment = value;
        return true;
      }
    }
    return false;
  }

 private:
  std::atomic<std::int32_t>& at(std::uint64_t index) { return ring_[index & (ring_.size() - 1)]; }

  std::vector<std::atomic<std::int32_t>> ring_;
  alignas(64) std::atomic<std::uint64_t> head_{0};
  alignas(64) std::atomic<std::uint64_t> tail_{0};
};

}  // namespace placement
