#include "soft/force_directed.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace placement {
namespace {

constexpr int kMaxBins = 64;      // along an axis
constexpr float kJitter = 1e-3F;  // µm
constexpr float kNothing = 1e-6F;  // µm, prevents division by 0

// A fixed direction per node, spread evenly over the circle.
std::pair<float, float> direction(int index) {
  const double angle = 2.399963229728653 * index;  // the golden angle
  return {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
}

// Scale from forces to moves: `typical` times the mean force moves its node by `distance`.
float scale_of(const std::vector<float>& forces, float distance, float typical) {
  float total = 0, largest = 0;
  for (const float force : forces) {
    total += std::fabs(force);
    largest = std::max(largest, std::fabs(force));
  }
  const float full = std::min(largest, typical * total / static_cast<float>(forces.size()));
  return full > 0 ? distance / full : 0;
}

}  // namespace

void ForceDirected::Boxes::resize(std::size_t count) {
  x.resize(count);
  y.resize(count);
  half_width.resize(count);
  half_height.resize(count);
}

ForceDirected::ForceDirected(std::shared_ptr<const Design> design, ForceSchedule schedule)
    : design_(std::move(design)),
      schedule_(std::move(schedule)),
      springs_(shared_soft_springs(*design_, SpringModel::star, schedule_.io_factor)),
      nearest_free_(design_->canvas) {
  const Design& d = *design_;
  for (int node = 0; node < d.nodes(); ++node) {
    const Kind kind = d.kind_of(node);
    if (kind == Kind::hard || (kind == Kind::soft && d.fixed[node])) fixed_nodes_.push_back(node);
  }
  const std::size_t count = springs_->count();
  soft_.resize(count);
  sorted_.resize(count + Lanes::kCount);
  bin_of_.resize(count);
  sorted_index_.resize(count);
  centres_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto [across, up] = direction(static_cast<int>(i));
    jitter_.emplace_back(kJitter * across, kJitter * up);
  }
  for (auto* values : {&pull_x_, &pull_y_, &force_x_, &force_y_, &low_x_, &high_x_, &low_y_, &high_y_}) {
    values->resize(count);
  }
}

void ForceDirected::prepare(const double* x, const double* y, const std::int8_t* orientation) {
  const Design& d = *design_;
  const auto width = static_cast<float>(d.canvas.width), height = static_cast<float>(d.canvas.height);
  float widest = 0, tallest = 0;
  double area = 0;
  for (int i = 0; i < springs_->count(); ++i) {
    const int node = springs_->node[i];
    soft_.half_width[i] = static_cast<float>(d.width_of(node, orientation[node]) / 2);
    soft_.half_height[i] = static_cast<float>(d.height_of(node, orientation[node]) / 2);
    widest = std::max(widest, 2 * soft_.half_width[i]);
    tallest = std::max(tallest, 2 * soft_.half_height[i]);
    area += d.node_width[node] * d.node_height[node];
    low_x_[i] = std::min(soft_.half_width[i], width / 2);
    high_x_[i] = std::max(width - soft_.half_width[i], width / 2);
    low_y_[i] = std::min(soft_.half_height[i], height / 2);
    high_y_[i] = std::max(height - soft_.half_height[i], height / 2);
    const auto [across, up] = direction(i);
    soft_.x[i] = std::clamp(width / 2 + across, low_x_[i], high_x_[i]);
    soft_.y[i] = std::clamp(height / 2 + up, low_y_[i], high_y_[i]);
    double pull_x = springs_->pull_x[i], pull_y = springs_->pull_y[i];
    for (int k = springs_->fixed_start[i]; k < springs_->fixed_start[i + 1]; ++k) {
      const Point pin = pin_position(d, springs_->fixed_pin[k], x, y, orientation);
      pull_x += springs_->fixed_weight[k] * pin.x;
      pull_y += springs_->fixed_weight[k] * pin.y;
    }
    pull_x_[i] = static_cast<float>(pull_x);
    pull_y_[i] = static_cast<float>(pull_y);
  }
  // Two overlapping soft macros lie in the same bin or in neighbouring ones.
  bin_width_ = std::max(widest, width / kMaxBins);
  bin_height_ = std::max(tallest, height / kMaxBins);
  bin_columns_ = std::max(1, static_cast<int>(width / bin_width_));
  bin_rows_ = std::max(1, static_cast<int>(height / bin_height_));
  bin_start_.resize(bin_columns_ * bin_rows_ + 1);
  bin_next_.resize(bin_columns_ * bin_rows_);

  const auto margin = static_cast<float>(std::sqrt(area / springs_->count()) / 2);
  fixed_.clear();
  for (const int node : fixed_nodes_) {
    const auto half_width = static_cast<float>(d.width_of(node, orientation[node]) / 2) + margin;
    const auto half_height = static_cast<float>(d.height_of(node, orientation[node]) / 2) + margin;
    const auto at_x = static_cast<float>(x[node]), at_y = static_cast<float>(y[node]);
    fixed_.push_back({at_x - half_width, at_x + half_width, at_y - half_height, at_y + half_height});
  }
  for (const KeepOut& off : d.constraints.keep_outs) {
    if (off.kind != KeepOutKind::blockage) continue;
    const auto half_width = static_cast<float>(off.width / 2) + margin;
    const auto half_height = static_cast<float>(off.height / 2) + margin;
    const auto at_x = static_cast<float>(off.x), at_y = static_cast<float>(off.y);
    fixed_.push_back({at_x - half_width, at_x + half_width, at_y - half_height, at_y + half_height});
  }
  nearest_free_.build(fixed_);
}

// Sorts the soft macros by bin, row by row, so that neighbouring bins of a row are one range.
void ForceDirected::bin_soft() {
  const int count = springs_->count();
  std::fill(bin_start_.begin(), bin_start_.end(), 0);
  const float columns_per_um = 1 / bin_width_, rows_per_um = 1 / bin_height_;
  for (int i = 0; i < count; ++i) {
    const int column = std::min(static_cast<int>(soft_.x[i] * columns_per_um), bin_columns_ - 1);
    const int row = std::min(static_cast<int>(soft_.y[i] * rows_per_um), bin_rows_ - 1);
    bin_of_[i] = row * bin_columns_ + column;
    ++bin_start_[bin_of_[i] + 1];
  }
  for (int bin = 0; bin < bin_columns_ * bin_rows_; ++bin) bin_start_[bin + 1] += bin_start_[bin];
  std::copy(bin_start_.begin(), bin_start_.end() - 1, bin_next_.begin());
  for (int i = 0; i < count; ++i) {
    const int slot = bin_next_[bin_of_[i]]++;
    sorted_index_[slot] = i;
    const auto [across, up] = jitter_[i];
    sorted_.x[slot] = soft_.x[i] + across;
    sorted_.y[slot] = soft_.y[i] + up;
    sorted_.half_width[slot] = soft_.half_width[i];
    sorted_.half_height[slot] = soft_.half_height[i];
  }
}

void ForceDirected::attract(float factor) {
  typedef float Two __attribute__((vector_size(8)));  // x and y at once
  for (int i = 0; i < springs_->count(); ++i) centres_[i] = {soft_.x[i], soft_.y[i]};
  const auto at = [&](int i) {
    Two two;
    std::memcpy(&two, &centres_[i], sizeof two);
    return two;
  };
  for (int i = 0; i < springs_->count(); ++i) {
    Two even = {pull_x_[i], pull_y_[i]}, odd = -springs_->total_weight[i] * at(i);
    int k = springs_->start[i];
    for (const int last = springs_->start[i + 1] - 1; k < last; k += 2) {
      even += springs_->weight[k] * at(springs_->other[k]);
      odd += springs_->weight[k + 1] * at(springs_->other[k + 1]);
    }
    if (k < springs_->start[i + 1]) even += springs_->weight[k] * at(springs_->other[k]);
    const Two force = factor * (even + odd);
    force_x_[i] = force[0];
    force_y_[i] = force[1];
  }
}

// Adds the pushes of the sorted soft macros [first, last): away from their centres, of size 1 (|dx| + |dy|).
inline void ForceDirected::push_soft(const Place& place, int first, int last, Push& push) const {
  for (int i = first; i < last; i += Lanes::kCount) {
    const Lanes dx = place.x - Lanes::load(&sorted_.x[i]), dy = place.y - Lanes::load(&sorted_.y[i]);
    const Lanes across = magnitude(dx), up = magnitude(dy);
    const Lanes reach_x = place.half_width + Lanes::load(&sorted_.half_width[i]);
    const Lanes reach_y = place.half_height + Lanes::load(&sorted_.half_height[i]);
    const auto overlaps = (across.v < reach_x.v) & (up.v < reach_y.v) & first_lanes(last - i);
    const Lanes per_um = {overlaps ? 1 / (across + up + Lanes::all(kNothing)).v : Lanes::Vector{}};
    push.x = push.x + dx * per_um;
    push.y = push.y + dy * per_um;
  }
}

// Goes bin by bin, so that what is near on the canvas is near in memory.
void ForceDirected::repel(float factor) {
  bin_soft();
  const auto strength = static_cast<float>(schedule_.fixed_strength);
  for (int row = 0; row < bin_rows_; ++row) {
    const int low = std::max(row - 1, 0), high = std::min(row + 1, bin_rows_ - 1);
    for (int column = 0; column < bin_columns_; ++column) {
      const int bin = row * bin_columns_ + column;
      const int left = std::max(column - 1, 0), right = std::min(column + 1, bin_columns_ - 1);
      for (int slot = bin_start_[bin]; slot < bin_start_[bin + 1]; ++slot) {
        const int i = sorted_index_[slot];
        const Place place = {Lanes::all(sorted_.x[slot]), Lanes::all(sorted_.y[slot]),
                             Lanes::all(sorted_.half_width[slot]), Lanes::all(sorted_.half_height[slot])};
        Push push = {};
        for (int r = low; r <= high; ++r) {
          push_soft(place, bin_start_[r * bin_columns_ + left], bin_start_[r * bin_columns_ + right + 1], push);
        }
        const NearestFree::Direction out = nearest_free_.at(soft_.x[i], soft_.y[i]);
        force_x_[i] += factor * (sum(push.x) + strength * out.x);
        force_y_[i] += factor * (sum(push.y) + strength * out.y);
      }
    }
  }
}

// Moves the nodes along their forces, each by at most the stage's distance on an axis.
void ForceDirected::move(const ForceStage& stage) {
  const Canvas& canvas = design_->canvas;
  const double per_step = stage.move_distance / stage.steps;
  const auto most_x = static_cast<float>(per_step * canvas.width), most_y = static_cast<float>(per_step * canvas.height);
  const auto typical = static_cast<float>(schedule_.typical_force);
  const float scale_x = scale_of(force_x_, most_x, typical), scale_y = scale_of(force_y_, most_y, typical);
  for (int i = 0; i < springs_->count(); ++i) {
    const float by_x = std::clamp(scale_x * force_x_[i], -most_x, most_x);
    const float by_y = std::clamp(scale_y * force_y_[i], -most_y, most_y);
    soft_.x[i] = std::clamp(soft_.x[i] + by_x, low_x_[i], high_x_[i]);
    soft_.y[i] = std::clamp(soft_.y[i] + by_y, low_y_[i], high_y_[i]);
  }
}

void ForceDirected::place(double* x, double* y, const std::int8_t* orientation) {
  if (springs_->count() == 0) return;
  prepare(x, y, orientation);
  for (const ForceStage& stage : schedule_.stages) {
    for (int step = 0; step < stage.steps; ++step) {
      attract(static_cast<float>(stage.attraction));
      if (stage.repulsion != 0) repel(static_cast<float>(stage.repulsion));
      move(stage);
    }
  }
  for (int i = 0; i < springs_->count(); ++i) {
    x[springs_->node[i]] = soft_.x[i];
    y[springs_->node[i]] = soft_.y[i];
  }
}

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

// Adopts the nearest free cell of the neighbour at (row, column) if it is nearer.
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
