#include "pool/work_queue.hpp"

#include <array>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "check.hpp"

using placement::WorkQueue;

TEST(work_queue_hands_a_worker_its_own_lane_first) {
  WorkQueue work(4, 2);  // lane 0 owns environments 0 and 1, lane 1 owns 2 and 3
  const std::array<std::int32_t, 4> all = {0, 1, 2, 3};
  work.push(all.data(), 4, 2, -1);
  std::int32_t got = -1;
  CHECK(work.pop(1, &got) && got == 2);
  CHECK(work.pop(0, &got) && got == 0);
  CHECK(work.pop(1, &got) && got == 3);
  CHECK(work.pop(1, &got) && got == 1);  // from the other's lane
  CHECK(!work.pop(0, &got) && !work.pop(1, &got));
}

TEST(work_queue_wakes_a_worker_for_another_ones_lane) {
  WorkQueue work(2, 2);
  std::atomic<int> stepped{-1};
  std::thread helper([&] {  // worker 1; worker 0 is busy forever
    std::int32_t env = -1;
    while (!work.pop(1, &env)) work.wait(1);
    stepped = env;
  });
  const std::int32_t env = 0;
  work.push(&env, 1, 1, -1);
  helper.join();
  CHECK(stepped.load() == 0);
}

TEST(work_queue_steps_everything_with_workers_that_sleep_and_wake) {
  constexpr int kEnvironments = 6, kWorkers = 3, kRounds = 5000;
  WorkQueue work(kEnvironments, kWorkers);
  std::atomic<int> done{0};
  std::atomic<bool> closed{false};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      std::int32_t env = -1;
      while (!closed.load()) {
        work.wait(worker);
        while (work.pop(worker, &env)) ++done;
      }
    });
  }
  std::vector<std::int32_t> all(kEnvironments);
  std::iota(all.begin(), all.end(), 0);
  for (int round = 0; round < kRounds; ++round) {
    const int count = 1 + round % kEnvironments;
    done = 0;
    work.push(all.data(), count, count, -1);
    while (done.load() < count) std::this_thread::yield();
  }
  closed = true;
  work.close();
  for (std::thread& worker : workers) worker.join();
  CHECK(done.load() == 1 + (kRounds - 1) % kEnvironments);
}
