#include "search/annealer.hpp"

#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "cost/cost.hpp"
#include "cost/legality.hpp"
#include "toy_design.hpp"

using placement::Annealer;
using placement::CostEvaluator;
using placement::LegalPositions;
using placement::MoveOptions;
using placement::NodeMove;

namespace {

// Positions in toy_design: the port, macros of 20 × 20, 20 × 10, 10 × 10 and 7 × 5 µm, a soft macro; 80 × 60 µm.
struct Places {
  std::vector<double> x{5, 10, 40, 65, 65, 40}, y{5, 10, 15, 15, 40, 40};
  std::vector<std::int8_t> orientation = std::vector<std::int8_t>(6, 0);
};

}  // namespace

TEST(legal_positions_are_free) {
  const auto design = toy_design();
  const Places places;
  LegalPositions legal(*design, 0.0);
  legal.place(places.x.data(), places.y.data(), places.orientation.data());
  CHECK(legal.all_fit());
  NodeMove move{3, 25, 5, 0};  // 10 × 10 beside the 20 × 20: they touch
  CHECK(legal.fits(&move, 1));
  move.x = 24.9;
  CHECK(!legal.fits(&move, 1));
  move = {3, 4.9, 40, 0};  // over the edge
  CHECK(!legal.fits(&move, 1));
  CHECK(legal.clearance({1, 10, 10, 0}, true, true) == 10.0);  // up to the second one, from 20 to 30
  CHECK(legal.clearance({1, 10, 10, 0}, true, false) == 0.0);
  const NodeMove swapped[2] = {{2, 65, 15, 0}, {3, 40, 15, 0}};
  CHECK(legal.fits(swapped, 2));
  const NodeMove together[2] = {{2, 40, 40, 0}, {3, 45, 40, 0}};
  CHECK(!legal.fits(together, 2));
}

TEST(legal_positions_keep_the_spacing) {
  const auto design = toy_design();
  const Places places;
  LegalPositions legal(*design, 2.0);
  legal.place(places.x.data(), places.y.data(), places.orientation.data());
  NodeMove move{3, 10, 26.9, 0};  // above the first one
  CHECK(!legal.fits(&move, 1));
  move.y = 27;
  CHECK(legal.fits(&move, 1));
}

TEST(annealer_keeps_the_exact_cost_and_the_placement_legal) {
  const auto design = toy_design();
  const Places places;
  Annealer annealer(design, places.x.data(), places.y.data(), places.orientation.data(), {}, MoveOptions(), 1);
  const double before = annealer.best_cost();
  const auto placer = placement::make_soft_placer("analytic_fast", design);
  for (int i = 0; i < 10; ++i) {
    annealer.run(2000, 1e-3);
    annealer.replace_soft(*placer);
  }
  const auto& cost = annealer.cost();
  CostEvaluator evaluator(design);
  const auto full = evaluator.evaluate(cost.x().data(), cost.y().data(), cost.orientation().data(), {});
  CHECK(full.total == cost.costs().total);
  const auto legal = placement::check_legality(*design, annealer.best_x().data(), annealer.best_y().data(),
                                               annealer.best_orientation().data());
  CHECK(legal.overlaps == 0 && legal.outside == 0);
  const auto best = evaluator.evaluate(annealer.best_x().data(), annealer.best_y().data(),
                                       annealer.best_orientation().data(), {});
  CHECK(best.total == annealer.best_cost() && best.total < before);
}

TEST(annealers_in_threads_share_a_design_and_find_what_each_finds_alone) {
  const auto design = toy_design();
  const Places places;
  const auto search = [&](std::uint64_t seed) {
    Annealer annealer(design, places.x.data(), places.y.data(), places.orientation.data(), {}, MoveOptions(), seed);
    const auto placer = placement::make_soft_placer("analytic_fast", design);
    for (int round = 0; round < 5; ++round) {
      annealer.run(1000, 1e-3);
      annealer.replace_soft(*placer);
    }
    return annealer.best_cost();
  };
  std::vector<double> together(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < together.size(); ++i) {
    threads.emplace_back([&, i] { together[i] = search(i); });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 0; i < together.size(); ++i) CHECK(together[i] == search(i));
}

TEST(annealer_rejects_an_illegal_start) {
  const auto design = toy_design();
  Places places;
  places.x[3] = 40;
  CHECK_THROWS(Annealer(design, places.x.data(), places.y.data(), places.orientation.data(), {}, MoveOptions(), 1),
               std::invalid_argument);
}
