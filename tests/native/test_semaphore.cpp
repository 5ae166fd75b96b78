#include "pool/semaphore.hpp"

#include <thread>

#include "check.hpp"

using placement::Semaphore;

TEST(semaphore_counts_permits) {
  Semaphore semaphore;
  CHECK(!semaphore.try_wait());
  semaphore.post(2);
  CHECK(semaphore.try_wait());
  semaphore.wait();
  CHECK(!semaphore.try_wait());
}

TEST(semaphore_posts_up_to_a_limit) {
  Semaphore semaphore;
  semaphore.post_up_to(5, 3);
  semaphore.post_up_to(5, 3);
  for (int i = 0; i < 3; ++i) CHECK(semaphore.try_wait());
  CHECK(!semaphore.try_wait());
}

TEST(semaphore_waits_no_longer_than_asked) {
  Semaphore semaphore;
  CHECK(!semaphore.wait_for(0.01));
  semaphore.post();
  CHECK(semaphore.wait_for(0.0));
  CHECK(!semaphore.wait_for(0.0));
  semaphore.post();  // the claims of the waiters that timed out are gone
  CHECK(semaphore.try_wait());
}

TEST(semaphore_loses_no_permit_between_threads) {
  Semaphore forth, back;
  constexpr int kTurns = 20000;
  std::thread other([&] {
    for (int i = 0; i < kTurns; ++i) {
      forth.wait();
      back.post();
    }
  });
  for (int i = 0; i < kTurns; ++i) {
    forth.post();
    back.wait();
  }
  other.join();
  CHECK(!forth.try_wait() && !back.try_wait());
}

TEST(semaphore_timeouts_and_posts_may_cross) {
  Semaphore semaphore;
  std::atomic<int> taken{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back([&] {
      while (!done.load()) taken += semaphore.wait_for(1e-5);
    });
  }
  constexpr int kPosts = 3000;
  for (int i = 0; i < kPosts; ++i) semaphore.post();
  for (int i = 0; i < 10000000 && taken.load() < kPosts; ++i) std::this_thread::yield();
  done = true;
  for (std::thread& waiter : waiters) waiter.join();
  CHECK(taken.load() == kPosts);
}
