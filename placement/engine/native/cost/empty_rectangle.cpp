#include "cost/empty_rectangle.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace placement {
namespace {

// Coordinates between which nothing changes, from 0 to `end`.
std::vector<double> lines(std::vector<double> sides, double end) {
  for (double& side : sides) side = std::clamp(side, 0.0, end);
  sides.push_back(0.0);
  sides.push_back(end);
  std::sort(sides.begin(), sides.end());
  sides.erase(std::unique(sides.begin(), sides.end()), sides.end());
  return sides;
}

std::size_t index_of(const std::vector<double>& lines, double side) {
  const auto found = std::lower_bound(lines.begin(), lines.end(), std::clamp(side, 0.0, lines.back()));
  return static_cast<std::size_t>(found - lines.begin());
}

}  // namespace

Sides largest_empty_rectangle(double width, double height, const std::vector<Sides>& taken) {
  std::vector<double> x, y;
  for (const Sides& one : taken) {
    x.insert(x.end(), {one.left, one.right});
    y.insert(y.end(), {one.low, one.high});
  }
  x = lines(std::move(x), width);
  y = lines(std::move(y), height);
  const std::size_t columns = x.size() - 1, rows = y.size() - 1;
  std::vector<std::uint8_t> is_taken(columns * rows, 0);
  for (const Sides& one : taken) {
    const std::size_t first = index_of(x, one.left), end = index_of(x, one.right);
    for (std::size_t row = index_of(y, one.low); row < index_of(y, one.high); ++row) {
      for (std::size_t column = first; column < end; ++column) is_taken[row * columns + column] = 1;
    }
  }
  // For each row, the rectangles that end at its upper line, by a stack of the open ones.
  Sides best;
  double most = 0;
  std::vector<double> since(columns, 0.0);  // start of the empty stretch below
  std::vector<std::pair<double, double>> open;  // start and height of a rectangle
  for (std::size_t row = 0; row < rows; ++row) {
    const double top = y[row + 1];
    open.clear();
    for (std::size_t column = 0; column <= columns; ++column) {
      if (column < columns && is_taken[row * columns + column] != 0) since[column] = top;
      const double tall = column < columns ? top - since[column] : 0.0;
      double begins = x[column];
      while (!open.empty() && open.back().second >= tall) {
        begins = open.back().first;
        const double height_of = open.back().second, area = height_of * (x[column] - begins);
        open.pop_back();
        if (area > most) {
          most = area;
          best = {begins, top - height_of, x[column], top};
        }
      }
      open.emplace_back(begins, tall);
    }
  }
  return best;
}

}  // namespace placement
