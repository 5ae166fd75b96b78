#include "soft/analytic_maps.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace placement {
namespace {

int padded(int count) { return (count + 7) / 8 * 8; }

float kth_largest(std::vector<float>& values, int k) {
  const auto at = values.begin() + std::min(static_cast<int>(values.size()) - 1, k - 1);
  std::nth_element(values.begin(), at, values.end(), std::greater<float>());
  return *at;
}

// 0 below threshold − softness, 1 above threshold + softness, linear in between.
float ramp(float value, float start, float per_unit) {
  return std::min(1.0F, std::max(0.0F, (value - start) * per_unit));
}

}  // namespace

PriceMaps::PriceMaps(const Design& design, const Weights& weights)
    : columns_(design.canvas.columns),
      rows_(design.canvas.rows),
      column_stride_(padded(rows_) + kPad),
      row_stride_(padded(columns_) + kPad),
      largest_(std::max(1, design.canvas.cells() / 10)) {
  const Canvas& canvas = design.canvas;
  horizontal_capacity_ = static_cast<float>(canvas.cell_height() * canvas.routes_horizontal);
  vertical_capacity_ = static_cast<float>(canvas.cell_width() * canvas.routes_vertical);
  density_price_ = static_cast<float>(0.5 * weights.density / largest_);
  congestion_price_ = static_cast<float>(weights.congestion / largest_);
  for (auto* map : {&density_, &horizontal_base_, &horizontal_, &horizontal_steps_, &horizontal_price_, &horizontal_sum_,
                    &vertical_price_turned_}) {
    map->assign(static_cast<std::size_t>(rows_) * row_stride_ + 2 * kPad, 0.0F);
  }
  for (auto* map : {&vertical_base_, &vertical_, &vertical_steps_, &horizontal_price_turned_, &vertical_sum_}) {
    map->assign(static_cast<std::size_t>(columns_) * column_stride_ + 2 * kPad, 0.0F);
  }
  scratch_.reserve(2 * static_cast<std::size_t>(canvas.cells()));
  for (const KeepOut& off : design.constraints.keep_outs) {
    if (off.kind == KeepOutKind::blockage) block(canvas, off);
  }
}

// Records the gcells that a blockage fills.
void PriceMaps::block(const Canvas& canvas, const KeepOut& off) {
  blocked_.resize(static_cast<std::size_t>(rows_) * columns_, 0.0F);
  const auto covered = [](double centre, double length, double cell, int index) {
    return std::max(0.0, std::min(centre + length / 2, (index + 1) * cell) - std::max(centre - length / 2, index * cell)) /
           cell;
  };
  for (int row = 0; row < rows_; ++row) {
    const double up = covered(off.y, off.height, canvas.cell_height(), row);
    for (int column = 0; column < columns_ && up > 0; ++column) {
      float& share = blocked_[row * columns_ + column];
      share = std::min(1.0F, share + static_cast<float>(up * covered(off.x, off.width, canvas.cell_width(), column)));
    }
  }
}

void PriceMaps::load(const CostEvaluator& evaluator) {
  load(evaluator.density_map().data(), evaluator.vertical_map(), evaluator.horizontal_map());
}

void PriceMaps::load(const double* density, const double* vertical, const double* horizontal) {
  for (int row = 0; row < rows_; ++row) {
    for (int column = 0; column < columns_; ++column) {
      const int cell = row * columns_ + column;
      density_row(row)[column] = static_cast<float>(density[cell]);
      horizontal_base_[row * row_stride_ + column] = static_cast<float>(horizontal[column * rows_ + row]);
      vertical_base_[column * column_stride_ + row] = static_cast<float>(vertical[cell]);
    }
  }
  for (std::size_t cell = 0; cell < blocked_.size(); ++cell) {
    density_row(static_cast<int>(cell) / columns_)[static_cast<int>(cell) % columns_] += blocked_[cell];
  }
  std::fill(horizontal_steps_.begin(), horizontal_steps_.end(), 0.0F);
  std::fill(vertical_steps_.begin(), vertical_steps_.end(), 0.0F);
  horizontal_ = horizontal_base_;
  vertical_ = vertical_base_;
}

void PriceMaps::set_thresholds() {
  scratch_.clear();
  for (int row = 0; row < rows_; ++row) {
    scratch_.insert(scratch_.end(), density_row(row), density_row(row) + columns_);
  }
  density_threshold_ = kth_largest(scratch_, largest_);
  scratch_.clear();
  for (int row = 0; row < rows_; ++row) {
    const float* values = horizontal_.data() + row * row_stride_;
    scratch_.insert(scratch_.end(), values, values + columns_);
  }
  for (int column = 0; column < columns_; ++column) {
    const float* values = vertical_.data() + column * column_stride_;
    scratch_.insert(scratch_.end(), values, values + rows_);
  }
  congestion_threshold_ = kth_largest(scratch_, largest_);
}

void PriceMaps::set_prices(const Softness& softness) {
  const float start = congestion_threshold_ - softness.congestion, per_unit = 0.5F / softness.congestion;
  const float price = congestion_price_ * softness.congestion_weight;
  for (int row = 0; row < rows_; ++row) {
    const float* base = horizontal_base_.data() + row * row_stride_;
    const float* steps = horizontal_steps_.data() + row * row_stride_;
    float* demand = horizontal_.data() + row * row_stride_;
    float* prices = horizontal_price_.data() + kPad + row * row_stride_;
    float* sums = horizontal_sum_.data() + kPad + row * row_stride_;
    float tracks = 0, sum = 0;
    for (int column = 0; column < columns_; ++column) {
      tracks += steps[column];
      demand[column] = base[column] + tracks / horizontal_capacity_;
      prices[column] = price / horizontal_capacity_ * ramp(demand[column], start, per_unit);
      horizontal_price_turned_[column * column_stride_ + row] = prices[column];
      sums[column] = sum;
      sum += prices[column];
    }
  }
  for (int column = 0; column < columns_; ++column) {
    const float* base = vertical_base_.data() + column * column_stride_;
    const float* steps = vertical_steps_.data() + column * column_stride_;
    float* demand = vertical_.data() + column * column_stride_;
    float* sums = vertical_sum_.data() + column * column_stride_;
    float tracks = 0, sum = 0;
    for (int row = 0; row < rows_; ++row) {
      tracks += steps[row];
      demand[row] = base[row] + tracks / vertical_capacity_;
      const float here = price / vertical_capacity_ * ramp(demand[row], start, per_unit);
      vertical_price_turned_[kPad + row * row_stride_ + column] = here;
      sums[row] = sum;
      sum += here;
    }
  }
}

}  // namespace placement
