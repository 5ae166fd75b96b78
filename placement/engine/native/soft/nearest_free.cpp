#include "soft/nearest_free.hpp"

#include <cmath>

namespace placement {

NearestFree::NearestFree(const Canvas& canvas)
    : width_(static_cast<float>(canvas.width / kCells)),
      height_(static_cast<float>(canvas.height / kCells)),
      nearest_(kCells * kCells),
      directions_(kCells * kCells) {}

void NearestFree::build(const std::vector<Rectangle>& fixed) {
  for (int cell = 0; cell < kCells * kCells; ++cell) nearest_[cell] = cell;
  for (const Rectangle& box : fixed) {
    for (int row = index(box.low, height_); row <= index(box.high, height_); ++row) {
      const float y = (static_cast<float>(row) + 0.5F) * height_;
      if (y < box.low || y > box.high) continue;
      for (int column = index(box.left, width_); column <= index(box.right, width_); ++column) {
        const float x = (static_cast<float>(column) + 0.5F) * width_;
        if (x >= box.left && x <= box.right) nearest_[row * kCells + column] = -1;
      }
    }
  }
  find_nearest();
  for (int cell = 0; cell < kCells * kCells; ++cell) {
    const int to = nearest_[cell];
    Direction& direction = directions_[cell] = {};
    if (to < 0 || to == cell) continue;
    const float x = static_cast<float>(to % kCells - cell % kCells) * width_;
    const float y = static_cast<float>(to / kCells - cell / kCells) * height_;
    const float length = std::fabs(x) + std::fabs(y);
    direction = {x / length, y / length};
  }
}

float NearestFree::distance(int from, int to) const {
  const float x = static_cast<float>(to % kCells - from % kCells) * width_;
  const float y = static_cast<float>(to / kCells - from / kCells) * height_;
  return x * x + y * y;
}

// Takes over the nearest free cell of the neighbour at (row, column) if it is nearer.
void NearestFree::offer(int cell, int row, int column) {
  if (row < 0 || row >= kCells || column < 0 || column >= kCells) return;
  const int there = nearest_[row * kCells + column];
  if (there < 0) return;
  if (nearest_[cell] < 0 || distance(cell, there) < distance(cell, nearest_[cell])) nearest_[cell] = there;
}

// Two passes over the cells, each row both ways (the eight-neighbour distance transform of Danielsson, 1980).
void NearestFree::find_nearest() {
  const auto pass = [&](int row, int from_row) {
    for (int column = 0; column < kCells; ++column) {
      for (int shift = -1; shift <= 1; ++shift) offer(row * kCells + column, from_row, column + shift);
      offer(row * kCells + column, row, column - 1);
    }
    for (int column = kCells - 1; column >= 0; --column) offer(row * kCells + column, row, column + 1);
  };
  for (int row = 0; row < kCells; ++row) pass(row, row - 1);
  for (int row = kCells - 1; row >= 0; --row) pass(row, row + 1);
}

}  // namespace placement
