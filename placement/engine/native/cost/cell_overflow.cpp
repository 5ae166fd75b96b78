#include "cost/cell_overflow.hpp"

#include <algorithm>

#include "../../../netlist/native/chip_constants.hpp"
#include "common/lanes.hpp"
#include "cost/pair.hpp"

namespace placement {
namespace {

// Side, in bins, of the smallest blocks subject to the target density (measured on routed designs), and the weight of
// the area beyond all whitespace, relative to that of the area beyond the target density (docs/experiments/costs.md).
constexpr double kLargeBlock = 8;
constexpr double kFullWeight = 0.5;

// Weight of the area that exceeds the target density over the whole canvas, at the largest block's side.
constexpr double kOverflowWeight = 0.5;

}  // namespace

CellOverflow::CellOverflow(const Canvas& bins, double most)
    : per_width_(1.0 / bins.cell_width()),
      per_height_(1.0 / bins.cell_height()),
      scale_(bins.cell_width() * bins.cell_height() * (bins.cell_width() + bins.cell_height()) / 2),
      rounder_(2.0 / kTargetDensity * (most + bins.cells())),
      hard_(bins.cells()),
      across_(bins.columns),
      areas_(bins.cells()),
      folded_(bins.cells()),
      spread_(bins.cells()) {
  int columns = bins.columns, rows = bins.rows;
  for (double side = 1;; side *= 2) {
    Level& level = levels_.emplace_back(Level{columns, rows, side, {}, {}});
    level.full.spare.resize(static_cast<std::size_t>(columns) * rows);
    if (side >= kLargeBlock) level.spread.spare.resize(level.full.spare.size());
    if (columns == 1 && rows == 1) break;
    columns = (columns + 1) / 2;
    rows = (rows + 1) / 2;
  }
  clear();
}

void CellOverflow::clear() {
  std::fill(hard_.begin(), hard_.end(), 0.0);
  for (Level& level : levels_) {
    level.full.clear();
    level.spread.clear();
  }
  std::fill(areas_.begin(), areas_.end(), -1.0);
  change(0, 0, levels_[0].columns, levels_[0].rows, true);
}

void CellOverflow::Overfull::clear() {
  std::fill(spare.begin(), spare.end(), 0.0);
  area = 0;
}

void CellOverflow::Overfull::add(const double* areas, int first, int stride, int columns, int rows) {
  const Pair none = Pair::of(0.0, 0.0);
  const TwoPairs zero = TwoPairs::of(none, none);
  TwoPairs rises = zero;
  for (int row = 0; row < rows; ++row, areas += columns) {
    double* line = spare.data() + first + row * stride;
    int column = 0;
    for (; column + 4 <= columns; column += 4) {
      const TwoPairs before = TwoPairs::load(line + column), after = before + TwoPairs::load(areas + column);
      after.store(line + column);
      rises = rises + (largest(zero, after) - largest(zero, before));
    }
    for (; column < columns; ++column) add(areas[column], first + row * stride + column);
  }
  area += (rises.low() + rises.high()).sum();
}

void CellOverflow::add(double x, double y, double width, double height, bool hard, double sign) {
  const GridSpan columns(x, width, per_width_, levels_[0].columns), rows(y, height, per_height_, levels_[0].rows);
  const int count = columns.last - columns.first + 1;
  for (int i = 0; i < count; ++i) across_[i] = columns.share(columns.first + i);
  double* added = areas_.data();
  for (int row = rows.first; row <= rows.last; ++row, added += count) {
    const double up = rows.share(row);
    for (int i = 0; i < count; ++i) added[i] = sign * rounder_(up * across_[i]);
    if (!hard) continue;
    double* covered = hard_.data() + row * levels_[0].columns + columns.first;
    for (int i = 0; i < count; ++i) {
      const double free = std::max(0.0, 1.0 - covered[i]);
      covered[i] += added[i];
      added[i] = free - std::max(0.0, 1.0 - covered[i]);
    }
  }
  change(columns.first, rows.first, count, rows.last - rows.first + 1, hard);
}

// Adds areas_ to the bins of a box, and to the blocks that contain them: each block once, because sums are exact. A
// macro's area in a block is the same when it is removed as when it was added, so its share of the spread area is, too.
void CellOverflow::change(int first_column, int first_row, int columns, int rows, bool hard) {
  if (columns <= 0 || rows <= 0) return;
  for (std::size_t size = 0; size < levels_.size(); ++size) {
    if (columns == 1 && rows == 1) return change_one(size, first_column, first_row, hard);
    Level& level = levels_[size];
    const int first = first_row * level.columns + first_column, count = columns * rows;
    level.full.add(areas_.data(), first, level.columns, columns, rows);
    if (!level.spread.spare.empty()) {
      if (!hard) {
        std::transform(areas_.begin(), areas_.begin() + count, spread_.begin(),
                       [this](double area) { return rounder_(area / kTargetDensity); });
      }
      level.spread.add((hard ? areas_ : spread_).data(), first, level.columns, columns, rows);
    }
    const int next_column = first_column / 2, next_row = first_row / 2;
    const int next_columns = (first_column + columns - 1) / 2 - next_column + 1;
    const int next_rows = (first_row + rows - 1) / 2 - next_row + 1;
    std::fill_n(folded_.begin(), static_cast<std::size_t>(next_columns) * next_rows, 0.0);
    const double* area = areas_.data();
    for (int row = 0; row < rows; ++row) {
      double* folded = folded_.data() + ((first_row + row) / 2 - next_row) * next_columns;
      for (int column = 0; column < columns; ++column) folded[(first_column + column) / 2 - next_column] += *area++;
    }
    areas_.swap(folded_);
    first_column = next_column;
    first_row = next_row;
    columns = next_columns;
    rows = next_rows;
  }
}

// The blocks that contain the points, one block size after the other.
struct CellOverflow::Points {
  int lanes, rows;
  int column_of[kMostPoints], row_of[kMostPoints];
  int own_column, own_row;  // current block of the macro

  void double_blocks() {
    for (int i = 0; i < lanes; ++i) column_of[i] /= 2;
    for (int i = 0; i < rows; ++i) row_of[i] /= 2;
    own_column /= 2;
    own_row /= 2;
  }
};

void CellOverflow::Overfull::price(const Points& points, int row, int stride, float area, float weight, float* line) const {
  alignas(32) float before[kMostPoints];
  const double* spares = spare.data() + points.row_of[row] * stride;
  for (int i = 0; i < points.lanes; ++i) before[i] = static_cast<float>(spares[points.column_of[i]]);
  if (points.row_of[row] == points.own_row) {
    for (int i = 0; i < points.lanes; ++i) before[i] -= points.column_of[i] == points.own_column ? area : 0.0F;
  }
  const Lanes more = Lanes::all(area), zero = Lanes::all(0), by = Lanes::all(weight);
  for (int i = 0; i < points.lanes; i += Lanes::kCount) {
    const Lanes here = Lanes::load(before + i);
    (Lanes::load(line + i) + by * (max(zero, here + more) - max(zero, here))).store(line + i);
  }
}

void CellOverflow::price(const Mover& soft, const float* xs, int columns, const float* ys, int rows, float* prices) const {
  const auto column_of = [this](double x) { return std::clamp(static_cast<int>(x * per_width_), 0, levels_[0].columns - 1); };
  const auto row_of = [this](double y) { return std::clamp(static_cast<int>(y * per_height_), 0, levels_[0].rows - 1); };
  Points points;
  points.lanes = round_up_to_lanes(columns);
  points.rows = rows;
  for (int i = 0; i < points.lanes; ++i) points.column_of[i] = column_of(xs[i]);
  for (int i = 0; i < rows; ++i) points.row_of[i] = row_of(ys[i]);
  points.own_column = column_of(soft.x);
  points.own_row = row_of(soft.y);
  const double area = soft.width * per_width_ * soft.height * per_height_;
  std::fill_n(prices, static_cast<std::size_t>(rows) * kMostPoints, 0.0F);
  for (const Level& level : levels_) {
    alignas(32) float line[kMostPoints];  // reused from the previous row if its blocks are the same
    const double side = level.side * scale_;
    for (int r = 0; r < rows; ++r) {
      if (r == 0 || points.row_of[r] != points.row_of[r - 1]) {
        std::fill_n(line, points.lanes, 0.0F);
        level.full.price(points, r, level.columns, static_cast<float>(area), static_cast<float>(kFullWeight * side), line);
        if (!level.spread.spare.empty()) {
          level.spread.price(points, r, level.columns, static_cast<float>(area / kTargetDensity), static_cast<float>(side),
                             line);
        }
      }
      float* to = prices + r * kMostPoints;
      for (int i = 0; i < points.lanes; i += Lanes::kCount) (Lanes::load(to + i) + Lanes::load(line + i)).store(to + i);
    }
    points.double_blocks();
  }
}

// Continues from the block size at which one block contains the box.
void CellOverflow::change_one(std::size_t size, int column, int row, bool hard) {
  const double area = areas_[0], spread = hard ? area : rounder_(area / kTargetDensity);
  for (; size < levels_.size(); ++size, column /= 2, row /= 2) {
    Level& level = levels_[size];
    const int block = row * level.columns + column;
    level.full.add(area, block);
    if (!level.spread.spare.empty()) level.spread.add(spread, block);
  }
}

// Area that overflows the whole canvas cannot move to another block: it counts once, not at every size, and with a
// lower weight.
double CellOverflow::displacement() const {
  const double overflow = levels_.back().spread.area;
  double sum = kOverflowWeight * levels_.back().side * overflow;
  for (const Level& level : levels_) {
    sum += level.side * kFullWeight * level.full.area;
    if (!level.spread.spare.empty()) sum += level.side * (level.spread.area - overflow);
  }
  return sum * scale_;
}

}  // namespace placement
