#include "cost/congestion_scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "check.hpp"
#include "common/random.hpp"

using namespace placement;

namespace {

Canvas canvas_of(int columns, int rows, int smoothing) { return {100.0, 60.0, columns, rows, 5.0, 7.0, 2.0, 3.0, smoothing, 0.0}; }

PointPlace place_in(const Canvas& canvas, int column, int row) {
  return {0.0, 0.0, column, row, row * canvas.columns + column, column * canvas.rows};
}

void check_scan(const Canvas& canvas) {
  Random random(static_cast<std::uint64_t>(canvas.columns + canvas.smoothing));
  RouteSteps steps(canvas);
  WholeRouteSteps whole(canvas);
  MacroCover cover(canvas);
  GridCost full(canvas);
  CongestionScan scan(canvas);
  std::vector<double> found(2 * canvas.cells()), maps(2 * canvas.cells()), expected;
  for (int round = 0; round < 20; ++round) {
    for (int route = 0; route < 30; ++route) {
      const auto anywhere = [&] {
        return place_in(canvas, static_cast<int>(random.below(canvas.columns)), static_cast<int>(random.below(canvas.rows)));
      };
      const PointPlace from = anywhere(), to = anywhere();
      const double weight = 1.0 + static_cast<double>(random.below(9));
      steps.add_two(from, to, weight);
      whole.add_two(from, to, weight);
    }
    scan.block_changed(cover.add(100 * random.fraction(), 60 * random.fraction(), 20.0, 9.0, true, 1.0));
    full.congestion_cost(steps, cover);
    const double* all = full.vertical();  // the horizontal map follows it
    const double limit = round % 5 == 0 ? -std::numeric_limits<double>::infinity() : round % 5 == 1 ? all[round] : 0.3 * (round / 5);
    expected.clear();
    std::copy_if(all, all + 2 * canvas.cells(), std::back_inserter(expected), [&](double value) { return value >= limit; });
    const int count = scan.find(whole, cover, limit, found.data());
    CHECK(count == static_cast<int>(expected.size()));
    CHECK(std::equal(expected.begin(), expected.end(), found.begin()));
    scan.write(maps.data());
    CHECK(std::equal(maps.begin(), maps.end(), all));
  }
}

}  // namespace

TEST(a_scan_finds_the_values_of_the_full_maps) {
  for (const int smoothing : {0, 1, 2, 3}) check_scan(canvas_of(13, 21, smoothing));
  check_scan(canvas_of(64, 3, 2));
  check_scan(canvas_of(1, 9, 2));
}

TEST(a_scan_is_for_demands_that_fit_whole_numbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const CongestionScan plain(canvas_of(30, 20, 0)), smooth(canvas_of(30, 20, 2)), wide(canvas_of(60, 50, 9));
  CHECK(plain.fits(5e8) && !plain.fits(6e8));
  CHECK(smooth.fits(5e6) && !smooth.fits(6e6));  // 60 parts, of which three gcells get 20 each
  CHECK(!wide.fits(1.0));                        // too many parts
  CHECK(!plain.fits(nan) && !plain.fits(std::numeric_limits<double>::infinity()));
}
