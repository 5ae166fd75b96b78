#include "pool/state_queue.hpp"

#include <thread>

#include "check.hpp"

using placement::Block;
using placement::StateQueue;

namespace {
const placement::ObservationShape kShape = {2, 3, 4};
}

TEST(state_queue_in_call_mode_keeps_the_order_of_calls) {
  StateQueue queue(kShape, 4, 0);
  Block* first = queue.open(3);
  Block* second = queue.open(1);
  queue.filled(second);
  CHECK(queue.front() == first && !StateQueue::complete(first) && StateQueue::complete(second));
  for (int i = 0; i < 3; ++i) queue.filled(first);
  CHECK(queue.take() == first && first->size == 3);
  CHECK(queue.take() == second && second->size == 1);
  queue.give_back(first);
  CHECK(queue.open(4) == first);  // memory is reused
}

TEST(state_queue_in_turn_mode_fills_block_after_block) {
  StateQueue queue(kShape, 5, 2);
  Block* seen[6];
  for (int result = 0; result < 5; ++result) {
    const auto [block, slot] = queue.claim();
    CHECK(slot == result % 2);
    seen[result] = block;
    queue.filled(block);
  }
  CHECK(seen[0] == seen[1] && seen[1] != seen[2] && seen[2] == seen[3] && seen[3] != seen[4]);
  CHECK(queue.front() == seen[0] && queue.take() == seen[0] && queue.take() == seen[2]);
  CHECK(queue.front() == seen[4] && !StateQueue::complete(seen[4]));
}

TEST(state_queue_signals_the_last_slot) {
  StateQueue queue(kShape, 2, 0);
  Block* block = queue.open(2);
  queue.filled(block);
  CHECK(!queue.wait_for(0.001));
  queue.filled(block);
  CHECK(queue.wait_for(1.0) && StateQueue::complete(block));
}

TEST(state_queue_carries_what_several_threads_write) {
  constexpr int kEnvironments = 6, kBatch = 4, kBatches = 3000;
  StateQueue queue(kShape, kEnvironments, kBatch);
  placement::Semaphore resting;  // environments that may be stepped
  resting.post(kEnvironments);
  std::atomic<int> next{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&] {
      while (true) {
        resting.wait();
        const int value = next++;
        if (value >= kBatch * kBatches) return resting.post();
        const auto [block, slot] = queue.claim();
        block->batch.env_id()[slot] = value;
        queue.filled(block);
      }
    });
  }
  std::vector<bool> seen(kBatch * kBatches);
  for (int batch = 0; batch < kBatches; ++batch) {
    Block* block = queue.front();
    while (!StateQueue::complete(block)) queue.wait_for(0.05);
    CHECK(queue.take() == block);
    for (int slot = 0; slot < kBatch; ++slot) {
      const int value = block->batch.env_id()[slot];
      CHECK(!seen[value]);
      seen[value] = true;
    }
    queue.give_back(block);
    resting.post(kBatch);
  }
  for (std::thread& worker : workers) worker.join();
}
