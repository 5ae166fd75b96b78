#include "soft/analytic.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace placement {
namespace {

constexpr float kLeastGain = 1e-6F;  // minimum decrease of the proxy cost for a move
constexpr int kPlaces = 16;          // positions that a macro tries across its gcell, and up

float between(float first, float last, float share) { return first * std::pow(last / first, share); }

Softness between(const Softness& first, const Softness& last, float share) {
  return {between(first.density, last.density, share), between(first.congestion, last.congestion, share),
          between(first.density_weight, last.density_weight, share),
          between(first.congestion_weight, last.congestion_weight, share)};
}

float overlap(float low, float high, float cell, int index) {
  const auto start = static_cast<float>(index) * cell;
  return std::max(0.0F, std::min(high, start + cell) - std::max(low, start)) / cell;
}

}  // namespace

AnalyticOptions fast_analytic_options() {
  AnalyticOptions options;
  options.sweeps = 5;
  options.pulls = 1;
  options.wide_sweeps = 3;
  options.hold = 0.2F;
  options.refining_sweeps = 1;
  options.first = {4.0F, 0.21F, 4.0F, 1.1F};
  options.last = {0.036F, 0.031F, 0.34F, 1.0F};
  return options;
}

Analytic::Analytic(std::shared_ptr<const Design> design, AnalyticOptions options)
    : design_(std::move(design)),
      options_(options),
      evaluator_(design_),
      maps_(*design_, options_.weights),
      start_(design_, options_.solver_iterations),
      nets_(design_, start_.nodes(), options_.weights.wirelength),
      window_(design_),
      boxes_(start_.nodes().size()),
      centres_(start_.nodes().size()) {}

void Analytic::place(double* x, double* y, const std::int8_t* orientation) {
  if (boxes_.empty()) return;
  start_.set_fixed(x, y, orientation);
  nets_.set_fixed(x, y, orientation);
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    const int node = start_.nodes()[i];
    boxes_[i] = {design_->canvas, design_->width_of(node, orientation[node]), design_->height_of(node, orientation[node])};
  }
  float hold = 0;
  for (int number = 0; number < options_.sweeps; ++number) {
    const float share = options_.sweeps > 1 ? static_cast<float>(number) / static_cast<float>(options_.sweeps - 1) : 1;
    softness_ = between(options_.first, options_.last, share);
    window_.narrow(number < options_.wide_sweeps ? PricedWindow::kMost : PricedWindow::kMost / 2);
    if (number <= options_.pulls) gather(x, y, orientation, hold);
    hold = number == 0 ? options_.hold : hold * options_.hold_growth;
    sweep();
  }
  for (int number = 0; number < options_.refining_sweeps; ++number) {
    maps_.set_thresholds();
    for (std::size_t i = 0; i < boxes_.size(); ++i) refine(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    x[start_.nodes()[i]] = boxes_[i].x;
    y[start_.nodes()[i]] = boxes_[i].y;
  }
}

// Lets the springs pull the macros, tied to their positions by `hold`, and puts each in the middle of the gcell that it
// reaches. Loads the exact maps.
void Analytic::gather(double* x, double* y, const std::int8_t* orientation, float hold) {
  const Canvas& canvas = design_->canvas;
  const auto half_width = static_cast<float>(canvas.width / 2), half_height = static_cast<float>(canvas.height / 2);
  for (std::size_t i = 0; i < boxes_.size(); ++i) centres_[i] = {boxes_[i].x - half_width, boxes_[i].y - half_height};
  const auto& pulled = start_.solve(centres_, hold);
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    SoftBox& box = boxes_[i];
    const int column = std::clamp(canvas.column_of(half_width + pulled[i].x), box.first_column, box.last_column);
    const int row = std::clamp(canvas.row_of(half_height + pulled[i].y), box.first_row, box.last_row);
    box.x = box.clamp_x(static_cast<float>((column + 0.5) * canvas.cell_width()));
    box.y = box.clamp_y(static_cast<float>((row + 0.5) * canvas.cell_height()));
    nets_.place(static_cast<int>(i), box.x, box.y);
    x[start_.nodes()[i]] = box.x;
    y[start_.nodes()[i]] = box.y;
  }
  evaluator_.evaluate(x, y, orientation, options_.weights);
  maps_.load(evaluator_);
}

void Analytic::sweep() {
  maps_.set_thresholds();
  maps_.set_prices(softness_);
  const int macros = static_cast<int>(boxes_.size());
  const int per_threshold = std::max(options_.moves_per_threshold, macros / options_.macros_per_threshold);
  const int per_pricing = std::max(options_.moves_per_pricing, macros / options_.macros_per_pricing);
  int moves = 0;
  for (int i = 0; i < macros; ++i) {
    if (!improve(i)) continue;
    ++moves;
    if (moves % per_threshold == 0) maps_.set_thresholds();
    if (moves % per_pricing == 0) maps_.set_prices(softness_);
  }
}

// Moves the soft macro to the best gcell of its window; returns whether that lowers the cost.
bool Analytic::improve(int soft) {
  const Canvas& canvas = design_->canvas;
  SoftBox& box = boxes_[soft];
  box.add_density(canvas, maps_, -1);
  const PricedWindow::Gcell best = window_.best(soft, box, nets_, maps_, softness_);
  const bool moves = best.gain > kLeastGain;
  if (moves) {
    box.x = box.clamp_x((static_cast<float>(best.column) + 0.5F) * static_cast<float>(canvas.cell_width()));
    box.y = box.clamp_y((static_cast<float>(best.row) + 0.5F) * static_cast<float>(canvas.cell_height()));
    nets_.move(soft, box.x, box.y, maps_);
  }
  box.add_density(canvas, maps_, 1);
  return moves;
}

// Moves the soft macro within its gcell, which does not change its routes, to the least cost of wirelength and density.
void Analytic::refine(int soft) {
  boxes_[soft].add_density(design_->canvas, maps_, -1);
  refine_on_axis(soft, true);
  refine_on_axis(soft, false);
  boxes_[soft].add_density(design_->canvas, maps_, 1);
}

void Analytic::refine_on_axis(int soft, bool across) {
  const Canvas& canvas = design_->canvas;
  SoftBox& box = boxes_[soft];
  const int index = across ? canvas.column_of(box.x) : canvas.row_of(box.y);
  const auto cell = static_cast<float>(across ? canvas.cell_width() : canvas.cell_height());
  alignas(32) float at[kPlaces], total[kPlaces];
  for (int i = 0; i < kPlaces; ++i) {
    const float share = i == 0 ? 0.5F : static_cast<float>(i) / kPlaces;  // the middle first: it wins ties
    const float place = (static_cast<float>(index) + share) * cell;
    at[i] = across ? box.clamp_x(place) : box.clamp_y(place);
  }
  Lanes wire[kPlaces / Lanes::kCount] = {};
  for (const SoftNets::Incidence *net = nets_.begin(soft), *end = nets_.end(soft); net != end; ++net) {
    const SoftNets::Extent extent = nets_.extent(*net);
    if (across) {
      add_excess(wire, at, extent.left - net->low_dx, extent.right - net->high_dx, net->wire_price);
    } else {
      add_excess(wire, at, extent.low - net->low_dy, extent.high - net->high_dy, net->wire_price);
    }
  }
  for (int i = 0; i < kPlaces / Lanes::kCount; ++i) wire[i].store(total + i * Lanes::kCount);

  const DensityPrice price = maps_.density_price(softness_);
  const float half = (across ? box.width : box.height) / 2;
  const auto cell_of = [&](float place) { return across ? canvas.column_of(place) : canvas.row_of(place); };
  const auto other_cell = static_cast<float>(across ? canvas.cell_height() : canvas.cell_width());
  const float other_low = across ? box.y - box.height / 2 : box.x - box.width / 2;
  const float other_high = across ? box.y + box.height / 2 : box.x + box.width / 2;
  const auto other_of = [&](float place) { return across ? canvas.row_of(place) : canvas.column_of(place); };
  const int last = cell_of(at[kPlaces - 1] + half), other_last = other_of(other_high);
  for (int other = other_of(other_low); other <= other_last; ++other) {
    const float other_share = overlap(other_low, other_high, other_cell, other);
    for (int here = cell_of(at[1] - half); here <= last; ++here) {
      const float density = across ? maps_.density_row(other)[here] : maps_.density_row(here)[other];
      const float before = price(density);
      for (int i = 0; i < kPlaces; ++i) {
        total[i] += price(density + other_share * overlap(at[i] - half, at[i] + half, cell, here)) - before;
      }
    }
  }
  const float place = at[std::min_element(total, total + kPlaces) - total];
  (across ? box.x : box.y) = place;
  nets_.place(soft, box.x, box.y);
}

namespace {

constexpr float kAnchor = 1e-5F;  // fraction of the mean stiffness: for macros without a connection to a fixed pin
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
