// Routing demand of nets, stored as differences along the lines of the grid, so that a segment changes only its two
// ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cost/route_shapes.hpp"

namespace placement {

// Values before a proposal changed them, each once.

struct StepChange {
  std::int32_t index;        // of the value
  std::int16_t line, place;  // position on the grid; a line runs along the smoothing
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

class RouteSteps : public RouteShapes<RouteSteps> {
 public:
  explicit RouteSteps(const Canvas& canvas)
      : RouteShapes(canvas),
        horizontal_(canvas.cells(), 0.0),
        vertical_(canvas.cells(), 0.0),
        old_horizontal_(canvas.cells()),
        old_vertical_(canvas.cells()),
        horizontal_log_(canvas.cells()),
        vertical_log_(canvas.cells()) {}

  // Changes of the demand from one column to the next, [C, R], and from one row to the next, [R, C].
  const std::vector<double>& horizontal() const { return horizontal_; }
  const std::vector<double>& vertical() const { return vertical_; }

  // Copies these steps, in the layout of horizontal() and vertical(); discards the state saved by begin().
  void take(const std::vector<std::int32_t>& horizontal, const std::vector<std::int32_t>& vertical) {
    std::copy_n(horizontal.begin(), horizontal_.size(), horizontal_.begin());
    std::copy_n(vertical.begin(), vertical_.size(), vertical_.begin());
    horizontal_log_.forget();
    vertical_log_.forget();
    is_copied_ = false;
  }
  void clear() {
    std::fill(horizontal_.begin(), horizontal_.end(), 0.0);
    std::fill(vertical_.begin(), vertical_.end(), 0.0);
  }

  // Changes after this can be undone. `logged`: they are made with kLogged; otherwise everything is copied, which is
  // cheaper for many changes.
  void begin(bool logged) {
    is_copied_ = !logged;
    horizontal_log_.forget();
    vertical_log_.forget();
    if (logged) return;
    std::copy(horizontal_.begin(), horizontal_.end(), old_horizontal_.begin());
    std::copy(vertical_.begin(), vertical_.end(), old_vertical_.begin());
  }
  void undo() {
    if (is_copied_) {
      horizontal_.swap(old_horizontal_);
      vertical_.swap(old_vertical_);
      is_copied_ = false;
    }
    horizontal_log_.restore(horizontal_.data());
    vertical_log_.restore(vertical_.data());
  }
  const StepLog& horizontal_log() const { return horizontal_log_; }
  const StepLog& vertical_log() const { return vertical_log_; }

 private:
  friend class RouteShapes<RouteSteps>;
  template <bool kLogged>
  void take_across(int column, int row, int pillar, double change) {
    double& at = horizontal_[pillar + row];
    if constexpr (kLogged) horizontal_log_.note(pillar + row, column, row, at);
    at += change;
  }
  template <bool kLogged>
  void take_upward(int column, int row, int level, double change) {
    double& at = vertical_[level + column];
    if constexpr (kLogged) vertical_log_.note(level + column, row, column, at);
    at += change;
  }

  std::vector<double> horizontal_, vertical_;
  std::vector<double> old_horizontal_, old_vertical_;  // state at begin() if is_copied_
  bool is_copied_ = false;
  StepLog horizontal_log_, vertical_log_;
};

// The same in integers of half the size, for integer weights; changes can be undone.
class WholeRouteSteps : public RouteShapes<WholeRouteSteps> {
 public:
  static constexpr int kWide = 8;  // number of values that may be read at once, also beyond the last one

  explicit WholeRouteSteps(const Canvas& canvas)
      : RouteShapes(canvas),
        horizontal_(canvas.cells() + kWide, 0),
        vertical_(horizontal_),
        old_horizontal_(horizontal_),
        old_vertical_(horizontal_) {}

  const std::vector<std::int32_t>& horizontal() const { return horizontal_; }
  const std::vector<std::int32_t>& vertical() const { return vertical_; }

  void take(const RouteSteps& steps) {
    std::transform(steps.horizontal().begin(), steps.horizontal().end(), horizontal_.begin(), whole);
    std::transform(steps.vertical().begin(), steps.vertical().end(), vertical_.begin(), whole);
  }
  // Changes after this can be undone.
  void begin() {
    std::copy(horizontal_.begin(), horizontal_.end(), old_horizontal_.begin());
    std::copy(vertical_.begin(), vertical_.end(), old_vertical_.begin());
  }
  void undo() {
    horizontal_.swap(old_horizontal_);
    vertical_.swap(old_vertical_);
  }

 private:
  friend class RouteShapes<WholeRouteSteps>;
  static std::int32_t whole(double change) { return static_cast<std::int32_t>(change); }
  template <bool kLogged>
  void take_across(int, int row, int pillar, double change) {
    horizontal_[pillar + row] += whole(change);
  }
  template <bool kLogged>
  void take_upward(int column, int, int level, double change) {
    vertical_[level + column] += whole(change);
  }

  std::vector<std::int32_t> horizontal_, vertical_;
  std::vector<std::int32_t> old_horizontal_, old_vertical_;  // state at begin()
};

}  // namespace placement
