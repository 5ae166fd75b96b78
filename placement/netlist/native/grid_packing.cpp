#include "grid_packing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace netlist_text {

namespace {

// A gcell covered by less than this share of its width counts as free.
constexpr double kTouch = 1e-5;

struct Box {
  double x, y, width, height;  // centre and size
};

// The gcells along one axis whose centres lie strictly between two points: [first, last).
struct Span {
  std::int32_t first, last;
};

Span centres_between(double low, double high, double step, std::int32_t count) {
  const auto first = static_cast<std::int32_t>(std::floor(low / step - 0.5)) + 1;
  const auto last = static_cast<std::int32_t>(std::ceil(high / step - 0.5));
  return {std::clamp(first, 0, count), std::clamp(last, 0, count)};
}

class Packing {
 public:
  Packing(double width, double height, std::int32_t columns, std::int32_t rows, double tolerance)
      : step_x_(width / columns), step_y_(height / rows), width_(width), height_(height), columns_(columns),
        rows_(rows), tolerance_(tolerance), is_free_(static_cast<std::size_t>(columns) * rows) {}

  bool place(double width, double height) {
    if (placed_.empty() || placed_.back().width != width || placed_.back().height != height) begin_size(width, height);
    while (next_ < is_free_.size() && !is_free_[next_]) ++next_;
    if (next_ == is_free_.size()) return false;
    const auto at = static_cast<std::int32_t>(next_);
    placed_.push_back({(at % columns_ + 0.5) * step_x_, (at / columns_ + 0.5) * step_y_, width, height});
    close(placed_.back(), width, height);
    return true;
  }

  double empty_share() {
    std::vector<char> is_empty(is_free_.size(), 1);
    for (const Box& box : placed_) {
      const auto first_x = index((box.x - box.width / 2) / step_x_ + kTouch, columns_);
      const auto last_x = index((box.x + box.width / 2) / step_x_ - kTouch, columns_);
      const auto first_y = index((box.y - box.height / 2) / step_y_ + kTouch, rows_);
      const auto last_y = index((box.y + box.height / 2) / step_y_ - kTouch, rows_);
      for (std::int32_t row = first_y; row <= last_y; ++row) {
        const auto begin = is_empty.begin() + static_cast<std::ptrdiff_t>(row) * columns_;
        std::fill(begin + first_x, begin + last_x + 1, char{0});
      }
    }
    return static_cast<double>(std::count(is_empty.begin(), is_empty.end(), char{1})) /
           static_cast<double>(is_empty.size());
  }

 private:
  static std::int32_t index(double at, std::int32_t count) {
    return std::clamp(static_cast<std::int32_t>(std::floor(at)), 0, count - 1);
  }

  // Marks the legal gcells of a macro of a new size.
  void begin_size(double width, double height) {
    std::fill(is_free_.begin(), is_free_.end(), char{0});
    next_ = 0;
    const double slack = 1e-9 * (width_ + height_);
    for (std::int32_t row = 0; row < rows_; ++row) {
      const double y = (row + 0.5) * step_y_;
      if (y - height / 2 < -slack || y + height / 2 > height_ + slack) continue;
      for (std::int32_t column = 0; column < columns_; ++column) {
        const double x = (column + 0.5) * step_x_;
        is_free_[static_cast<std::size_t>(row) * columns_ + column] =
            x - width / 2 >= -slack && x + width / 2 <= width_ + slack;
      }
    }
    for (const Box& box : placed_) close(box, width, height);
  }

  // Marks the gcells where a macro of this size would overlap a placed one.
  void close(const Box& box, double width, double height) {
    const double reach_x = (box.width + width) / 2 - tolerance_, reach_y = (box.height + height) / 2 - tolerance_;
    if (reach_x <= 0 || reach_y <= 0) return;
    const Span across = centres_between(box.x - reach_x, box.x + reach_x, step_x_, columns_);
    const Span up = centres_between(box.y - reach_y, box.y + reach_y, step_y_, rows_);
    for (std::int32_t row = up.first; row < up.last; ++row) {
      const auto begin = is_free_.begin() + static_cast<std::ptrdiff_t>(row) * columns_;
      if (across.first < across.last) std::fill(begin + across.first, begin + across.last, char{0});
    }
  }

  double step_x_, step_y_, width_, height_;
  std::int32_t columns_, rows_;
  double tolerance_;
  std::vector<char> is_free_;
  std::vector<Box> placed_;
  std::size_t next_ = 0;
};

}  // namespace

double empty_share(double width, double height, std::int32_t columns, std::int32_t rows,
                   const std::vector<double>& macro_width, const std::vector<double>& macro_height, double tolerance) {
  Packing packing(width, height, columns, rows, tolerance);
  for (std::size_t macro = 0; macro < macro_width.size(); ++macro) {
    if (!packing.place(macro_width[macro], macro_height[macro])) return -1;
  }
  return packing.empty_share();
}

}  // namespace netlist_text
