#include "pool/environment_pool.hpp"

#include <cmath>
#include <numeric>

#include "check.hpp"
#include "toy_design.hpp"

using namespace placement;

namespace {

std::unique_ptr<EnvironmentPool> make(int environments, int batch, int threads,
                                      std::vector<WeightedTerm> terms = {}) {
  EnvironmentConfig environment;
  environment.terms = std::move(terms);
  environment.soft_placer = "none";
  return std::make_unique<EnvironmentPool>(std::vector<std::shared_ptr<const Design>>{toy_design()},
                                     std::vector<int>(environments, 0), environment,
                                     PoolOptions{batch, threads, -1, 1});
}

std::vector<std::int32_t> all(int count) {
  std::vector<std::int32_t> ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

const auto never = [] {};

}  // namespace

TEST(pool_results_do_not_depend_on_the_threads) {
  constexpr int kEnvironments = 9;
  std::vector<std::vector<float>> rewards;
  for (const int threads : {1, 2, 4}) {
    const auto pool = make(kEnvironments, 0, threads);
    const auto ids = all(kEnvironments);
    pool->send_reset(ids.data(), kEnvironments);
    pool->release(pool->recv(10, never));
    std::vector<float> seen;
    std::vector<std::int32_t> actions(kEnvironments);
    for (int call = 0; call < 200; ++call) {
      pool->sample_actions(ids.data(), kEnvironments, actions.data());
      Block* block = pool->step(actions.data(), ids.data(), kEnvironments, 10, never);
      const StepSlot first = block->batch.step(0);
      seen.insert(seen.end(), first.reward, first.reward + kEnvironments);
      pool->release(block);
    }
    rewards.push_back(seen);
  }
  CHECK(rewards[0] == rewards[1] && rewards[1] == rewards[2]);
}

TEST(pool_keeps_every_environment_whole) {
  constexpr int kEnvironments = 12, kBatch = 5;
  const auto pool = make(kEnvironments, kBatch, 3);
  const auto ids = all(kEnvironments);
  pool->send_reset(ids.data(), kEnvironments);
  std::vector<int> expected(kEnvironments, 0);
  std::vector<std::int32_t> actions(kBatch), named(kBatch);
  for (int call = 0; call < 3000; ++call) {
    Block* block = pool->recv(10, never);
    const StepSlot first = block->batch.step(0);
    for (int i = 0; i < kBatch; ++i) {
      named[i] = block->batch.env_id()[i];
      CHECK(first.elapsed_step[i] == expected[named[i]]);
      expected[named[i]] = first.terminated[i] ? 0 : expected[named[i]] + 1;
    }
    pool->release(block);
    pool->sample_actions(named.data(), kBatch, actions.data());
    pool->send(actions.data(), named.data(), kBatch);
  }
}

TEST(pool_may_be_closed_at_any_time) {
  for (int turn = 0; turn < 60; ++turn) {
    const auto pool = make(16, turn % 2 ? 4 : 0, 1 + turn % 4);
    const auto ids = all(16);
    pool->send_reset(ids.data(), 16);
    if (turn % 3 == 0) pool->release(pool->recv(10, never));
    if (turn % 5 == 0) pool->close();
  }
}

TEST(pool_refuses_misuse) {
  const auto pool = make(2, 0, 1);
  const std::int32_t twice[] = {1, 1}, beyond[] = {0, 2}, both[] = {0, 1}, actions[] = {17, 9999};
  CHECK_THROWS(pool->recv(0, never), PoolMisuse);
  CHECK_THROWS(pool->send(actions, twice, 2), std::invalid_argument);
  CHECK_THROWS(pool->send(actions, beyond, 2), std::out_of_range);
  CHECK_THROWS(pool->send(actions, both, 2), IllegalAction);
  pool->send_reset(both, 2);
  CHECK_THROWS(pool->send_reset(both, 1), PoolMisuse);
  pool->release(pool->recv(10, never));
  pool->close();
  CHECK_THROWS(pool->send_reset(both, 2), PoolMisuse);
}

TEST(pool_reports_a_failure_in_a_worker_and_goes_on) {
  static const placement_cost_term failing = {
      PLACEMENT_COST_TERM_VERSION, "failing", [](const placement_design*) -> void* { static int made; return &made; },
      [](void*, const double*, const double*, const std::int8_t*) { return std::nan(""); }, [](void*) {}};
  const auto pool = make(2, 0, 2, {{&failing, 1.0}});
  const std::int32_t both[] = {0, 1};
  std::int32_t actions[2];
  pool->send_reset(both, 2);
  pool->release(pool->recv(10, never));
  bool failed = false;
  while (!failed) {  // the end of an episode fails, a dead end does not
    pool->sample_actions(both, 2, actions);
    pool->send(actions, both, 2);
    for (bool received = false; !received;) {
      try {
        pool->release(pool->recv(10, never));
        received = true;
      } catch (const WorkerFailure&) {
        failed = true;
      }
    }
  }
  pool->send_reset(both, 2);
  pool->release(pool->recv(10, never));
}

TEST(pool_sends_from_several_threads) {
  constexpr int kEnvironments = 8;
  const auto pool = make(kEnvironments, 4, 2);
  const auto ids = all(kEnvironments);
  std::vector<std::thread> senders;
  for (int sender = 0; sender < 2; ++sender) {
    senders.emplace_back([&, sender] { pool->send_reset(ids.data() + 4 * sender, 4); });
  }
  for (std::thread& sender : senders) sender.join();
  int received = 0;
  for (int batch = 0; batch < 2; ++batch) {
    Block* block = pool->recv(10, never);
    for (int i = 0; i < 4; ++i) received += block->batch.env_id()[i];
    pool->release(block);
  }
  CHECK(received == 28 && pool->in_flight() == 0);
}
