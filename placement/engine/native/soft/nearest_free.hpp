// The direction from anywhere on the canvas to the nearest point that no fixed macro covers.
#pragma once

#include <cstdint>
#include <vector>

#include "common/design.hpp"

namespace placement {

class NearestFree {
 public:
  struct Rectangle {
    float left, right, low, high;  // µm
  };
  struct Direction {
    float x = 0, y = 0;  // |x| + |y| = 1, or 0 where nothing is in between
  };

  explicit NearestFree(const Canvas& canvas);

  // The fixed macros' rectangles. Owns its workspace.
  void build(const std::vector<Rectangle>& fixed);

  Direction at(float x, float y) const {
    const int cell = index(x, width_) + kCells * index(y, height_);
    return directions_[cell];
  }

 private:
  static constexpr int kCells = 64;  // across the canvas, and up

  static int index(float at, float size) {
    const int cell = static_cast<int>(at / size);
    return cell < 0 ? 0 : cell < kCells ? cell : kCells - 1;
  }
  float distance(int from, int to) const;
  void offer(int cell, int row, int column);
  void find_nearest();

  float width_, height_;               // µm of a cell
  std::vector<std::int32_t> nearest_;  // the nearest free cell, -1 if none is known
  std::vector<Direction> directions_;
};

}  // namespace placement
