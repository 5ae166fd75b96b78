#include "cost/macro_cover.hpp"

#include <algorithm>

namespace placement {
namespace {

constexpr double kPartial = 1e-5;   // µm: a side covered to within this counts as fully covered
constexpr double kMostShare = 256;  // sums of shares up to this are exact

}  // namespace

MacroCover::MacroCover(const Canvas& canvas)
    : columns_(canvas.columns),
      rows_(canvas.rows),
      width_(canvas.width),
      height_(canvas.height),
      cell_width_(canvas.cell_width()),
      cell_height_(canvas.cell_height()),
      per_width_(1.0 / cell_width_),
      per_height_(1.0 / cell_height_),
      rounder_(kMostShare),
      density_(canvas.cells(), 0.0),
      horizontal_block_(canvas.cells(), 0.0),
      vertical_block_(canvas.cells(), 0.0),
      share_x_(columns_),
      share_y_(rows_) {}

double MacroCover::quantum() { return Rounder(kMostShare).quantum(); }

void MacroCover::clear() {
  for (auto* map : {&density_, &horizontal_block_, &vertical_block_}) std::fill(map->begin(), map->end(), 0.0);
}

MacroCover::Span MacroCover::span(double low, double high, double size, double per_size, int count) {
  Span span;
  const double end = count - 1.0;
  span.first = static_cast<int>(std::max(0.0, std::min(low / size, end)));  // the floor, because it is not negative
  span.last = static_cast<int>(std::max(0.0, std::min(high / size, end)));
  const bool several = span.first != span.last;
  const double first = std::min(high, (span.first + 1) * size) - std::max(low, span.first * size);
  const double last = std::min(high, (span.last + 1) * size) - span.last * size;
  span.partial = several & ((size - first > kPartial) | (size - last > kPartial));
  span.first_share = first * per_size;
  span.last_share = several ? std::max(0.0, last * per_size) : 0.0;
  return span;
}

void MacroCover::fill(const Span& span, double* shares) {
  shares[span.first] = span.first_share;
  for (int i = span.first + 1; i < span.last; ++i) shares[i] = 1.0;
  if (span.first != span.last) shares[span.last] = span.last_share;
}

CellBox MacroCover::add(double x, double y, double width, double height, bool hard, double sign) {
  const double left = x - width / 2, right = x + width / 2, bottom = y - height / 2, top = y + height / 2;
  if (right <= 0 || top <= 0 || left >= width_ || bottom >= height_) return {};
  const Span columns = span(left, right, cell_width_, per_width_, columns_);
  const Span rows = span(bottom, top, cell_height_, per_height_, rows_);
  const CellBox box{columns.first, columns.last, rows.first, rows.last};
  if ((columns.last - columns.first <= 1) & (rows.last - rows.first <= 1)) {  // the case of most soft macros
    double* low = density_.data() + rows.first * columns_;
    double* high = density_.data() + rows.last * columns_;
    low[columns.first] += sign * rounder_(columns.first_share * rows.first_share);
    low[columns.last] += sign * rounder_(columns.last_share * rows.first_share);
    high[columns.first] += sign * rounder_(columns.first_share * rows.last_share);
    high[columns.last] += sign * rounder_(columns.last_share * rows.last_share);
    if (!hard) return box;
  }
  fill(columns, share_x_.data());
  fill(rows, share_y_.data());
  if ((columns.last - columns.first > 1) | (rows.last - rows.first > 1)) {
    for (int row = rows.first; row <= rows.last; ++row) {
      double* line = density_.data() + row * columns_;
      for (int column = columns.first; column <= columns.last; ++column) {
        line[column] += sign * rounder_(share_x_[column] * share_y_[row]);
      }
    }
  }
  if (hard) add_block(columns, rows, sign);
  return box;
}

// The top row's vertical and the right column's horizontal blockage are omitted if an end is partially covered.
void MacroCover::add_block(const Span& columns, const Span& rows, double sign) {
  for (int row = rows.first; row <= rows.last - rows.partial; ++row) {
    if (share_y_[row] <= 0) continue;
    double* line = vertical_block_.data() + row * columns_;
    for (int column = columns.first; column <= columns.last; ++column) line[column] += sign * rounder_(share_x_[column]);
  }
  for (int column = columns.first; column <= columns.last - columns.partial; ++column) {
    if (share_x_[column] <= 0) continue;
    double* line = horizontal_block_.data() + column * rows_;
    for (int row = rows.first; row <= rows.last; ++row) line[row] += sign * rounder_(share_y_[row]);
  }
}

double MacroCover::block_price(double x, double y, double width, double height, const double* vertical,
                               const double* horizontal) const {
  const double left = x - width / 2, right = x + width / 2, bottom = y - height / 2, top = y + height / 2;
  if (right <= 0 || top <= 0 || left >= width_ || bottom >= height_) return 0;
  const Span columns = span(left, right, cell_width_, per_width_, columns_);
  const Span rows = span(bottom, top, cell_height_, per_height_, rows_);
  double sum = 0;
  for (int row = rows.first; row <= rows.last; ++row) {
    const double up = rows.share(row);
    const bool blocks_up = row <= rows.last - rows.partial && up > 0;
    for (int column = columns.first; column <= columns.last; ++column) {
      const double across = columns.share(column);
      if (blocks_up) sum += vertical[row * columns_ + column] * across;
      if (column <= columns.last - columns.partial && across > 0) sum += horizontal[column * rows_ + row] * up;
    }
  }
  return sum;
}

}  // namespace placement
