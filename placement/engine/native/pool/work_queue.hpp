// The environments waiting to be stepped. Every worker has its own lane, so that an environment mostly stays on one
// core and its state in that core's cache. A worker with an empty lane takes from other lanes.
//
// A worker that finds none polls for a while (spins_for) before it sleeps: a caller that steps in a loop returns before
// a sleeping thread would wake up.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "pool/semaphore.hpp"

namespace placement {

// The environments whose next step is to be computed; lock-free, one producer at a time, any number of consumers.

class ActionQueue {
 public:
  // Capacity in environments; the caller of `push` never exceeds it.
  explicit ActionQueue(int capacity) {
    std::size_t size = 1;
    while (size < static_cast<std::size_t>(capacity)) size *= 2;
    ring_ = std::vector<std::atomic<std::int32_t>>(size);
  }

  // Only one thread at a time. The popping thread sees all writes before the push.
  void push(const std::int32_t* environments, int count) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    for (int i = 0; i < count; ++i) at(tail + i).store(environments[i], std::memory_order_relaxed);
    tail_.store(tail + count, std::memory_order_seq_cst);
  }

  bool empty() const {
    return head_.load(std::memory_order_seq_cst) >= tail_.load(std::memory_order_seq_cst);
  }

  // Returns false if the queue is empty.
  bool pop(std::int32_t* environment) {
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    while (head < tail_.load(std::memory_order_seq_cst)) {
      // Read before claiming: as long as the entry is unclaimed, it cannot have been overwritten.
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

// Hints to the core that this is a spin loop.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Number of polls before a waiting thread sleeps (a poll takes about 40 ns, waking a sleeper often 100 µs), given the
// number `threads` of runnable threads: small if one of them has no core, 0 if several have none.
inline int spins_for(int threads) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (threads <= cores) return 4000;
  return threads == cores + 1 ? 500 : 0;
}

class WorkQueue {
 public:
  // `caller_works`: the calling thread steps environments in place of one of the workers.
  WorkQueue(int environments, int workers, bool caller_works = true)
      : environments_(environments), spins_(spins_for(caller_works ? workers : workers + 1)) {
    for (int worker = 0; worker < workers; ++worker) lanes_.push_back(std::make_unique<Lane>(environments));
  }

  int workers() const { return static_cast<int>(lanes_.size()); }

  // Queues the environments and wakes up to `wanted` workers, beginning with those whose lanes received environments.
  // `working_along` (or -1) is a lane whose worker is not woken because the caller does its work. Only one thread at a
  // time.
  void push(const std::int32_t* environments, int count, int wanted, int working_along) {
    for (int first = 0; first < count;) {
      const int lane = home(environments[first]);
      int last = first + 1;
      while (last < count && home(environments[last]) == lane) ++last;
      lanes_[lane]->queue.push(environments + first, last - first);
      lanes_[lane]->called = true;
      first = last;
    }
    for (const bool called : {true, false}) {
      for (int lane = 0; lane < workers() && wanted > 0; ++lane) {
        if (lane != working_along && lanes_[lane]->called == called && call(*lanes_[lane])) --wanted;
      }
    }
    for (auto& lane : lanes_) lane->called = false;
  }

  // The next environment for a worker; returns false if there is none.
  bool pop(int worker, std::int32_t* environment) {
    for (int i = 0; i < workers(); ++i) {
      if (lanes_[(worker + i) % workers()]->queue.pop(environment)) return true;
    }
    return false;
  }

  // Returns when there may be work.
  void wait(int worker) {
    Lane& lane = *lanes_[worker];
    lane.state.store(State::looking, std::memory_order_seq_cst);
    if (spin_until([this] { return anything() || closed_.load(std::memory_order_relaxed); })) {
      return lane.state.store(State::working);
    }
    // Either this thread sees what was pushed, or the pushing thread sees that this one sleeps.
    lane.state.store(State::sleeping, std::memory_order_seq_cst);
    if (!anything() && !closed_.load(std::memory_order_seq_cst)) lane.wake.wait();
    lane.state.store(State::working, std::memory_order_seq_cst);
  }

  // Polls `ready` for a while (spins_for).
  template <typename Ready>
  bool spin_until(const Ready& ready) const {
    for (int i = 0; i < spins_; ++i) {
      if (ready()) return true;
      spin_pause();
    }
    return false;
  }

  // Wakes every worker.
  void wake() {
    for (auto& lane : lanes_) call(*lane);
  }

  // No worker waits after this call.
  void close() {
    closed_.store(true, std::memory_order_seq_cst);
    for (auto& lane : lanes_) lane->wake.post();
  }

 private:
  enum class State : std::int8_t { working, looking, sleeping };
  struct alignas(64) Lane {
    explicit Lane(int capacity) : queue(capacity) {}
    ActionQueue queue;
    Semaphore wake;
    std::atomic<State> state{State::working};
    bool called = false;  // the pushing thread's: something was queued in this lane
  };

  int home(std::int32_t environment) const {
    return static_cast<int>(static_cast<std::int64_t>(environment) * workers() / environments_);
  }
  bool anything() const {
    return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return !lane->queue.empty(); });
  }
  // Whether the worker will poll the lanes because of this call.
  bool call(Lane& lane) {
    const State state = lane.state.load(std::memory_order_seq_cst);
    if (state == State::sleeping) lane.wake.post_up_to(1, 1);
    return state != State::working;
  }

  int environments_, spins_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<bool> closed_{false};
};

}  // namespace placement
