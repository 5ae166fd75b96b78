// A counting semaphore that costs one atomic operation when no thread waits.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace placement {

class Semaphore {
 public:
  // Adds `count` permits and wakes as many waiters.
  void post(int count = 1) {
    if (count <= 0) return;
    const std::int64_t before = count_.fetch_add(count, std::memory_order_seq_cst);
    if (before >= 0) return;  // no thread waits
    const auto wake = static_cast<int>(before < -count ? count : -before);
    const std::lock_guard<std::mutex> lock(mutex_);
    wakeups_ += wake;
    if (wake == 1) {
      wakeup_.notify_one();
    } else {
      wakeup_.notify_all();
    }
  }

  // Adds permits, but not beyond `limit`: for permits that mean "look again", of which one per waiter suffices. The
  // state to be looked at must be written sequentially consistently before.
  void post_up_to(int count, int limit) {
    const std::int64_t permits = count_.load(std::memory_order_seq_cst);
    if (permits < limit) post(static_cast<int>(std::min<std::int64_t>(count, limit - permits)));
  }

  bool try_wait() {
    std::int64_t count = count_.load(std::memory_order_relaxed);
    while (count > 0) {
      if (count_.compare_exchange_weak(count, count - 1, std::memory_order_seq_cst)) return true;
    }
    return false;
  }

  // Takes a permit, waiting for one.
  void wait() {
    if (try_wait() || count_.fetch_sub(1, std::memory_order_seq_cst) > 0) return;
    std::unique_lock<std::mutex> lock(mutex_);
    wakeup_.wait(lock, [this] { return wakeups_ > 0; });
    --wakeups_;
  }

  // Takes a permit, waiting at most `seconds`; returns false if there was none.
  bool wait_for(double seconds) {
    if (try_wait() || count_.fetch_sub(1, std::memory_order_seq_cst) > 0) return true;
    std::unique_lock<std::mutex> lock(mutex_);
    if (wakeup_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return wakeups_ > 0; })) {
      --wakeups_;
      return true;
    }
    // Take the claim back, unless a post has since counted on this waiter: then its wakeup is coming.
    std::int64_t count = count_.load(std::memory_order_relaxed);
    while (count < 0) {
      if (count_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return false;
    }
    wakeup_.wait(lock, [this] { return wakeups_ > 0; });
    --wakeups_;
    return true;
  }

 private:
  std::atomic<std::int64_t> count_{0};  // permits, or minus the number of waiters
  std::mutex mutex_;
  std::condition_variable wakeup_;
  int wakeups_ = 0;  // granted to waiters and not yet taken
};

}  // namespace placement
