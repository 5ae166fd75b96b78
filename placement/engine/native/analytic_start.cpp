#include "analytic_start.hpp"

#include <utility>

namespace placement {
namespace {

constexpr float kAnchor = 1e-5F;  // of the mean stiffness: ties what hangs on no standing pin to the canvas centre
constexpr double kConverged = 1e-10;

}  // namespace

QuadraticStart::QuadraticStart(std::shared_ptr<const Design> design, int iterations)
    : design_(std::move(design)),
      iterations_(iterations),
      springs_(make_soft_springs(*design_, SpringModel::clique)) {
  const std::size_t count = springs_.count();
  double stiffness = 0;
  for (const float weight : springs_.total_weight) stiffness += weight;
  const float anchor = stiffness > 0 ? kAnchor * static_cast<float>(stiffness / static_cast<double>(count)) : 1.0F;
  for (const float weight : springs_.total_weight) diagonal_.push_back(weight + anchor);
  for (auto* values : {&solution_, &residual_, &direction_, &product_}) values->resize(count);
}

void QuadraticStart::multiply(const std::vector<Pair>& values, std::vector<Pair>& product) const {
  for (int i = 0; i < springs_.count(); ++i) {
    Pair sum{diagonal_[i] * values[i].x, diagonal_[i] * values[i].y};
    for (int k = springs_.start[i]; k < springs_.start[i + 1]; ++k) {
      const Pair& other = values[springs_.other[k]];
      sum.x -= springs_.weight[k] * other.x;
      sum.y -= springs_.weight[k] * other.y;
    }
    product[i] = sum;
  }
}

void QuadraticStart::place(double* x, double* y, const std::int8_t* orientation) {
  // Positions are taken from the canvas centre, which is where the iteration starts.
  const double centre_x = design_->canvas.width / 2, centre_y = design_->canvas.height / 2;
  const int count = springs_.count();
  double old_x = 0, old_y = 0;  // residual · preconditioned residual
  for (int i = 0; i < count; ++i) {
    double pull_x = springs_.pull_x[i], pull_y = springs_.pull_y[i];
    for (int k = springs_.standing_start[i]; k < springs_.standing_start[i + 1]; ++k) {
      const Point pin = pin_position(*design_, springs_.standing_pin[k], x, y, orientation);
      pull_x += springs_.standing_weight[k] * (pin.x - centre_x);
      pull_y += springs_.standing_weight[k] * (pin.y - centre_y);
    }
    solution_[i] = {};
    residual_[i] = {static_cast<float>(pull_x), static_cast<float>(pull_y)};
    direction_[i] = {residual_[i].x / diagonal_[i], residual_[i].y / diagonal_[i]};
    old_x += residual_[i].x * direction_[i].x;
    old_y += residual_[i].y * direction_[i].y;
  }
  const double enough_x = kConverged * old_x, enough_y = kConverged * old_y;
  for (int iteration = 0; iteration < iterations_ && (old_x > enough_x || old_y > enough_y); ++iteration) {
    multiply(direction_, product_);
    double curve_x = 0, curve_y = 0;
    for (int i = 0; i < count; ++i) {
      curve_x += direction_[i].x * product_[i].x;
      curve_y += direction_[i].y * product_[i].y;
    }
    const auto step_x = static_cast<float>(curve_x > 0 ? old_x / curve_x : 0);
    const auto step_y = static_cast<float>(curve_y > 0 ? old_y / curve_y : 0);
    double new_x = 0, new_y = 0;
    for (int i = 0; i < count; ++i) {
      solution_[i].x += step_x * direction_[i].x;
      solution_[i].y += step_y * direction_[i].y;
      residual_[i].x -= step_x * product_[i].x;
      residual_[i].y -= step_y * product_[i].y;
      new_x += residual_[i].x * residual_[i].x / diagonal_[i];
      new_y += residual_[i].y * residual_[i].y / diagonal_[i];
    }
    const auto keep_x = static_cast<float>(old_x > 0 ? new_x / old_x : 0);
    const auto keep_y = static_cast<float>(old_y > 0 ? new_y / old_y : 0);
    for (int i = 0; i < count; ++i) {
      direction_[i] = {residual_[i].x / diagonal_[i] + keep_x * direction_[i].x,
                       residual_[i].y / diagonal_[i] + keep_y * direction_[i].y};
    }
    old_x = new_x;
    old_y = new_y;
  }
  for (int i = 0; i < count; ++i) {
    x[springs_.node[i]] = centre_x + solution_[i].x;
    y[springs_.node[i]] = centre_y + solution_[i].y;
  }
}

}  // namespace placement
