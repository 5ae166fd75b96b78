// Cost of gcells: density and routing demand over the grid, and their prices.
//
// The cost's "mean of the k largest" is min over t of t + Σ max(0, value − t) / k, attained if t is the k-th largest
// value. With that threshold fixed, the cost is a sum over gcells, and the price of adding to a gcell is 1/k above the
// threshold and 0 below. A softness δ turns the step into a ramp over [t − δ, t + δ], so that gcells about to become
// expensive are avoided early. Axis legend: R rows, C columns; maps are padded to whole SIMD lanes.
#pragma once

#include <vector>

#include "cost/cost.hpp"
#include "common/design.hpp"

namespace placement {

struct Softness {
  float density = 0.05F, congestion = 0.05F;          // δ above, in units of the density and of demand over capacity
  float density_weight = 1, congestion_weight = 1;  // multiplied by the weights of the proxy cost
};

// Price of density v: 0 below `start`, curve · (v − start)² up to start + bend, then linear with `slope`.
struct DensityPrice {
  float start, bend, curve, slope;  // proxy cost per unit of density: slope; per its square: curve
  float operator()(float density) const {
    const float above = density > start ? density - start : 0, ramp = above < bend ? above : bend;
    return curve * ramp * ramp + slope * (above - ramp);
  }
};

class PriceMaps {
 public:
  explicit PriceMaps(const Design& design, const Weights& weights);

  int columns() const { return columns_; }
  int rows() const { return rows_; }

  // Loads the maps of an exact evaluation; blockages count as full.
  void load(const CostEvaluator& evaluator);
  // The same from maps: density and vertical [R, C], horizontal [C, R].
  void load(const double* density, const double* vertical, const double* horizontal);

  // Adds a route of `weight` tracks (negative: removes it) along `row` between the columns, then along `to_column`
  // between the rows. Takes effect at the next set_prices.
  void add_route(int row, int column, int to_row, int to_column, float weight) {
    static constexpr float kSign[] = {-1, 1};  // no branch: directions are unpredictable
    const float right = weight * kSign[to_column > column], up = weight * kSign[to_row > row];
    float* along = horizontal_steps_.data() + row * row_stride_;
    along[column] += right;
    along[to_column] -= right;
    float* across = vertical_steps_.data() + to_column * column_stride_;
    across[row] += up;
    across[to_row] -= up;
  }
  const float* density_row(int row) const { return density_.data() + kPad + row * row_stride_; }
  float* density_row(int row) { return density_.data() + kPad + row * row_stride_; }

  // Sets the thresholds to the current k-th largest values; of the routing demand, to that of the last set_prices.
  void set_thresholds();
  // Recomputes the routing demand and its prices.
  void set_prices(const Softness& softness);

  // Price, in proxy cost per track, of one more route over a gcell, and prefix sums of it.
  const float* horizontal_price_column(int c) const { return horizontal_price_turned_.data() + c * column_stride_; }
  const float* horizontal_sum_row(int row) const { return horizontal_sum_.data() + kPad + row * row_stride_; }
  const float* vertical_price_row(int row) const { return vertical_price_turned_.data() + kPad + row * row_stride_; }
  const float* vertical_sum_column(int column) const { return vertical_sum_.data() + column * column_stride_; }

  DensityPrice density_price(const Softness& softness) const {
    const float slope = density_price_ * softness.density_weight;
    return {density_threshold_ - softness.density, 2 * softness.density, slope / (4 * softness.density), slope};
  }

  static constexpr int kPad = 32;  // entries before the first and after the last of each row

 private:
  void block(const Canvas& canvas, const KeepOut& off);

  int columns_, rows_, column_stride_, row_stride_, largest_;
  float horizontal_capacity_, vertical_capacity_;  // tracks
  float density_price_, congestion_price_;
  float density_threshold_ = 0, congestion_threshold_ = 0;
  std::vector<float> density_;                              // [R, C]
  std::vector<float> blocked_;                              // [R, C] share under blockages, or empty
  // Demand over capacity as loaded, and current; changes of the latter, in tracks, from one gcell to the next.
  std::vector<float> horizontal_base_, horizontal_, horizontal_steps_;  // [R, C]
  std::vector<float> vertical_base_, vertical_, vertical_steps_;        // [C, R]
  std::vector<float> horizontal_price_, horizontal_price_turned_, horizontal_sum_;
  std::vector<float> vertical_price_turned_, vertical_sum_;
  std::vector<float> scratch_;
};

}  // namespace placement
