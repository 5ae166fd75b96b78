// Pools by number, for callers that can pass no pointer: XLA programs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "pool/environment_pool.hpp"

namespace placement {

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
  // Null where there is none, or none any more.
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
