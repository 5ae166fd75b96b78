#include "search/target_drawer.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "check.hpp"
#include "common/random.hpp"
#include "cost/cell_overflow.hpp"

using namespace placement;

namespace {

constexpr int kPoints = CellOverflow::kMostPoints;
const Canvas kBins = {200.0, 120.0, 20, 12, 1.0, 1.0, 1.0, 1.0, 1, 0.0};  // of 10 × 10 µm

// Hard macros and clusters at random positions, so that some blocks overflow and others do not.
void fill(CellOverflow& overflow, Random& random) {
  for (int i = 0; i < 12; ++i) {
    overflow.add(200 * random.fraction(), 120 * random.fraction(), 10 + 40 * random.fraction(), 10 + 30 * random.fraction(),
             i % 2 == 0, 1);
  }
}

// Two ports at opposite corners and soft macros of almost no area, each on a net to a port, to both, or to another.
std::shared_ptr<const Design> pulled_design() {
  auto design = std::make_shared<Design>();
  design->canvas = {80.0, 60.0, 8, 6, 50.0, 50.0, 1.0, 1.0, 1, 0.0};
  const auto add = [&](Kind kind, double x, double y, double size) {
    design->kind.push_back(static_cast<std::int8_t>(kind));
    design->node_width.push_back(size);
    design->node_height.push_back(size);
    design->initial_x.push_back(x);
    design->initial_y.push_back(y);
    design->initial_orientation.push_back(0);
    design->placed.push_back(1);
    design->fixed.push_back(kind == Kind::port);
    design->pin_node.push_back(static_cast<std::int32_t>(design->kind.size()) - 1);
    design->pin_dx.push_back(0);
    design->pin_dy.push_back(0);
  };
  add(Kind::port, 0, 0, 0);
  add(Kind::port, 80, 60, 0);
  for (int i = 0; i < 4; ++i) add(Kind::soft, 40, 30, 1e-3);
  design->net_start = {0, 2, 5, 7, 9};
  design->net_pins = {0, 2, 0, 1, 3, 1, 4, 4, 5};
  design->net_weight = {1.0, 1.0, 2.0, 1.0};
  return design;
}

// Draws one of four columns by given prices.
class FixedPrices : public TargetDrawer {
 public:
  FixedPrices(const IncrementalCost& cost, std::vector<float> prices) : TargetDrawer(cost, {2}), prices_(std::move(prices)) {}
  bool draw(int, double temperature, Random& random, double* x, double* y) override {
    const auto [column, row] = draw_column_and_row(prices_.data(), 5, 4, 1, temperature, random);
    *x = column;
    *y = row;
    return true;
  }

 private:
  std::vector<float> prices_;
};

// Draws a position for soft macro `number`, node 2 + number, at temperature 0, and moves the macro there unless that
// costs more. Returns whether there is one; `rise` is then the increase of the cost.
bool follow(IncrementalCost& cost, TargetDrawer& targets, int number, Random& random, double& rise) {
  NodeMove to = cost.at(2 + number);
  if (!targets.draw(number, 0, random, &to.x, &to.y)) return false;
  CHECK(to.x >= 0 && to.x <= 80 && to.y >= 0 && to.y <= 60);
  const double before = cost.costs().total;
  cost.propose(&to, 1);
  rise = cost.costs().total - before;
  if (rise > 0) {
    cost.undo();
  } else {
    cost.accept();
    targets.moved(to);
  }
  return true;
}

}  // namespace

TEST(a_price_is_what_the_displacement_rises_by) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CellOverflow overflow(kBins, 400);
    Random random(seed);
    fill(overflow, random);
    const double here_x = 10 * random.below(20) + 5.0, here_y = 10 * random.below(12) + 5.0;
    const double width = 2 + 8 * random.fraction(), height = 2 + 8 * random.fraction();
    overflow.add(here_x, here_y, width, height, false, 1);
    float xs[kPoints], ys[kPoints], prices[kPoints * kPoints];
    for (float& x : xs) x = 10.0F * static_cast<float>(random.below(20)) + 5;
    for (float& y : ys) y = 10.0F * static_cast<float>(random.below(12)) + 5;
    const int columns = 1 + static_cast<int>(random.below(kPoints)), rows = 1 + static_cast<int>(random.below(kPoints));
    overflow.price({here_x, here_y, width, height}, xs, columns, ys, rows, prices);
    overflow.add(here_x, here_y, width, height, false, -1);
    const double without = overflow.displacement();
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        overflow.add(xs[c], ys[r], width, height, false, 1);
        const double rise = overflow.displacement() - without;
        overflow.add(xs[c], ys[r], width, height, false, -1);
        CHECK(std::abs(prices[r * kPoints + c] - rise) <= 1e-4 * std::max(1000.0, rise));
      }
    }
  }
}

TEST(targets_at_no_temperature_draw_macros_to_their_nets) {
  for (const CostName name : {CostName::proxy, CostName::chip}) {
    const auto design = pulled_design();
    Weights weights;
    weights.name = name;
    weights.congestion = 0;  // the chip cost's prices omit congestion; the proxy cost's are several moves old
    const auto cost_ = make_incremental_cost(design, design->initial_x.data(), design->initial_y.data(), design->initial_orientation.data(),
                         weights);
    IncrementalCost& cost = *cost_;
    const auto targets = make_target_drawer(cost, {2, 3, 4, 5});
    targets->reset();
    Random random(1);
    int drawn = 0;
    for (int i = 0; i < 400; ++i) {
      double rise;
      if (!follow(cost, *targets, i % 4, random, rise)) continue;
      ++drawn;
      if (name == CostName::chip) CHECK(rise <= 1e-6);
    }
    CHECK(drawn > 20);
    const double step = name == CostName::chip ? 2.5 : 10;  // targets are no finer
    CHECK(cost.x()[2] <= step && cost.y()[2] <= step);
    CHECK(cost.x()[4] >= 80 - step && cost.y()[4] >= 60 - step);
    CHECK(std::abs(cost.x()[5] - cost.x()[4]) <= step && std::abs(cost.y()[5] - cost.y()[4]) <= step);
  }
}

TEST(clusters_upon_each_other_are_drawn_apart) {
  auto design = std::make_shared<Design>(*pulled_design());
  for (int node = 2; node < 6; ++node) design->node_width[node] = design->node_height[node] = 14;  // their cells need 9.9 µm each way
  Weights weights;
  weights.name = CostName::chip;
  weights.wirelength = weights.congestion = 0;
  weights.density = 1;
  // All in the middle of one bin of 10 µm.
  std::vector<double> x = design->initial_x, y = design->initial_y;
  for (int node = 2; node < 6; ++node) x[node] = 35, y[node] = 35;
  const auto cost_ = make_incremental_cost(design, x.data(), y.data(), design->initial_orientation.data(), weights);
  IncrementalCost& cost = *cost_;
  CHECK(cost.costs().total > 0);
  const auto targets = make_target_drawer(cost, {2, 3, 4, 5});
  targets->reset();
  Random random(1);
  int drawn = 0;
  double rise;
  for (int i = 0; i < 40; ++i) drawn += follow(cost, *targets, i % 4, random, rise);
  CHECK(drawn > 2);
  CHECK(cost.costs().total < 1e-3);
}

TEST(warm_targets_are_drawn_by_their_boltzmann_weights) {
  const auto design = pulled_design();
  const auto cost_ = make_incremental_cost(design, design->initial_x.data(), design->initial_y.data(), design->initial_orientation.data());
  IncrementalCost& cost = *cost_;
  constexpr float kTemperature = 0.25F;
  FixedPrices targets(cost, {1.0F, 1.0F + kTemperature, 1.0F + 2 * kTemperature, 1.0F + 20 * kTemperature, 0.0F});
  Random random(5);
  std::vector<double> drawn(5, 0.0);
  constexpr int kDraws = 50'000;
  for (int i = 0; i < kDraws; ++i) {
    double column, row;
    targets.draw(0, kTemperature, random, &column, &row);
    CHECK(row == 0);
    drawn[static_cast<int>(column)] += 1.0 / kDraws;
  }
  const double sum = 1 + std::exp(-1) + std::exp(-2);
  for (int i = 0; i < 3; ++i) CHECK(std::abs(drawn[i] - std::exp(-i) / sum) < 0.01);
  CHECK(drawn[3] == 0 && drawn[4] == 0);  // negligible weight; and not one of the columns
}
