#include "pool/work_queue.hpp"

#include <array>
#include <thread>

#include "check.hpp"

using placement::ActionQueue;

TEST(action_queue_is_first_in_first_out) {
  ActionQueue queue(3);
  std::int32_t got = -1;
  CHECK(!queue.pop(&got));
  for (int round = 0; round < 5; ++round) {  // across the ring's end
    const std::array<std::int32_t, 3> sent = {round, round + 10, round + 20};
    queue.push(sent.data(), 3);
    for (const std::int32_t expected : sent) CHECK(queue.pop(&got) && got == expected);
    CHECK(!queue.pop(&got));
  }
}

TEST(action_queue_gives_every_entry_to_one_consumer) {
  constexpr int kEnvironments = 8, kRounds = 20000, kConsumers = 3;
  ActionQueue queue(kEnvironments);
  std::array<std::atomic<int>, kEnvironments> resting{}, steps{};
  for (auto& flag : resting) flag = 1;
  std::atomic<bool> done{false};
  std::vector<std::thread> consumers;
  for (int i = 0; i < kConsumers; ++i) {
    consumers.emplace_back([&] {
      std::int32_t env = -1;
      while (!done.load() || queue.pop(&env)) {
        if (env < 0 && !queue.pop(&env)) continue;
        CHECK(resting[env].exchange(1) == 0);  // never handed out twice
        ++steps[env];
        env = -1;
      }
    });
  }
  int sent = 0;
  for (std::int32_t env = 0; sent < kRounds; env = (env + 1) % kEnvironments) {
    if (resting[env].exchange(0) == 0) continue;  // still in flight
    queue.push(&env, 1);
    ++sent;
  }
  done = true;
  for (std::thread& consumer : consumers) consumer.join();
  int total = 0;
  for (const auto& count : steps) total += count.load();
  CHECK(total == kRounds);
}
