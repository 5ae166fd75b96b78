// Environments stepped by a pool of threads: actions in, batches of results out.
//
//   caller ── send ──▶ work queue ──▶ workers ──▶ state queue ── recv ──▶ caller
//
// With batch_size below the number of environments, a batch holds the first results that are ready. With batch_size
// equal to it (synchronous mode), a batch holds the results of one call in the call's order, independent of the
// threads. The calling thread then steps environments too instead of waiting; a synchronous pool of one thread has no
// worker until `send` or `send_reset` needs one.
//
// Callers may be several threads: a mutex guards their bookkeeping, and the workers never touch it. An environment
// belongs to the caller until it is sent, then to a worker, then to the caller again once its result was received.
//
// If designs are drawn, an environment begins another design from a `DesignSupply` every few episodes; otherwise it
// plays the same one repeatedly.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pool/design_supply.hpp"
#include "pool/state_queue.hpp"
#include "pool/work_queue.hpp"

namespace placement {

// The pool's current state does not allow the call; the message says what would be right.
struct PoolMisuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// An illegal action.
struct IllegalAction : std::invalid_argument {
  IllegalAction(const Refusal& refusal_, std::int32_t action_)
      : std::invalid_argument("environment " + std::to_string(refusal_.index) + ": action " +
                              std::to_string(action_) + " is out of range or not legal"),
        refusal(refusal_),
        action(action_) {}
  Refusal refusal;
  std::int32_t action;
};
// No batch was ready in time.
struct PoolTimeout : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// An exception in a worker.
struct WorkerFailure : std::runtime_error {
  WorkerFailure(int environment_, const std::string& what)
      : std::runtime_error("environment " + std::to_string(environment_) + ": " + what), environment(environment_) {}
  int environment;
};

struct PoolOptions {
  int batch_size = 0;              // 0: as many as environments
  int num_threads = 0;             // 0: as many as cores, at most as many as environments
  int thread_affinity_offset = -1;  // worker i on core offset + i; -1: no pinning
  std::uint64_t seed = 0;
  bool compact_maps = false;       // batches hold the maps as bfloat16
  int episodes_per_design = 0;     // if designs are drawn; 0: they are not
  ObservationShape drawn_shape;    // shape into which every drawn design fits; by default the shape of `designs`
};

class EnvironmentPool {
 public:
  // `design_of_env`: indices into `designs`. If designs are drawn, `designs` holds the first design of each environment
  // and `design_of_env` their numbers. Throws UnplayableDesign, or std::invalid_argument.
  EnvironmentPool(const std::vector<std::shared_ptr<const Design>>& designs, const std::vector<int>& design_of_env,
            const EnvironmentConfig& environment, const PoolOptions& config);
  ~EnvironmentPool();
  EnvironmentPool(const EnvironmentPool&) = delete;
  EnvironmentPool& operator=(const EnvironmentPool&) = delete;

  int size() const { return static_cast<int>(entries_.size()); }
  int batch_size() const { return batch_size_; }
  int num_threads() const { return num_threads_; }
  bool synchronous() const { return batch_size_ == size(); }
  bool closed() const { return closed_.load(); }
  // Whether this process was forked from the one that made the pool. The pool must then never be destroyed: it has no
  // threads here, and the semaphores on which they wait cannot be destroyed.
  bool forked() const;
  const PlanList& designs() const { return designs_; }
  const ObservationShape& shape() const { return designs_.shape; }

  // Errors of every call below: PoolMisuse after close, or in a process forked from the pool's; std::out_of_range for a
  // nonexistent environment; std::invalid_argument if one is named twice or none is; PoolMisuse if one is in flight.

  // Takes an action in each of the environments. Throws IllegalAction, in which case nothing has changed.
  void send(const std::int32_t* actions, const std::int32_t* env_ids, int count);
  // Begins an episode in each of the environments; `seeds`, if given, restart their random streams.
  void send_reset(const std::int32_t* env_ids, int count, const std::uint64_t* seeds = nullptr);

  // The oldest batch in synchronous mode, the next `batch_size` results otherwise; must be returned with `release`.
  // Throws PoolMisuse if fewer results are in flight than a batch holds, or another thread is receiving; PoolTimeout
  // after `timeout` seconds (negative: none); WorkerFailure once for each failure, after which the batch can be
  // received. `interrupted` is called periodically and may throw.
  Block* recv(double timeout, const std::function<void()>& interrupted);
  void release(Block* block);

  // send followed by recv, send_reset followed by recv. In synchronous mode the calling thread takes part in the work,
  // and does all of it if the steps are few and short.
  Block* step(const std::int32_t* actions, const std::int32_t* env_ids, int count, double timeout,
              const std::function<void()>& interrupted);
  Block* reset(const std::int32_t* env_ids, int count, const std::uint64_t* seeds, double timeout,
               const std::function<void()>& interrupted);

  // CPU seconds of the pool's own threads so far; NaN if the system does not report them. Throws PoolMisuse after
  // close.
  double thread_seconds() const;
  // Number of results not yet received.
  int in_flight() const;

  // For idle environments: random legal actions (-1 if there is none), the current state, snapshots.
  void sample_actions(const std::int32_t* env_ids, int count, std::int32_t* actions);
  std::unique_ptr<Block> observe(const std::int32_t* env_ids, int count);
  std::string snapshot(int env_id);
  void restore(int env_id, const std::string& bytes);
  // x, y [N]: the placement of the environment's last episode that placed every macro, and its design as numbered in
  // observations; returns false if there is none.
  bool last_placement(int env_id, int* design, std::vector<double>* x, std::vector<double>* y);

  // Called by the maker of drawn designs, see DesignSupply. `bring` throws UnplayableDesign, or std::invalid_argument
  // if the design does not fit into the pool's observations; all throw PoolMisuse if designs are not drawn.
  int wanted_design(double seconds) { return supply().wanted(seconds); }
  void bring_design(int env_id, int number, const std::shared_ptr<const Design>& design);
  void fail_designs(const std::string& reason) { supply().fail(reason); }

  // Ends the threads. Computations in progress are completed, queued ones are discarded. May be called twice.
  void close();

 private:
  enum class Request : std::int8_t { advance, reset };
  struct Entry {
    explicit Entry(Environment environment_) : environment(std::move(environment_)) {}
    Environment environment;
    // The request, written by the caller before it is queued.
    Request request = Request::reset;
    std::int32_t action = 0;
    std::optional<std::uint64_t> seed;
    Block* block = nullptr;  // synchronous mode: destination of the result
    int slot = 0;
    // If designs are drawn: the scorer of the current design, and the number of episodes begun with it; 0: the initial
    // design.
    std::unique_ptr<EpisodeScorer> scorer;
    int episodes = 0;
    // The caller's: whether the environment is in flight.
    bool busy = false;
    std::uint64_t mark = 0;  // the last call that named it
  };
  // Workspace of a thread: nothing is shared between threads.
  struct Workspace {
    Workspace(const PlanList& designs, const EnvironmentConfig& config, bool drawn) : writer(designs.shape) {
      if (drawn) return;
      for (const auto& plan : designs.plans) scorers.emplace_back(plan->design, config);
    }
    std::vector<EpisodeScorer> scorers;  // one per design; none if designs are drawn
    ObservationWriter writer;
  };

  // Holds the mutex; throws PoolMisuse after close, or in a forked process.
  std::unique_lock<std::mutex> lock_for_use() const;
  void check_environments(const std::int32_t* env_ids, int count);
  Entry& entry_at_rest(int env_id);
  // The caller holds the mutex. `working_along`: the calling thread will take part in the work.
  void send_locked(const std::int32_t* actions, const std::int32_t* env_ids, int count, bool working_along);
  void reset_locked(const std::int32_t* env_ids, int count, const std::uint64_t* seeds, bool working_along);
  void enqueue(const std::int32_t* env_ids, int count, bool working_along);
  void start_workers();
  template <typename Enqueue>
  Block* call(Enqueue enqueue, double timeout, const std::function<void()>& interrupted);
  void await(Block* block, double timeout, const std::function<void()>& interrupted);
  void work(int worker, Workspace& workspace);
  void run(int env_id, Workspace& workspace);
  void begin_drawn(int env_id);
  DesignSupply& supply();
  static void raise_failure(Block* block);

  PlanList designs_;
  EnvironmentConfig environment_config_;
  std::vector<Entry> entries_;
  int batch_size_, num_threads_;
  WorkQueue work_;
  StateQueue states_;
  Workspace own_workspace_;  // the calling thread's in synchronous mode, otherwise the first worker's
  std::deque<Workspace> workspaces_;  // the other workers'
  std::unique_ptr<DesignSupply> supply_;  // if designs are drawn
  int episodes_per_design_;
  std::atomic<bool> closed_{false};
  int affinity_offset_;

  mutable std::mutex callers_;  // guards the members below, `busy` and `mark`
  std::vector<std::thread> threads_;
  int in_flight_ = 0;
  bool receiving_ = false;
  std::uint64_t calls_ = 0;
  std::unique_ptr<ObservationWriter> observer_;
  std::uint64_t fork_generation_;
};

// Pools by number, for callers that cannot pass a pointer: XLA programs.

class PoolRegistry {
 public:
  static PoolRegistry& instance() {
    static auto* registry = new PoolRegistry;  // never destroyed: programs may still run at exit
    return *registry;
  }

  std::uint32_t add(const std::shared_ptr<EnvironmentPool>& pool) {
    const std::lock_guard<std::mutex> lock(mutex_);
    pools_[++last_] = pool;
    return last_;
  }
  void remove(std::uint32_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    pools_.erase(number);
  }
  // Null if there is no such pool, or no longer.
  std::shared_ptr<EnvironmentPool> find(std::uint32_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = pools_.find(number);
    return found == pools_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::uint32_t last_ = 0;
  std::map<std::uint32_t, std::weak_ptr<EnvironmentPool>> pools_;
};

}  // namespace placement
