#include "cost/incremental.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "check.hpp"
#include "common/random.hpp"
#include "toy_design.hpp"

using namespace placement;

namespace {

enum class NetWeights { fractions, whole, huge };

double draw_weight(NetWeights weights, Random& random) {
  if (weights == NetWeights::fractions) return 0.5 + random.fraction();
  const double whole = 1.0 + static_cast<double>(random.below(5));
  return weights == NetWeights::whole ? whole : 1e8 * whole;
}

// Hard and soft macros of many sizes and nets of 2 to 12 pins on a grid of more than 64 columns.
std::shared_ptr<const Design> wide_design(int columns, int rows, int smoothing, NetWeights weights) {
  auto design = std::make_shared<Design>();
  design->canvas = {700.0, 90.0, columns, rows, 5.0, 7.0, 2.0, 3.0, smoothing, 0.0};
  Random random(static_cast<std::uint64_t>(columns * 31 + smoothing));
  constexpr int kNodes = 60;
  for (int node = 0; node < kNodes; ++node) {
    const bool port = node % 10 == 9;
    design->kind.push_back(static_cast<std::int8_t>(port ? Kind::port : node % 3 == 0 ? Kind::hard : Kind::soft));
    design->node_width.push_back(port ? 0 : 3 + 40 * random.fraction());
    design->node_height.push_back(port ? 0 : 3 + 30 * random.fraction());
    design->fixed.push_back(port);
    design->placed.push_back(1);
    design->initial_x.push_back(700 * random.fraction());
    design->initial_y.push_back(90 * random.fraction());
    design->initial_orientation.push_back(0);
    for (int pin = 0; pin < 2; ++pin) {
      design->pin_node.push_back(node);
      design->pin_dx.push_back(port ? 0 : random.both_ways());
      design->pin_dy.push_back(port ? 0 : random.both_ways());
    }
    if (!port && node % 3 == 0) design->placing_order.push_back(node);
  }
  design->net_start.push_back(0);
  for (int net = 0; net < 150; ++net) {
    const int pins = 2 + static_cast<int>(random.below(net % 5 == 0 ? 11 : 4));
    for (int pin = 0; pin < pins; ++pin) design->net_pins.push_back(static_cast<std::int32_t>(random.below(2 * kNodes)));
    design->net_start.push_back(static_cast<std::int32_t>(design->net_pins.size()));
    design->net_weight.push_back(draw_weight(weights, random));
  }
  return design;
}

void check_same(const IncrementalCost& moved, CostEvaluator& full, bool with_maps) {
  const Costs expected = full.evaluate(moved.x().data(), moved.y().data(), moved.orientation().data(), moved.weights());
  CHECK(moved.costs().wirelength == expected.wirelength);
  CHECK(moved.costs().density_cost == expected.density_cost);
  CHECK(moved.costs().congestion_cost == expected.congestion_cost);
  for (int cell = 0; with_maps && cell < moved.design().canvas.cells(); ++cell) {
    CHECK(moved.vertical_map()[cell] == full.vertical_map()[cell]);
    CHECK(moved.horizontal_map()[cell] == full.horizontal_map()[cell]);
  }
}

void check_walk(const std::shared_ptr<const Design>& design, const Weights& weights, std::uint64_t rounds = 60) {
  const auto moved_ = make_incremental_cost(design, design->initial_x.data(), design->initial_y.data(), design->initial_orientation.data(),
                        weights);
  IncrementalCost& moved = *moved_;
  CostEvaluator full(design);
  const bool with_maps = weights.name == CostName::proxy;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    random_walk(moved, 1 + static_cast<std::int64_t>(round), round, 0.4);
    check_same(moved, full, with_maps);
  }
}

// The maps are requested while a proposal is pending, which is then accepted or undone.
void check_pending(const std::shared_ptr<const Design>& design) {
  const auto moved_ = make_incremental_cost(design, design->initial_x.data(), design->initial_y.data(), design->initial_orientation.data());
  IncrementalCost& moved = *moved_;
  CostEvaluator full(design);
  Random random(3);
  for (int i = 0; i < 120; ++i) {
    NodeMove move = moved.at(static_cast<int>(10 * random.below(6) + random.below(9)));
    move.x = design->canvas.width * random.fraction();
    move.y = design->canvas.height * random.fraction();
    moved.propose(&move, 1);
    if (i % 3 != 0) moved.refresh_maps();
    check_same(moved, full, i % 3 != 0);
    if (i % 2 == 0) moved.accept();
    else moved.undo();
    check_same(moved, full, true);
  }
}

void check_walk(int columns, int rows, int smoothing, const Weights& weights, std::uint64_t rounds = 60) {
  for (const NetWeights nets : {NetWeights::fractions, NetWeights::whole}) {
    check_walk(wide_design(columns, rows, smoothing, nets), weights, rounds);
  }
}

// Draws proposals, most of them with limits near their costs; a second evaluation of the same moves returns their
// costs. Of those that cost more than their limit, a share above `least_sure` is rejected early.
void check_limits(const std::shared_ptr<const Design>& design, const Weights& weights, double least_sure) {
  const double* x = design->initial_x.data();
  const double* y = design->initial_y.data();
  const auto cost_ = make_incremental_cost(design, x, y, design->initial_orientation.data(), weights);
  IncrementalCost& cost = *cost_;
  const auto whole_ = make_incremental_cost(design, x, y, design->initial_orientation.data(), weights);
  IncrementalCost& whole = *whole_;
  Random random(7);
  int refused = 0, sure = 0;
  for (int i = 0; i < 4000; ++i) {
    NodeMove moves[2];
    const int count = 1 + static_cast<int>(random.below(2));
    for (int j = 0; j < count; ++j) {
      moves[j] = cost.at(static_cast<int>(10 * random.below(6) + 5 * j + random.below(4)));
      moves[j].x += 200 * random.both_ways() * random.fraction();
      moves[j].y += 40 * random.both_ways() * random.fraction();
      moves[j].orientation = static_cast<std::int8_t>(random.below(4));
    }
    const double before = cost.costs().total, limit = before * (1 + 0.004 * random.both_ways());
    const double after = whole.propose(moves, count).total;
    const bool bounded = i < 1000 || i % 5 != 0;
    if (!bounded) cost.propose(moves, count);
    const bool proposed = !bounded || cost.propose_within(moves, count, limit);
    refused += bounded && after > limit;
    if (!proposed) {
      CHECK(after > limit);
      CHECK(!cost.pending());
      CHECK(cost.costs().total == before);
      ++sure;
    } else {
      CHECK(cost.costs().total == after);
    }
    if (i == 2001) {
      cost.reset(cost.x().data(), cost.y().data(), cost.orientation().data());
      whole.reset(cost.x().data(), cost.y().data(), cost.orientation().data());
      cost.accept();  // nothing is pending
      whole.accept();
    } else if (proposed && after <= limit) {
      if (i % 3 != 0) cost.accept();  // otherwise accepted by the next proposal
      whole.accept();
    } else {
      cost.undo();
      whole.undo();
    }
  }
  CHECK(refused > 500);
  CHECK(sure > least_sure * refused);
}

}  // namespace

TEST(a_proposal_is_refused_only_where_its_cost_is_above_the_limit) {
  for (const int smoothing : {0, 2}) {
    for (const NetWeights nets : {NetWeights::fractions, NetWeights::whole}) {
      check_limits(wide_design(70, 9, smoothing, nets), {}, 0.5);
      if ((smoothing == 0) != (nets == NetWeights::fractions)) continue;
      check_limits(wide_design(200, 30, smoothing, nets), {}, 0.4);  // some moves are scanned, others are followed
    }
  }
  for (const double tracks : {1.0, 0.3, 0.03}) {  // with few of them gcells are full
    const auto design = std::make_shared<Design>(*wide_design(70, 9, 2, NetWeights::fractions));
    design->canvas.routes_horizontal *= tracks;
    design->canvas.routes_vertical *= tracks;
    check_limits(design, {1.0, 1.0, 1.0, CostName::chip}, 0.5);
  }
}

TEST(moves_and_undos_leave_the_proxy_cost_of_a_full_evaluation) {
  for (const int smoothing : {0, 1, 2, 5, 90}) check_walk(70, 9, smoothing, {});
  check_walk(130, 3, 2, {});
  check_walk(200, 30, 2, {});  // some moves are scanned, others are followed
  check_walk(700, 90, 2, {}, 20);  // so large that few moves are scanned
  check_walk(3, 2, 1, {});
}

TEST(demands_that_are_too_large_for_whole_numbers_are_summed_all_the_same) {
  check_walk(wide_design(70, 9, 2, NetWeights::huge), {});
}

TEST(maps_are_those_of_a_pending_proposal_and_of_what_stands_after_it) {
  for (const NetWeights nets : {NetWeights::fractions, NetWeights::whole}) {
    for (const int smoothing : {0, 1, 2, 5}) check_pending(wide_design(70, 9, smoothing, nets));
    check_pending(wide_design(200, 30, 2, nets));
  }
}

TEST(moves_and_undos_leave_the_chip_cost_of_a_full_evaluation) {
  check_walk(70, 9, 2, {1.0, 1.0, 1.0, CostName::chip});
}

TEST(busy_gcells_on_the_chip_cost_are_those_beyond_their_tracks) {
  // One net, two macros side by side in the fourth row: only horizontal wire, and only in that row.
  auto design = std::make_shared<Design>(*toy_design());
  design->net_start = {0, 2};
  design->net_pins = {3, 4};
  design->net_weight = {100.0};
  design->pin_dx.assign(design->pin_dx.size(), 0.0);
  design->pin_dy.assign(design->pin_dy.size(), 0.0);
  design->canvas.macro_routes_horizontal = design->canvas.macro_routes_vertical = 0;
  std::vector<double> x = design->initial_x, y = design->initial_y;
  x[3] = 15, x[4] = 55, y[3] = y[4] = 35;
  const auto cost_ = make_incremental_cost(design, x.data(), y.data(), design->initial_orientation.data(), {1.0, 1.0, 1.0, CostName::chip});
  IncrementalCost& cost = *cost_;
  cost.refresh_maps();
  double beyond = 0;
  for (int column = 0; column < 8; ++column) {
    for (int row = 0; row < 6; ++row) {
      const double across = cost.horizontal_map()[column * 6 + row], up = cost.vertical_map()[row * 8 + column];
      CHECK((across > 0) == (row == 3 && column >= 1 && column <= 5));
      CHECK(up < 0);
      beyond += std::max(0.0, across);
    }
  }
  // Consistent with the congestion cost: divided by the half perimeter of the canvas times the weight.
  CHECK(std::abs(beyond / ((80 + 60) * 100.0) - cost.costs().congestion_cost) < 1e-9);
}
