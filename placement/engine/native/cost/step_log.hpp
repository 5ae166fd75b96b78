// What some values were before a proposal changed them, each once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace placement {

struct StepChange {
  std::int32_t index;        // of the value
  std::int16_t line, place;  // where it is on the grid; a line runs along the smoothing
  double before;
};

class StepLog {
 public:
  explicit StepLog(int values) : stamp_(values, 0), changes_(values) {}

  // Forgets the changes.
  void forget() {
    count_ = 0;
    if (++epoch_ != 0) return;
    std::fill(stamp_.begin(), stamp_.end(), 0);
    epoch_ = 1;
  }
  // Call this before a value changes.
  void note(int index, int line, int place, double before) {
    if (stamp_[index] == epoch_) return;
    stamp_[index] = epoch_;
    changes_[count_++] = {index, static_cast<std::int16_t>(line), static_cast<std::int16_t>(place), before};
  }
  void restore(double* values) {
    for (int i = 0; i < count_; ++i) values[changes_[i].index] = changes_[i].before;
    forget();
  }

  const StepChange* begin() const { return changes_.data(); }
  const StepChange* end() const { return changes_.data() + count_; }

 private:
  std::vector<std::uint32_t> stamp_;
  std::uint32_t epoch_ = 0;
  std::vector<StepChange> changes_;
  int count_ = 0;
};

}  // namespace placement
