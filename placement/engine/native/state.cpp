#include "state.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "legality.hpp"

namespace placement {
namespace {

// Index of the first of `count` gcell centres beyond `at` µm, within one of rounding; in [0, count].
int first_beyond(double at, double inverse_size, int count) {
  return static_cast<int>(std::clamp(std::floor(at * inverse_size - 0.5) + 1, 0.0, static_cast<double>(count)));
}

// First and last index of the centres at which a macro of `own` µm would overlap the interval (centre, length);
// first > last where none would.
std::pair<int, int> blocked_by(const std::vector<double>& centres, double inverse_size, double own, double centre,
                               double length, double threshold) {
  const double reach = (own + length) / 2 - threshold - kLengthTolerance;
  if (reach <= 0 || std::min(own, length) <= threshold + kLengthTolerance) return {0, -1};
  const int count = static_cast<int>(centres.size());
  const auto overlaps = [&](int i) { return intervals_overlap(centres[i], own, centre, length, threshold); };
  int first = first_beyond(centre - reach, inverse_size, count);
  int last = first_beyond(centre + reach, inverse_size, count) - 1;
  // The guesses are off by at most one where a centre lies within rounding of the edge: the shared rule decides.
  if (first > 0 && overlaps(first - 1)) --first;
  if (first <= last && !overlaps(first)) ++first;
  if (last + 1 < count && overlaps(last + 1)) ++last;
  if (first <= last && !overlaps(last)) --last;
  return {first, last};
}

// Bits [first, last] of a word, those outside [0, 64) cut off.
std::uint64_t bits(int first, int last) {
  first = std::max(first, 0);
  last = std::min(last, 63);
  if (first > last) return 0;
  return (~std::uint64_t{0} >> (63 - last)) & (~std::uint64_t{0} << first);
}

// Eight bits as eight bytes of 0 or 1, the lowest bit first.
constexpr auto kSpread = [] {
  std::array<std::array<std::uint8_t, 8>, 256> table{};
  for (int byte = 0; byte < 256; ++byte) {
    for (int bit = 0; bit < 8; ++bit) table[byte][bit] = (byte >> bit) & 1;
  }
  return table;
}();

// Adds Σ weight · distance to the nearest point of [low, high] over the points at `centres`, for many intervals in
// time linear in intervals plus centres: each adds a line from where its slope begins.
class Hinges {
 public:
  Hinges(const std::vector<double>& centres, double inverse_size, double* slope, double* offset)
      : count_(static_cast<int>(centres.size())), inverse_size_(inverse_size), slope_(slope), offset_(offset) {
    std::fill(slope_, slope_ + count_ + 1, 0.0);
    std::fill(offset_, offset_ + count_ + 1, 0.0);
  }

  void add(double low, double high, double weight) {
    const int right = first_beyond(high, inverse_size_, count_);
    slope_[right] += weight;
    offset_[right] -= weight * high;
    const int left = first_beyond(low, inverse_size_, count_);  // centres before it pay weight · (low - centre)
    slope_[0] -= weight;
    offset_[0] += weight * low;
    slope_[left] += weight;
    offset_[left] -= weight * low;
  }

  void write(const std::vector<double>& centres, double* out) const {
    double slope = 0, offset = 0;
    for (int i = 0; i < count_; ++i) {
      slope += slope_[i];
      offset += offset_[i];
      out[i] = std::max(0.0, slope * centres[i] + offset);
    }
  }

 private:
  int count_;
  double inverse_size_;
  double *slope_, *offset_;
};

}  // namespace

PlacementState::PlacementState(std::shared_ptr<const EpisodePlan> plan) : plan_(std::move(plan)) {
  const Canvas& canvas = plan_->design->canvas;
  words_ = (canvas.columns + 63) / 64;
  legal_.resize(static_cast<std::size_t>(canvas.rows) * words_);
  placed_.resize(plan_->macros.size());
  cells_.resize(plan_->macros.size());
  saved_boxes_.resize(plan_->macro_nets.size());
  hinges_.resize(2 * (std::max(canvas.columns, canvas.rows) + 1));
  boxes_ = plan_->standing_boxes;
  occupancy_ = plan_->standing_occupancy;
  density_ = plan_->standing_density;
  find_legal();
}

void PlacementState::reset() {
  step_ = 0;
  std::copy(plan_->standing_boxes.begin(), plan_->standing_boxes.end(), boxes_.begin());
  std::copy(plan_->standing_occupancy.begin(), plan_->standing_occupancy.end(), occupancy_.begin());
  std::copy(plan_->standing_density.begin(), plan_->standing_density.end(), density_.begin());
  find_legal();
}

void PlacementState::place(int row, int column) {
  const MacroToPlace& macro = plan_->macros[step_];
  const Obstacle placed{plan_->column_x[column], plan_->row_y[row], macro.width, macro.height, macro.node};
  for (int i = macro.first_net; i < macro.last_net; ++i) {
    const MacroNet& pins = plan_->macro_nets[i];
    Box& box = boxes_[pins.net];
    saved_boxes_[i] = box;
    box.include(placed.x + pins.left, placed.x + pins.right, placed.y + pins.bottom, placed.y + pins.top);
  }
  add_area(placed, 1.0);
  placed_[step_] = placed;
  cells_[step_] = row * plan_->design->canvas.columns + column;
  ++step_;
  find_legal();
}

void PlacementState::undo() {
  --step_;
  const MacroToPlace& macro = plan_->macros[step_];
  for (int i = macro.first_net; i < macro.last_net; ++i) boxes_[plan_->macro_nets[i].net] = saved_boxes_[i];
  add_area(placed_[step_], -1.0);
  find_legal();
}

void PlacementState::add_area(const Obstacle& macro, double sign) {
  for_covered_cells(*plan_, macro.x, macro.y, macro.width, macro.height, [this, sign](int cell, double covered) {
    occupancy_[cell] += sign * covered;
    density_[cell] += sign * covered;
  });
}

void PlacementState::find_legal() {
  const Canvas& canvas = plan_->design->canvas;
  std::fill(legal_.begin(), legal_.end(), 0);
  legal_cells_ = 0;
  if (complete()) return;
  const MacroToPlace& macro = plan_->macros[step_];
  for (int row = macro.first_row; row <= macro.last_row; ++row) {
    for (int word = 0; word < words_; ++word) {
      legal_[row * words_ + word] = bits(macro.first_column - 64 * word, macro.last_column - 64 * word);
    }
  }
  const double inverse_width = 1 / plan_->cell_width, inverse_height = 1 / plan_->cell_height;
  const auto block = [&](const Obstacle& obstacle) {
    const auto [first_row, last_row] = blocked_by(plan_->row_y, inverse_height, macro.height, obstacle.y,
                                                  obstacle.height, canvas.overlap_threshold);
    if (first_row > last_row) return;
    const auto [first_column, last_column] = blocked_by(plan_->column_x, inverse_width, macro.width, obstacle.x,
                                                        obstacle.width, canvas.overlap_threshold);
    if (first_column > last_column) return;
    for (int word = first_column / 64; word <= last_column / 64; ++word) {
      const std::uint64_t free = ~bits(first_column - 64 * word, last_column - 64 * word);
      for (int row = first_row; row <= last_row; ++row) legal_[row * words_ + word] &= free;
    }
  };
  for (const Obstacle& obstacle : plan_->fixed_macros) block(obstacle);
  for (int t = 0; t < step_; ++t) block(placed_[t]);
  for (const std::uint64_t word : legal_) legal_cells_ += __builtin_popcountll(word);
}

std::pair<int, int> PlacementState::nth_legal(int n) const {
  std::size_t index = 0;
  for (int count; n >= (count = __builtin_popcountll(legal_[index])); ++index) n -= count;
  std::uint64_t word = legal_[index];
  for (; n > 0; --n) word &= word - 1;
  const int row = static_cast<int>(index) / words_;
  return {row, 64 * (static_cast<int>(index) % words_) + __builtin_ctzll(word)};
}

Verdict PlacementState::judge(int row, int column, int* obstacle) const {
  const Canvas& canvas = plan_->design->canvas;
  if (row < 0 || row >= canvas.rows || column < 0 || column >= canvas.columns) return Verdict::out_of_range;
  if (complete()) return Verdict::all_placed;
  if (is_legal(row, column)) return Verdict::legal;
  const MacroToPlace& macro = plan_->macros[step_];
  if (row < macro.first_row || row > macro.last_row || column < macro.first_column || column > macro.last_column) {
    return Verdict::outside_canvas;
  }
  const double x = plan_->column_x[column], y = plan_->row_y[row], threshold = canvas.overlap_threshold;
  const auto in_the_way = [&](const Obstacle& other) {
    return intervals_overlap(x, macro.width, other.x, other.width, threshold) &&
           intervals_overlap(y, macro.height, other.y, other.height, threshold);
  };
  for (const Obstacle& other : plan_->fixed_macros) {
    if (in_the_way(other)) *obstacle = other.node;
  }
  for (int t = 0; t < step_; ++t) {
    if (in_the_way(placed_[t])) *obstacle = placed_[t].node;
  }
  return Verdict::overlaps;
}

void PlacementState::wire_mask(double* column_wire, double* row_wire) const {
  const Canvas& canvas = plan_->design->canvas;
  if (complete()) {
    std::fill(column_wire, column_wire + canvas.columns, 0.0);
    std::fill(row_wire, row_wire + canvas.rows, 0.0);
    return;
  }
  const MacroToPlace& macro = plan_->macros[step_];
  const auto sum = [&](bool horizontal, const std::vector<double>& centres, double size, double* out) {
    Hinges hinges(centres, 1 / size, hinges_.data(), hinges_.data() + centres.size() + 1);
    for (int i = macro.first_net; i < macro.last_net; ++i) {
      const MacroNet& pins = plan_->macro_nets[i];
      const Box& box = boxes_[pins.net];
      if (box.empty()) continue;
      // The macro's pins span [centre + left, centre + right]: what sticks out of the box is added.
      if (horizontal) {
        hinges.add(box.low_x - pins.left, box.high_x - pins.right, pins.weight);
      } else {
        hinges.add(box.low_y - pins.bottom, box.high_y - pins.top, pins.weight);
      }
    }
    hinges.write(centres, out);
  };
  sum(true, plan_->column_x, plan_->cell_width, column_wire);
  sum(false, plan_->row_y, plan_->cell_height, row_wire);
}

void PlacementState::write_mask(std::uint8_t* mask, int stride) const {
  const Canvas& canvas = plan_->design->canvas;
  for (int row = 0; row < canvas.rows; ++row) {
    std::uint8_t* out = mask + static_cast<std::ptrdiff_t>(row) * stride;
    for (int column = 0; column < canvas.columns; column += 8) {
      const auto eight = static_cast<std::uint8_t>(legal_[row * words_ + column / 64] >> (column % 64));
      std::memcpy(out + column, kSpread[eight].data(), std::min(8, canvas.columns - column));
    }
  }
}

}  // namespace placement
