#include "soft/analytic_start.hpp"

#include <utility>

namespace placement {
namespace {

constexpr float kAnchor = 1e-5F;  // of the mean stiffness: for what hangs on no fixed pin
constexpr double kConverged = 1e-10;

struct Sums {
  double x = 0, y = 0;
};

float ratio(double over, double under) { return static_cast<float>(under > 0 ? over / under : 0); }

}  // namespace

QuadraticStart::QuadraticStart(std::shared_ptr<const Design> design, int iterations)
    : design_(std::move(design)),
      iterations_(iterations),
      springs_(shared_soft_springs(*design_, SpringModel::clique)) {
  const std::size_t count = springs_->count();
  double stiffness = 0;
  for (const float weight : springs_->total_weight) stiffness += weight;
  if (stiffness > 0) anchor_ = kAnchor * static_cast<float>(stiffness / static_cast<double>(count));
  diagonal_.resize(count);
  for (auto* values : {&pull_, &solution_, &residual_, &direction_, &product_}) values->resize(count);
}

void QuadraticStart::set_fixed(const double* x, const double* y, const std::int8_t* orientation) {
  const double centre_x = design_->canvas.width / 2, centre_y = design_->canvas.height / 2;
  for (int i = 0; i < springs_->count(); ++i) {
    Sums pull{springs_->pull_x[i], springs_->pull_y[i]};
    for (int k = springs_->fixed_start[i]; k < springs_->fixed_start[i + 1]; ++k) {
      const Point pin = pin_position(*design_, springs_->fixed_pin[k], x, y, orientation);
      pull.x += springs_->fixed_weight[k] * (pin.x - centre_x);
      pull.y += springs_->fixed_weight[k] * (pin.y - centre_y);
    }
    pull_[i] = {static_cast<float>(pull.x), static_cast<float>(pull.y)};
  }
}

void QuadraticStart::multiply(const std::vector<Pair>& values, std::vector<Pair>& product) const {
  for (int i = 0; i < springs_->count(); ++i) {
    Pair sum{diagonal_[i] * values[i].x, diagonal_[i] * values[i].y};
    for (int k = springs_->start[i]; k < springs_->start[i + 1]; ++k) {
      const Pair& other = values[springs_->other[k]];
      sum.x -= springs_->weight[k] * other.x;
      sum.y -= springs_->weight[k] * other.y;
    }
    product[i] = sum;
  }
}

void QuadraticStart::start(const std::vector<Pair>& from, float hold) {
  for (int i = 0; i < springs_->count(); ++i) {
    const float weight = springs_->total_weight[i];
    diagonal_[i] = weight + anchor_ + hold * weight;
    solution_[i] = hold > 0 ? from[i] : Pair{};
  }
  multiply(solution_, product_);
  for (int i = 0; i < springs_->count(); ++i) {
    const float tie = hold * springs_->total_weight[i];
    residual_[i] = {pull_[i].x + tie * solution_[i].x - product_[i].x, pull_[i].y + tie * solution_[i].y - product_[i].y};
    direction_[i] = {residual_[i].x / diagonal_[i], residual_[i].y / diagonal_[i]};
  }
}

const std::vector<QuadraticStart::Pair>& QuadraticStart::solve(const std::vector<Pair>& from, float hold) {
  const int count = springs_->count();
  start(from, hold);
  Sums old;  // residual · preconditioned residual
  for (int i = 0; i < count; ++i) {
    old.x += residual_[i].x * direction_[i].x;
    old.y += residual_[i].y * direction_[i].y;
  }
  const Sums enough{kConverged * old.x, kConverged * old.y};
  for (int iteration = 0; iteration < iterations_ && (old.x > enough.x || old.y > enough.y); ++iteration) {
    multiply(direction_, product_);
    Sums curve;
    for (int i = 0; i < count; ++i) {
      curve.x += direction_[i].x * product_[i].x;
      curve.y += direction_[i].y * product_[i].y;
    }
    const Pair step{ratio(old.x, curve.x), ratio(old.y, curve.y)};
    Sums fresh;
    for (int i = 0; i < count; ++i) {
      solution_[i].x += step.x * direction_[i].x;
      solution_[i].y += step.y * direction_[i].y;
      residual_[i].x -= step.x * product_[i].x;
      residual_[i].y -= step.y * product_[i].y;
      fresh.x += residual_[i].x * residual_[i].x / diagonal_[i];
      fresh.y += residual_[i].y * residual_[i].y / diagonal_[i];
    }
    const Pair keep{ratio(fresh.x, old.x), ratio(fresh.y, old.y)};
    for (int i = 0; i < count; ++i) {
      direction_[i] = {residual_[i].x / diagonal_[i] + keep.x * direction_[i].x,
                       residual_[i].y / diagonal_[i] + keep.y * direction_[i].y};
    }
    old = fresh;
  }
  return solution_;
}

}  // namespace placement
