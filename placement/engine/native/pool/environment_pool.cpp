#include "pool/environment_pool.hpp"

#include <pthread.h>
#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <utility>

namespace placement {
namespace {

constexpr double kDesignSeconds = 600;  // maximum wait of an environment for its next design
constexpr double kSlice = 0.05;  // seconds between two checks for an interruption of the caller
// Steps of at most kFew environments with at most kFewCells gcells in total take about as long as waking a thread.
constexpr int kFew = 16;
constexpr std::size_t kFewCells = 20'000;

// Number of forks of this process: a forked child has a pool's memory but not its threads.
std::atomic<std::uint64_t> fork_count{0};

std::uint64_t fork_generation() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++fork_count; });
  static_cast<void>(registered);
  return fork_count.load();
}

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

int checked_batch_size(int batch_size, int environments) {
  if (batch_size < 0 || batch_size > environments) {
    throw std::invalid_argument("batch_size=" + std::to_string(batch_size) + ": must be in [1, " +
                                std::to_string(environments) + "], the number of environments");
  }
  return batch_size == 0 ? environments : batch_size;
}

int checked_threads(int threads, int environments) {
  if (threads < 0 || threads > 4096) {
    throw std::invalid_argument("num_threads=" + std::to_string(threads) + ": must be in [0, 4096], 0 for one per core");
  }
  return threads == 0 ? std::min(cores(), environments) : std::min(threads, environments);
}

PlanList prepared(PlanList designs, const PoolOptions& options) {
  designs.grow_to(options.drawn_shape);
  designs.shape.compact = options.compact_maps;
  return designs;
}

void pin(int core) {
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core % cores(), &set);
  // Best effort: if this process may not use the core, the thread remains unpinned.
  static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof(set), &set));
#else
  static_cast<void>(core);
#endif
}

}  // namespace

EnvironmentPool::EnvironmentPool(const std::vector<std::shared_ptr<const Design>>& designs, const std::vector<int>& design_of_env,
                     const EnvironmentConfig& environment, const PoolOptions& config)
    : designs_(prepared(PlanList(designs), config)),
      environment_config_(environment),
      batch_size_(checked_batch_size(config.batch_size, static_cast<int>(design_of_env.size()))),
      num_threads_(checked_threads(config.num_threads, static_cast<int>(design_of_env.size()))),
      work_(static_cast<int>(design_of_env.size()), num_threads_,
            batch_size_ == static_cast<int>(design_of_env.size())),
      states_(designs_.shape, static_cast<int>(design_of_env.size()),
              batch_size_ == static_cast<int>(design_of_env.size()) ? 0 : batch_size_),
      own_workspace_(designs_, environment, config.episodes_per_design > 0),
      episodes_per_design_(config.episodes_per_design),
      affinity_offset_(config.thread_affinity_offset),
      observer_(std::make_unique<ObservationWriter>(designs_.shape)),
      fork_generation_(fork_generation()) {
  const bool drawn = episodes_per_design_ > 0;
  if (drawn) supply_ = std::make_unique<DesignSupply>(static_cast<int>(design_of_env.size()));
  for (std::size_t env = 0; env < design_of_env.size(); ++env) {
    const auto& plan = designs_.plans.at(drawn ? env : design_of_env[env]);
    entries_.emplace_back(Environment(plan, design_of_env[env], environment.dead_end_penalty));
    entries_.back().environment.seed(stream_seed(config.seed, env));
    if (drawn) entries_.back().scorer = std::make_unique<EpisodeScorer>(plan->design, environment);
  }
  if (drawn) designs_.plans.clear();
  if (num_threads_ > 1 || !synchronous()) start_workers();
}

void EnvironmentPool::start_workers() {
  for (int worker = 0; worker < num_threads_; ++worker) {
    const bool owns = worker == 0 && !synchronous();
    Workspace& workspace = owns ? own_workspace_ : workspaces_.emplace_back(designs_, environment_config_, supply_ != nullptr);
    threads_.emplace_back([this, worker, &workspace] {
      if (affinity_offset_ >= 0) pin(affinity_offset_ + worker);
      work(worker, workspace);
    });
  }
}

EnvironmentPool::~EnvironmentPool() { close(); }

bool EnvironmentPool::forked() const { return fork_generation_ != fork_count.load(); }

void EnvironmentPool::close() {
  if (forked()) return;
  {
    const std::lock_guard<std::mutex> lock(callers_);
    if (closed_.exchange(true)) return;
  }
  work_.close();
  if (supply_) supply_->close();
  states_.wake();
  for (std::thread& thread : threads_) thread.join();
}

std::unique_lock<std::mutex> EnvironmentPool::lock_for_use() const {
  if (forked()) {
    throw PoolMisuse("this process was forked from the process that created the pool and has none of its threads. "
                     "Create a pool in this process, or start processes with 'spawn'");
  }
  std::unique_lock<std::mutex> lock(callers_);
  if (closed()) throw PoolMisuse("the pool is closed");
  return lock;
}

void EnvironmentPool::check_environments(const std::int32_t* env_ids, int count) {
  if (count == 0) throw std::invalid_argument("env_id: must contain at least one environment");
  ++calls_;
  for (int i = 0; i < count; ++i) {
    const int env = env_ids[i];
    if (env < 0 || env >= size()) {
      throw std::out_of_range("env_id: " + std::to_string(env) + " must be in [0, " + std::to_string(size()) + ")");
    }
    Entry& entry = entries_[env];
    if (entry.mark == calls_) {
      throw std::invalid_argument("env_id: " + std::to_string(env) + " occurs twice in one call");
    }
    entry.mark = calls_;
    if (entry.busy) {
      throw PoolMisuse("environment " + std::to_string(env) +
                       " is in flight; receive its result before you send to it again");
    }
  }
}

EnvironmentPool::Entry& EnvironmentPool::entry_at_rest(int env_id) {
  const std::int32_t id = env_id;
  check_environments(&id, 1);
  return entries_[env_id];
}

void EnvironmentPool::send_locked(const std::int32_t* actions, const std::int32_t* env_ids, int count, bool working_along) {
  check_environments(env_ids, count);
  for (int i = 0; i < count; ++i) {
    const Environment& environment = entries_[env_ids[i]].environment;
    int obstacle = -1;
    const Verdict verdict = environment.judge(Action(actions[i], shape()), &obstacle);
    if (verdict != Verdict::legal) {
      const Refusal refusal{env_ids[i], environment.state().step(), environment.design_index(), verdict, obstacle};
      throw IllegalAction(refusal, actions[i]);
    }
  }
  for (int i = 0; i < count; ++i) {
    Entry& entry = entries_[env_ids[i]];
    entry.request = Request::advance;
    entry.action = actions[i];
  }
  enqueue(env_ids, count, working_along);
}

void EnvironmentPool::reset_locked(const std::int32_t* env_ids, int count, const std::uint64_t* seeds,
                                   bool working_along) {
  check_environments(env_ids, count);
  for (int i = 0; i < count; ++i) {
    Entry& entry = entries_[env_ids[i]];
    entry.request = Request::reset;
    entry.seed = seeds == nullptr ? std::nullopt : std::optional<std::uint64_t>(seeds[i]);
  }
  enqueue(env_ids, count, working_along);
}

void EnvironmentPool::enqueue(const std::int32_t* env_ids, int count, bool working_along) {
  if (!working_along && threads_.empty()) start_workers();
  Block* block = synchronous() ? states_.open(count) : nullptr;
  bool takes_long = count > kFew || count * designs_.shape.cells() > kFewCells;
  for (int i = 0; i < count; ++i) {
    Entry& entry = entries_[env_ids[i]];
    const bool begins = entry.request == Request::reset || entry.environment.ended();
    takes_long |= entry.environment.ends_next() || (supply_ && begins);  // a new episode may wait for its design
    entry.busy = true;
    entry.block = block;
    entry.slot = i;
  }
  in_flight_ += count;
  // The calling thread finishes a few short steps sooner than a sleeping worker wakes up.
  const int wanted = working_along && !takes_long ? 0 : std::min(count, num_threads_) - (working_along ? 1 : 0);
  work_.push(env_ids, count, wanted, working_along ? num_threads_ - 1 : -1);
}

void EnvironmentPool::send(const std::int32_t* actions, const std::int32_t* env_ids, int count) {
  const auto lock = lock_for_use();
  send_locked(actions, env_ids, count, false);
}

void EnvironmentPool::send_reset(const std::int32_t* env_ids, int count, const std::uint64_t* seeds) {
  const auto lock = lock_for_use();
  reset_locked(env_ids, count, seeds, false);
}

template <typename Enqueue>
Block* EnvironmentPool::call(Enqueue enqueue, double timeout, const std::function<void()>& interrupted) {
  {
    const auto lock = lock_for_use();
    if (receiving_) throw PoolMisuse("step: another thread is receiving");
    enqueue(synchronous());
  }
  try {
    return recv(timeout, interrupted);
  } catch (...) {
    work_.wake();  // the caller left before completing its part of the work
    throw;
  }
}

Block* EnvironmentPool::step(const std::int32_t* actions, const std::int32_t* env_ids, int count, double timeout,
                             const std::function<void()>& interrupted) {
  return call([&](bool working_along) { send_locked(actions, env_ids, count, working_along); }, timeout, interrupted);
}

Block* EnvironmentPool::reset(const std::int32_t* env_ids, int count, const std::uint64_t* seeds, double timeout,
                              const std::function<void()>& interrupted) {
  return call([&](bool working_along) { reset_locked(env_ids, count, seeds, working_along); }, timeout, interrupted);
}

Block* EnvironmentPool::recv(double timeout, const std::function<void()>& interrupted) {
  Block* block = nullptr;
  {
    const auto lock = lock_for_use();
    if (receiving_) throw PoolMisuse("recv: another thread is receiving");
    const int needed = synchronous() ? 1 : batch_size_;
    if (in_flight_ < needed) {
      throw PoolMisuse("recv: would wait forever: " + std::to_string(in_flight_) + " environments are in flight and " +
                       (synchronous() ? "no action was sent" : "a batch needs " + std::to_string(needed)));
    }
    receiving_ = true;
    block = states_.front();
  }
  struct Receiving {
    EnvironmentPool& pool;
    ~Receiving() {
      const std::lock_guard<std::mutex> lock(pool.callers_);
      pool.receiving_ = false;
    }
  };
  {
    const Receiving receiving{*this};
    await(block, timeout, interrupted);
    raise_failure(block);
  }
  const std::lock_guard<std::mutex> lock(callers_);
  states_.take();
  for (int slot = 0; slot < block->size; ++slot) entries_[block->batch.env_id()[slot]].busy = false;
  in_flight_ -= block->size;
  return block;
}

void EnvironmentPool::await(Block* block, double timeout, const std::function<void()>& interrupted) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  };
  const Clock::time_point start = Clock::now();
  Clock::time_point looked = start;
  for (int turn = 0; !StateQueue::complete(block); ++turn) {
    if (closed()) throw PoolMisuse("recv: the pool was closed");
    std::int32_t env = -1;
    if (synchronous() && work_.pop(num_threads_ - 1, &env)) {
      // Reading the clock takes time: it is rarely read if steps take microseconds and there is no deadline.
      const bool takes_long = entries_[env].environment.ends_next();
      run(env, own_workspace_);
      if (timeout < 0 && !takes_long && turn % 64 != 63) continue;
    } else {
      const double left = timeout < 0 ? kSlice : timeout - seconds_since(start);
      if (left > 0 && !work_.spin_until([block] { return StateQueue::complete(block); })) {
        states_.wait_for(std::min(left, kSlice));
      }
    }
    if (timeout >= 0 && seconds_since(start) >= timeout && !StateQueue::complete(block)) {
      throw PoolTimeout("recv: no batch was ready within " + std::to_string(timeout) + " seconds; " +
                        std::to_string(block->size - block->remaining.load()) + " of " +
                        std::to_string(block->size) + " results are ready");
    }
    if (seconds_since(looked) >= kSlice) {
      interrupted();
      looked = Clock::now();
    }
  }
}

void EnvironmentPool::raise_failure(Block* block) {
  const std::lock_guard<std::mutex> lock(block->failures_mutex);
  if (block->failures.empty()) return;
  const auto [environment, what] = block->failures.back();
  block->failures.pop_back();
  throw WorkerFailure(environment, what);
}

void EnvironmentPool::release(Block* block) {
  const std::lock_guard<std::mutex> lock(callers_);
  states_.give_back(block);
}

void EnvironmentPool::work(int worker, Workspace& workspace) {
  while (true) {
    work_.wait(worker);
    std::int32_t env = -1;
    while (!closed() && work_.pop(worker, &env)) run(env, workspace);
    if (closed()) return;
  }
}

void EnvironmentPool::run(int env_id, Workspace& workspace) {
  Entry& entry = entries_[env_id];
  Environment& environment = entry.environment;
  std::string failure;
  const auto begin = [&] { supply_ ? begin_drawn(env_id) : environment.reset(); };
  try {
    if (entry.request == Request::reset) {
      if (entry.seed) environment.seed(*entry.seed);
      begin();
    } else if (environment.ended()) {
      begin();
    } else {
      entry.episodes = std::max(entry.episodes, 1);  // an episode may begin once without a reset: the first
      environment.advance(Action(entry.action, shape()),
                          entry.scorer ? *entry.scorer : workspace.scorers[environment.design_index()]);
    }
  } catch (const std::exception& error) {
    failure = std::string("its step failed and a new episode was started: ") + error.what();
    environment.reset();
  }
  auto [block, slot] = synchronous() ? std::pair<Block*, int>(entry.block, entry.slot) : states_.claim();
  if (!failure.empty()) {
    const std::lock_guard<std::mutex> lock(block->failures_mutex);
    block->failures.emplace_back(env_id, failure);
  }
  block->batch.write(slot, env_id, environment, workspace.writer);
  states_.filled(block);  // from here on the environment belongs to the caller
}

// Begins an episode, with the next design if the current one has had all its episodes.
void EnvironmentPool::begin_drawn(int env_id) {
  Entry& entry = entries_[env_id];
  if (entry.episodes == episodes_per_design_) {
    DrawnDesign next = supply_->take(env_id, kDesignSeconds);
    entry.environment.play(std::move(next.plan), next.number);
    entry.scorer = std::move(next.scorer);
    entry.episodes = 0;
  } else {
    entry.environment.reset();
  }
  ++entry.episodes;
}

DesignSupply& EnvironmentPool::supply() {
  if (!supply_) throw PoolMisuse("the pool does not draw designs: its designs are fixed");
  return *supply_;
}

void EnvironmentPool::bring_design(int env_id, int number, const std::shared_ptr<const Design>& design) {
  DrawnDesign drawn{number, playable_plan(design), std::make_unique<EpisodeScorer>(design, environment_config_)};
  shape().require(*drawn.plan);
  supply().bring(env_id, std::move(drawn));
}

double EnvironmentPool::thread_seconds() const {
  const auto lock = lock_for_use();
  double seconds = 0;
#ifdef __linux__
  for (const std::thread& thread : threads_) {
    clockid_t clock;
    timespec used;
    if (pthread_getcpuclockid(const_cast<std::thread&>(thread).native_handle(), &clock) != 0 ||
        clock_gettime(clock, &used) != 0) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    seconds += static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  }
#else
  if (!threads_.empty()) seconds = std::numeric_limits<double>::quiet_NaN();
#endif
  return seconds;
}

int EnvironmentPool::in_flight() const {
  const std::lock_guard<std::mutex> lock(callers_);
  return in_flight_;
}

void EnvironmentPool::sample_actions(const std::int32_t* env_ids, int count, std::int32_t* actions) {
  const auto lock = lock_for_use();
  check_environments(env_ids, count);
  for (int i = 0; i < count; ++i) actions[i] = entries_[env_ids[i]].environment.sample_action(shape());
}

std::unique_ptr<Block> EnvironmentPool::observe(const std::int32_t* env_ids, int count) {
  const auto lock = lock_for_use();
  check_environments(env_ids, count);
  auto block = std::make_unique<Block>(shape(), count);
  block->size = count;
  for (int i = 0; i < count; ++i) {
    block->batch.write(i, env_ids[i], entries_[env_ids[i]].environment, *observer_);
  }
  return block;
}

std::string EnvironmentPool::snapshot(int env_id) {
  const auto lock = lock_for_use();
  return entry_at_rest(env_id).environment.snapshot();
}

void EnvironmentPool::restore(int env_id, const std::string& bytes) {
  const auto lock = lock_for_use();
  entry_at_rest(env_id).environment.restore(bytes);
}

bool EnvironmentPool::last_placement(int env_id, int* design, std::vector<double>* x, std::vector<double>* y) {
  const auto lock = lock_for_use();
  const Environment& environment = entry_at_rest(env_id).environment;
  *x = environment.last_x();
  *y = environment.last_y();
  *design = environment.last_design();
  return environment.has_finished();
}

}  // namespace placement
