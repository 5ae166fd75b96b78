// The designs of future episodes if every environment changes its design now and then: another thread makes them ahead
// of time, at most one per environment, so that memory is bounded and the designs of an environment do not depend on
// the speed of the others.
//
//   maker ── wanted ──▶ makes a design ── bring ──▶ one place per environment ── take ──▶ worker
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "env/environment.hpp"

namespace placement {

// A design ready to be played: `number` names it in observations.
struct DrawnDesign {
  int number;
  std::shared_ptr<const EpisodePlan> plan;
  std::unique_ptr<EpisodeScorer> scorer;
};

class DesignSupply {
 public:
  explicit DesignSupply(int environments) : places_(environments) {
    for (int env = 0; env < environments; ++env) wanted_.push_back(env);
  }

  // The maker: returns the next environment that needs a design, in the order in which they were emptied; -1 if there
  // was none within `seconds`, or after close.
  int wanted(double seconds) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return closed_ || !wanted_.empty(); });
    if (closed_ || wanted_.empty()) return -1;
    const int env = wanted_.front();
    wanted_.pop_front();
    return env;
  }

  // The maker: delivers the design that `wanted` requested.
  void bring(int env, DrawnDesign design) {
    const std::lock_guard<std::mutex> lock(mutex_);
    places_.at(env) = std::move(design);
    changed_.notify_all();
  }

  // The maker: no more designs follow; every `take` that would have to wait throws std::runtime_error with `reason`.
  void fail(const std::string& reason) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_ = reason;
    changed_.notify_all();
  }

  // A worker: takes the environment's next design. Throws std::runtime_error if there was none within `seconds`.
  DrawnDesign take(int env, double seconds) {
    std::unique_lock<std::mutex> lock(mutex_);
    std::optional<DrawnDesign>& place = places_.at(env);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                      [&] { return closed_ || place.has_value() || !failure_.empty(); });
    if (!place.has_value()) {
      if (closed_) throw std::runtime_error("the pool was closed while an environment waited for a design");
      if (!failure_.empty()) throw std::runtime_error(failure_);
      throw std::runtime_error("no design was supplied within " + std::to_string(seconds) + " seconds");
    }
    DrawnDesign design = std::move(*place);
    place.reset();
    wanted_.push_back(env);
    changed_.notify_all();
    return design;
  }

  // Wakes all waiting threads. May be called twice.
  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<std::optional<DrawnDesign>> places_;  // by environment
  std::deque<int> wanted_;                          // environments with an empty place and no design in the making
  std::string failure_;
  bool closed_ = false;
};

}  // namespace placement
